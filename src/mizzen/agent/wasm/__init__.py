"""Wasm modules for Envoy, which only loads them from files: the agent fetches what the control plane names.

    relay ──ECDS response──> rewriting ──> modules (on disk) ──> downloads (HTTP)
                                                             └─> images (OCI registries) ──> downloads

A response is passed on once every module in it is there, or is known not to come. A filter without its module gives
way to one that lets everything or nothing pass, as the plugin says; nothing else waits for it or fails with it.
"""
