"""Filters of extensions: Wasm that is fetched under the extension's name, and Lua that stands in place.

In: the extensions of a workload in their order, and the side and port of a chain. Out: encoded filters by phase, for
`HttpPolicies` and for chains of connections. What is fetched is `compile.patches.extensions.configurations`.
Golden case: networking/wasm-plugins.
"""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

from mizzen import protos
from mizzen.compile.values import ADS_SOURCE
from mizzen.model.wasm import Extension, Layer, Side

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_lua_v3 = protos.package("envoy.extensions.filters.http.lua.v3")

_FILTERS = protos.TYPE_PREFIX + "envoy.extensions.filters."


class PhasedFilters(NamedTuple):
    """Encoded filters by where they stand among those of policies."""

    authn: tuple[bytes, ...] = ()
    authz: tuple[bytes, ...] = ()
    stats: tuple[bytes, ...] = ()
    """Those of the STATS phase, then those without a phase."""


def http_filters(extensions: Iterable[Extension], side: Side, port: int) -> PhasedFilters:
    """The HTTP filters of a connection manager; `port` is the one that the chain is for, 0 for none."""
    return _phased([e for e in extensions if e.layer == "http" and e.applies(side, port)])


def network_filters(extensions: Iterable[Extension], side: Side, port: int) -> PhasedFilters:
    """The network filters of a chain; in front of a connection manager they all stand together, in this order."""
    return _phased([e for e in extensions if e.layer == "network" and e.applies(side, port)])


def _phased(applying: list[Extension]) -> PhasedFilters:
    if not applying:
        return PhasedFilters()
    return PhasedFilters(
        authn=tuple(_encoded(e) for e in applying if e.phase == "AUTHN"),
        authz=tuple(_encoded(e) for e in applying if e.phase == "AUTHZ"),
        stats=tuple(_encoded(e) for e in applying if e.phase not in ("AUTHN", "AUTHZ")),
    )


@functools.lru_cache(maxsize=1024)
def _encoded(extension: Extension) -> bytes:
    make = _hcm_v3.HttpFilter if extension.layer == "http" else _listener_v3.Filter
    if extension.inline_code:
        script = _lua_v3.Lua(default_source_code={"inline_string": extension.inline_code})
        return protos.encode(make(name=extension.resource_name, typed_config=protos.pack(script)))
    return protos.encode(make(name=extension.resource_name, config_discovery=_discovery(extension.layer)))


def _discovery(layer: Layer) -> dict[str, Any]:
    """Fetched over the stream: the module itself, or the filter by which the agent stands in for one it cannot get."""
    types = [f"{_FILTERS}{layer}.wasm.v3.Wasm", f"{_FILTERS}{layer}.rbac.v3.RBAC"]
    return {"config_source": ADS_SOURCE, "type_urls": types}
