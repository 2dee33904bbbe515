"""A pod's own wishes: its annotations, read and checked once.

In: annotations over an `InjectionConfig`. Out: `Overrides`, or one Problem for each annotation that does not read; any
such Problem means that nothing is injected, as the webhook refuses the pod. An annotation that is present but empty
differs from an absent one: an empty `includeOutboundIPRanges` captures nothing.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_network
from typing import Any

import msgspec

from mizzen.api.problems import Problem
from mizzen.inject.values import InjectionConfig, Resources

INVALID = "invalid-annotation"

_SIDECAR = "sidecar.istio.io/"
_TRAFFIC = "traffic.sidecar.istio.io/"
_READINESS = "readiness.status.sidecar.istio.io/"

INTERCEPTION_MODE = _SIDECAR + "interceptionMode"
STATUS_PORT = "status.sidecar.istio.io/port"
INCLUDE_OUTBOUND_RANGES = _TRAFFIC + "includeOutboundIPRanges"
EXCLUDE_OUTBOUND_RANGES = _TRAFFIC + "excludeOutboundIPRanges"
INCLUDE_INBOUND_PORTS = _TRAFFIC + "includeInboundPorts"
EXCLUDE_INBOUND_PORTS = _TRAFFIC + "excludeInboundPorts"
INCLUDE_OUTBOUND_PORTS = _TRAFFIC + "includeOutboundPorts"
EXCLUDE_OUTBOUND_PORTS = _TRAFFIC + "excludeOutboundPorts"
EXCLUDE_INTERFACES = _TRAFFIC + "excludeInterfaces"
KUBEVIRT_INTERFACES = _TRAFFIC + "kubevirtInterfaces"
REROUTE_INTERFACES = "istio.io/reroute-virtual-interfaces"

_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+|[EPTGMK]i|[EPTGMk]|[mun])?")
_INTERFACE = re.compile(r"[^\s/:!]{1,15}")
_WORDS = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """Traffic capture as the texts of istio-iptables' flags; None leaves a flag out."""

    mode: str
    include_outbound_ranges: str
    exclude_outbound_ranges: str
    include_inbound_ports: str
    exclude_inbound_ports: str
    include_outbound_ports: str | None
    exclude_outbound_ports: str | None
    virtual_interfaces: str | None
    exclude_interfaces: str | None


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Annotations merged over the installation's values."""

    capture: Capture
    status_port: int
    readiness_initial_delay: int
    readiness_period: int
    readiness_failures: int
    resources: Resources | None
    """None without any of the four resource annotations."""
    proxy_image: str
    image_type: str
    log_level: str
    component_log_level: str
    agent_log_level: str
    native_sidecar: bool
    rewrite_probes: bool
    cap_net_bind_service: bool
    bootstrap_override: str
    merge_metrics: bool | None
    """None leaves it to the mesh."""
    user_volumes: Mapping[str, Any]
    user_volume_mounts: Mapping[str, Any]


def read_overrides(
    annotations: Mapping[str, str], config: InjectionConfig, *, status_port: int, interception_mode: str = "REDIRECT"
) -> tuple[Overrides | None, tuple[Problem, ...]]:
    """The overrides, or None with the Problems; port and mode are what the mesh or the installation says."""
    reader = _Reader(annotations)
    overrides = Overrides(
        capture=_read_capture(reader, config, interception_mode),
        status_port=reader.read(STATUS_PORT, _port, status_port),
        readiness_initial_delay=reader.read(
            _READINESS + "initialDelaySeconds", _unsigned, config.readiness_initial_delay
        ),
        readiness_period=reader.read(_READINESS + "periodSeconds", _unsigned, config.readiness_period),
        readiness_failures=reader.read(_READINESS + "failureThreshold", _unsigned, config.readiness_failures),
        resources=_read_resources(reader),
        proxy_image=reader.text(_SIDECAR + "proxyImage", config.proxy_image),
        image_type=reader.text(_SIDECAR + "proxyImageType", config.image_type),
        log_level=reader.text(_SIDECAR + "logLevel", config.log_level),
        component_log_level=reader.text(_SIDECAR + "componentLogLevel", config.component_log_level),
        agent_log_level=reader.text(_SIDECAR + "agentLogLevel", config.agent_log_level),
        native_sidecar=reader.text(_SIDECAR + "nativeSidecar", str(config.native_sidecars).lower()) != "false",
        rewrite_probes=reader.read(_SIDECAR + "rewriteAppHTTPProbers", _boolean, config.rewrite_probes),
        cap_net_bind_service=reader.read(_SIDECAR + "capNetBindService", _boolean, config.cap_net_bind_service),
        bootstrap_override=reader.text(_SIDECAR + "bootstrapOverride", ""),
        merge_metrics=reader.read("prometheus.istio.io/merge-metrics", _boolean, None),
        user_volumes=reader.read(_SIDECAR + "userVolume", _json_object, {}),
        user_volume_mounts=reader.read(_SIDECAR + "userVolumeMount", _json_object, {}),
    )
    problems = tuple(reader.problems)
    return (None if problems else overrides), problems


def annotation_problem(name: str, message: str) -> Problem:
    """What is wrong with one annotation."""
    return Problem(message=message, code=INVALID, path=f'metadata.annotations["{name}"]')


class _Reader:
    """Reads annotations one by one and collects what does not read."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self.problems: list[Problem] = []

    def text(self, name: str, default: str) -> str:
        """Any text."""
        return self._annotations.get(name, default)

    def optional(self, name: str, default: str) -> str | None:
        """A text that only counts when it is there: as an annotation, or not empty among the values."""
        return self._annotations.get(name, default or None)

    def read(self, name: str, parse: Callable[[str], Any], default: Any) -> Any:
        """A parsed value; the default also where it does not parse, which is reported."""
        if name not in self._annotations:
            return default
        try:
            return parse(self._annotations[name])
        except ValueError as bad:
            self.report(name, str(bad))
            return default

    def check(self, name: str, parse: Callable[[str], Any]) -> None:
        """Reports a text that does not parse; its value is used as it is written."""
        self.read(name, parse, None)

    def report(self, name: str, message: str) -> None:
        """One more Problem."""
        self.problems.append(annotation_problem(name, message))


def _read_capture(reader: _Reader, config: InjectionConfig, mode: str) -> Capture:
    _check_capture(reader)
    kubevirt = reader.optional(KUBEVIRT_INTERFACES, "")
    return Capture(
        mode=reader.text(INTERCEPTION_MODE, mode),
        include_outbound_ranges=reader.text(INCLUDE_OUTBOUND_RANGES, config.include_outbound_ranges),
        exclude_outbound_ranges=reader.text(EXCLUDE_OUTBOUND_RANGES, config.exclude_outbound_ranges),
        include_inbound_ports=reader.text(INCLUDE_INBOUND_PORTS, config.include_inbound_ports),
        exclude_inbound_ports=reader.text(EXCLUDE_INBOUND_PORTS, config.exclude_inbound_ports),
        include_outbound_ports=reader.optional(INCLUDE_OUTBOUND_PORTS, config.include_outbound_ports),
        exclude_outbound_ports=reader.optional(EXCLUDE_OUTBOUND_PORTS, config.exclude_outbound_ports),
        virtual_interfaces=reader.optional(REROUTE_INTERFACES, kubevirt or "") if kubevirt is None else kubevirt,
        exclude_interfaces=reader.optional(EXCLUDE_INTERFACES, config.exclude_interfaces),
    )


def _check_capture(reader: _Reader) -> None:
    reader.check(INTERCEPTION_MODE, _mode)
    reader.check(INCLUDE_OUTBOUND_RANGES, lambda text: text == "*" or _ranges("includeIPRanges", text))
    reader.check(EXCLUDE_OUTBOUND_RANGES, lambda text: _ranges("excludeIPRanges", text))
    reader.check(INCLUDE_INBOUND_PORTS, lambda text: text == "*" or _ports("includeInboundPorts", text))
    for name in (EXCLUDE_INBOUND_PORTS, INCLUDE_OUTBOUND_PORTS, EXCLUDE_OUTBOUND_PORTS):
        reader.check(name, partial(_ports, name.removeprefix(_TRAFFIC)))
    for name in (EXCLUDE_INTERFACES, KUBEVIRT_INTERFACES, REROUTE_INTERFACES):
        reader.check(name, _interfaces)


def _read_resources(reader: _Reader) -> Resources | None:
    def read(limit: str) -> Mapping[str, str]:
        names = {"cpu": f"{_SIDECAR}proxyCPU{limit}", "memory": f"{_SIDECAR}proxyMemory{limit}"}
        found = {resource: reader.read(name, _quantity, "") for resource, name in names.items()}
        return {resource: quantity for resource, quantity in found.items() if quantity}

    requests, limits = read(""), read("Limit")
    return Resources(requests=requests, limits=limits) if requests or limits else None


def _mode(text: str) -> str:
    if text not in ("REDIRECT", "TPROXY", "NONE"):
        raise ValueError(f"interceptionMode invalid, use REDIRECT,TPROXY,NONE: {text}")
    return text


def _ranges(field: str, text: str) -> list[str]:
    for part in _parts(text):
        try:
            ip_network(part, strict=False)
        except ValueError:
            raise ValueError(f"{field} invalid: failed parsing cidr '{part}'") from None
    return _parts(text)


def _ports(field: str, text: str) -> list[int]:
    found = []
    for part in _parts(text):
        if not part.isdecimal() or int(part) > 65535:
            raise ValueError(f"{field} invalid: failed parsing port '{part}'")
        found.append(int(part))
    return found


def _interfaces(text: str) -> list[str]:
    for part in _parts(text):
        if not _INTERFACE.fullmatch(part):
            raise ValueError(f"{part!r} is no name of a network interface")
    return _parts(text)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _port(text: str) -> int:
    return _ports("status port", text)[0] if text else 0


def _unsigned(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise ValueError(f"{text!r} is no unsigned 32 bit number")
    return int(text)


def _boolean(text: str) -> bool:
    try:
        return _WORDS[text.lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither true nor false") from None


def _quantity(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("value contains control characters")
    if not _QUANTITY.fullmatch(text):
        raise ValueError(f"{text!r} is no quantity such as 100m or 128Mi")
    return text


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except (msgspec.DecodeError, RecursionError) as bad:
        raise ValueError(str(bad)) from bad
