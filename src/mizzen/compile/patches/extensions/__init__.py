"""Extensions: Wasm and Lua filters that WasmPlugins and TrafficExtensions ask for.

placement       their filters in finished listeners
configurations  what filters fetch by name, those that EnvoyFilters add included
"""
