"""Extensions: WasmPlugin and TrafficExtension, the filters that users add."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from mizzen.api.policy import (
    LuaConfig,
    TrafficExtension,
    TrafficSelector,
    VmConfig,
    WasmConfig,
    WasmPlugin,
    WasmPluginSpec,
)
from mizzen.api.validate.faults import Faults, at, error, quote
from mizzen.api.validate.values.selectors import check_attachment, check_match_labels

_SCHEMES = ("", "file", "http", "https", "oci")
_SHA256 = re.compile(r"[a-f0-9]{64}")
_UNFIT = re.compile(r"[\x00-\x20\x7f]|%(?![0-9A-Fa-f]{2})")
_COLON_WITHOUT_SCHEME = re.compile(r"[^a-zA-Z/?#:][^/?#:]*:")
_LONGEST_SECRET, _LONGEST_NAME, _LONGEST_LUA = 253, 256, 65536


def check_wasm_plugin(plugin: WasmPlugin, path: str) -> Faults:
    """All rules of a WasmPlugin."""
    spec = plugin.spec
    yield from check_match_labels(spec.selector, f"{path}.selector")
    yield from check_attachment(spec.selector, spec.target_ref, spec.target_refs, path)
    yield from _check_module(spec, path, longest_name="255")
    yield from _check_ports(spec.match, path)


def check_traffic_extension(extension: TrafficExtension, path: str) -> Faults:
    """All rules of a TrafficExtension."""
    spec = extension.spec
    yield from check_match_labels(spec.selector, f"{path}.selector")
    yield from check_attachment(spec.selector, None, spec.target_refs, path)
    if (spec.wasm is None) == (spec.lua is None):
        yield error(path, "exactly one of wasm or lua must be set")
    if spec.wasm is not None:
        yield from _check_module(spec.wasm, f"{path}.wasm", longest_name="256")
    if spec.lua is not None:
        yield from at(f"{path}.lua.inlineCode", _lua_fault(spec.lua))
    yield from _check_ports(spec.match, path)


def _lua_fault(lua: LuaConfig) -> str | None:
    if not lua.inline_code:
        return "lua.inlineCode cannot be empty"
    too_long = len(lua.inline_code.encode(errors="replace")) > _LONGEST_LUA
    return "lua.inlineCode exceeds maximum size of 64KB" if too_long else None


def _check_module(module: WasmPluginSpec | WasmConfig, path: str, *, longest_name: str) -> Faults:
    """A Wasm module: where it is, how it is told to be the right one, its machine."""
    yield from at(f"{path}.url", _url_fault(module.url))
    if module.sha256 and not _SHA256.fullmatch(module.sha256):
        rule = "be 64 characters long" if len(module.sha256) != 64 else "match [a-f0-9]{64} pattern"
        yield error(f"{path}.sha256", f"sha256 field must {rule}")
    if len(module.image_pull_secret) > _LONGEST_SECRET:
        message = f"imagePullSecret field must be less than {_LONGEST_SECRET} characters long"
        yield error(f"{path}.imagePullSecret", message)
    if len(module.plugin_name) > _LONGEST_NAME:
        message = f"pluginName field must be less than {longest_name} characters long"
        yield error(f"{path}.pluginName", message)
    if module.vm_config is not None:
        yield from _check_machine(module.vm_config, f"{path}.vmConfig")


def _url_fault(url: str) -> str | None:
    if not url:
        return "url field needs to be set"
    if _UNFIT.search(url):
        return f"failed to parse url: parse {quote(url)}: invalid character or escape"
    if _COLON_WITHOUT_SCHEME.match(url):
        return f"failed to parse url: parse {quote(url)}: first path segment in URL cannot contain colon"
    try:
        parts = urlsplit(url)
        _port = parts.port  # read for what it raises
    except ValueError as bad:
        return f"failed to parse url: parse {quote(url)}: {bad}"
    return None if parts.scheme in _SCHEMES else f"url contains unsupported scheme: {parts.scheme}"


def _check_machine(machine: VmConfig, path: str) -> Faults:
    known: set[str] = set()
    for index, variable in enumerate(machine.env):
        here = f"{path}.env[{index}]"
        if not variable.name:
            yield error(here, "spec.vmConfig.env invalid")
        elif len(variable.name) > _LONGEST_NAME:
            yield error(f"{here}.name", "env.name field must be less than 255 characters long")
        if variable.name in known:
            yield error(here, "duplicate env")
        known.add(variable.name)
        if variable.value_from != "INLINE" and variable.value:
            yield error(f"{here}.value", "value may only be set when valueFrom is INLINE")


def _check_ports(selectors: Sequence[TrafficSelector], path: str) -> Faults:
    for index, selector in enumerate(selectors):
        for place, port in enumerate(selector.ports):
            if not 1 <= port.number <= 65535:
                message = f"spec.Match[{index}].Ports[{place}] is out of range: {port.number}"
                yield error(f"{path}.match[{index}].ports[{place}].number", message)
