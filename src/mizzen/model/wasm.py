"""Extensions: which WasmPlugins and TrafficExtensions are for a workload, and in what order.

In: WasmPlugins and TrafficExtensions, a workload's namespace and labels. Out: `Extension` values in the order in which
their filters stand: by phase, then highest priority first, then those of the root namespace, then by age. A WasmPlugin
counts as a TrafficExtension of a longer name. What they become in Envoy is `compile`.
Golden case: networking/wasm-plugins.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from mizzen.api.meta import Key
from mizzen.api.policy import TrafficExtension, TrafficSelector, WasmConfig, WasmPlugin
from mizzen.incremental import Engine, query
from mizzen.model import attachments, mesh, objects
from mizzen.model.attachments import Audience

Phase = Literal["AUTHN", "AUTHZ", "STATS", "UNSPECIFIED"]
Layer = Literal["http", "network"]
Side = Literal["inbound", "outbound", "gateway"]

_PHASES: tuple[Phase, ...] = ("AUTHN", "AUTHZ", "STATS", "UNSPECIFIED")
_MODES: Mapping[str, tuple[Side, ...]] = {
    "CLIENT": ("outbound", "gateway"),
    "SERVER": ("inbound",),
}
_PREFIX = "extensions.istio.io/trafficextension/"
_TRANSLATED = "~istio-translated-wasmplugin"
_LOWEST = -(2**31)


class Traffic(msgspec.Struct, frozen=True):
    """A side and its ports; no sides and no ports mean all of them."""

    sides: tuple[Side, ...] = ()
    ports: tuple[int, ...] = ()


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """One extension, as far as the place of its filter depends on it."""

    key: Key
    phase: Phase = "UNSPECIFIED"
    layer: Layer = "http"
    traffic: tuple[Traffic, ...] = ()
    """Where it applies; nothing means everywhere."""
    inline_code: str = ""
    """The Lua code; empty for Wasm, which is fetched under `resource_name`."""

    @property
    def qualified_name(self) -> str:
        """`namespace.name`, by which Envoy's logs and statistics know it."""
        suffix = _TRANSLATED if self.key.kind == "WasmPlugin" else ""
        return f"{self.key.namespace}.{self.key.name}{suffix}"

    @property
    def resource_name(self) -> str:
        """The name of the filter and of the resource that configures it."""
        return _PREFIX + self.qualified_name

    def applies(self, side: Side, port: int) -> bool:
        """Whether it is for a chain; `port` is 0 where the chain has none, which no port of a match equals."""
        return not self.traffic or any(
            (not t.sides or side in t.sides) and (not t.ports or port in t.ports) for t in self.traffic
        )


@query
def extensions(db: Engine, audience: Audience) -> tuple[Extension, ...]:
    """The extensions of a workload in order."""
    found: dict[Phase, list[tuple[int, Extension]]] = {phase: [] for phase in _PHASES}
    for namespace in dict.fromkeys((mesh.root_namespace(db), audience.namespace)):
        for extension, priority in _selected(db, namespace, audience):
            found[extension.phase].append((priority, extension))
    ordered = (sorted(found[phase], key=lambda pair: -pair[0]) for phase in _PHASES)
    return tuple(extension for of_phase in ordered for _, extension in of_phase)


def _selected(db: Engine, namespace: str, audience: Audience) -> Iterator[tuple[Extension, int]]:
    """A namespace's extensions for the workload with their priorities, oldest first."""
    for written in _written(db, namespace):
        spec = written.spec
        references = spec.target_refs
        if isinstance(written, WasmPlugin) and written.spec.target_ref is not None:
            references = references or (written.spec.target_ref,)
        selector = spec.selector.match_labels if spec.selector is not None else None
        extension = _read(written)
        if extension is not None and attachments.is_for(audience, namespace, selector, references):
            yield extension, spec.priority if spec.priority is not None else _LOWEST


@query
def _written(db: Engine, namespace: str) -> tuple[WasmPlugin | TrafficExtension, ...]:
    kinds = ("WasmPlugin", "TrafficExtension")
    keys = (key for kind in kinds for key in objects.in_namespace(db, kind, namespace))
    found: list[WasmPlugin | TrafficExtension] = [db.input(key) for key in keys]
    return tuple(sorted(found, key=lambda each: each.metadata.age_order))


def _read(written: WasmPlugin | TrafficExtension) -> Extension | None:
    """The extension; None for a TrafficExtension that holds neither Wasm nor Lua."""
    spec, meta = written.spec, written.metadata
    traffic = tuple(_traffic(each) for each in spec.match)
    if isinstance(written, WasmPlugin):
        phase = _phase(written.spec.phase)
        key = Key("WasmPlugin", meta.namespace, meta.name)
        return Extension(key=key, phase=phase, layer=_layer(written.spec.type), traffic=traffic)
    key, phase = Key("TrafficExtension", meta.namespace, meta.name), _phase(written.spec.phase)
    if written.spec.wasm is not None:
        return Extension(key=key, phase=phase, layer=_layer(written.spec.wasm.type), traffic=traffic)
    if written.spec.lua is not None and written.spec.lua.inline_code:
        return Extension(key=key, phase=phase, traffic=traffic, inline_code=written.spec.lua.inline_code)
    return None


def _phase(written: str) -> Phase:
    return next((phase for phase in _PHASES if phase == written), "UNSPECIFIED")


def _layer(written: str) -> Layer:
    return "network" if written == "NETWORK" else "http"


def _traffic(written: TrafficSelector) -> Traffic:
    return Traffic(_MODES.get(written.mode, ()), tuple(port.number for port in written.ports))


def wasm_config(db: Engine, key: Key) -> tuple[WasmConfig, str] | None:
    """The Wasm settings of an extension and the version of its object; None where there are none."""
    written: WasmPlugin | TrafficExtension | None = db.input(key)
    if isinstance(written, WasmPlugin):
        same = {name: getattr(written.spec, name) for name in WasmConfig.__struct_fields__}
        return WasmConfig(**same), written.metadata.resource_version
    if written is None or written.spec.wasm is None:
        return None
    return written.spec.wasm, written.metadata.resource_version
