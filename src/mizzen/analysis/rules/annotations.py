"""Annotations: unknown ones, ones that stand on the wrong kind, deprecated ones and wrong values.

In: Namespaces, Services, Pods and Deployments; of these their own metadata, never a pod template's. Out: IST0107,
IST0108, IST0125, IST0135, and IST0136 for `precheck`.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping

import yaml

from mizzen.analysis import catalogue
from mizzen.analysis.annotations_table import KNOWN
from mizzen.analysis.findings import Finding, report
from mizzen.api.mesh.merge import merge_proxy_config
from mizzen.api.meta import Key, Object
from mizzen.api.scalars import Quantity
from mizzen.incremental import Engine, query

_IGNORED = frozenset({"sidecar.istio.io/status", "gateway.istio.io/controller-version", "istio.io/rev"})
_INJECT = "sidecar.istio.io/inject"
_TRAFFIC = "traffic.sidecar.istio.io/"
_CAPTURED_BY_INIT = frozenset(
    {
        "sidecar.istio.io/interceptionMode",
        f"{_TRAFFIC}includeInboundPorts",
        f"{_TRAFFIC}excludeInboundPorts",
        f"{_TRAFFIC}includeOutboundIPRanges",
    }
)
_INTERFACE = re.compile(r"[^\s/:]{1,15}\+?")


@query
def check_annotations(db: Engine, key: Key) -> tuple[Finding, ...]:
    """What is wrong with an object's annotations."""
    found: Object | None = db.input(key)
    if found is None:
        return ()
    return tuple(
        finding
        for name, value in sorted(found.metadata.annotations.items())
        if _is_istio(name) and name not in _IGNORED
        for finding in _check(key, found, name, value)
    )


def _is_istio(name: str) -> bool:
    return name.partition("/")[0].endswith("istio.io") or name == "kubernetes.io/ingress.class"


def _check(key: Key, found: Object, name: str, value: str) -> Iterator[Finding]:
    known = KNOWN.get(name)
    if known is None:
        yield report(catalogue.UNKNOWN_ANNOTATION, key, name)
        return
    if known.is_deprecated and not (name == _INJECT and _INJECT in found.metadata.labels):
        extra = f' in favor of the "{_INJECT}" label' if name == _INJECT else ""
        yield report(catalogue.DEPRECATED_ANNOTATION, key, name, extra)
    if "Any" not in known.kinds and key.kind not in known.kinds:
        yield report(catalogue.MISPLACED_ANNOTATION, key, name, ", ".join(known.kinds))
        return
    problem = _CHECKS[name](value) if name in _CHECKS else None
    if problem is not None:
        yield report(catalogue.INVALID_ANNOTATION, key, name, problem)


@query
def check_alpha(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Annotations of features that are not stable yet."""
    found: Object | None = db.input(key)
    if found is None:
        return ()
    init = getattr(getattr(found, "spec", None), "init_containers", ())
    ignored = _IGNORED
    if key.kind == "Pod" and not any(container.name == "istio-init" for container in init):
        ignored = ignored | _CAPTURED_BY_INIT
    return tuple(
        report(catalogue.ALPHA_ANNOTATION, key, name)
        for name in sorted(found.metadata.annotations)
        if name not in ignored and name in KNOWN and KNOWN[name].is_alpha
    )


# -- values ---------------------------------------------------------------------------------------------------------


def _interception_mode(value: str) -> str | None:
    if value in ("REDIRECT", "TPROXY", "NONE"):
        return None
    return f"interceptionMode invalid, use REDIRECT,TPROXY,NONE: {value}"


def _unsigned(value: str) -> str | None:
    if value.isdecimal() and int(value) < 2**32:
        return None
    reason = "value out of range" if value.isdecimal() else "invalid syntax"
    return f'strconv.ParseUint: parsing "{value}": {reason}'


def _boolean(value: str) -> str | None:
    known = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
    return None if value in known else f'strconv.ParseBool: parsing "{value}": invalid syntax'


def _port(value: str) -> str | None:
    text = value.strip()
    if text.isdecimal() and int(text) < 2**16:
        return None
    reason = "value out of range" if text.isdecimal() else "invalid syntax"
    return f"failed parsing port '{text}': strconv.ParseUint: parsing \"{text}\": {reason}"


def _ports(name: str, *, wildcard: bool = False, single: bool = False) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        if value == "*" and wildcard:
            return None
        parts = [value] if single else [part for part in value.split(",") if part.strip()]
        faults = (fault for part in parts if (fault := _port(part)) is not None)
        fault = next(faults, None)
        return f"{name} invalid: {fault}" if fault is not None else None

    return check


def _ranges(name: str, *, wildcard: bool) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        if not value or (wildcard and value == "*"):
            return None
        for part in value.split(","):
            try:
                if "/" not in part:
                    raise ValueError
                ipaddress.ip_network(part.strip(), strict=False)
            except ValueError:
                return f"{name} invalid: failed parsing cidr '{part}': invalid CIDR address: {part}"
        return None

    return check


def _interfaces(value: str) -> str | None:
    wrong = next((part for part in value.split(",") if part and not _INTERFACE.fullmatch(part.strip())), None)
    return f"invalid interface name: {wrong}" if wrong is not None else None


def _quantity(value: str) -> str | None:
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in value):
        return "value contains control characters"
    try:
        Quantity.parse(value)
    except ValueError:
        return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    return None


def _proxy_config(value: str) -> str | None:
    try:
        raw = yaml.load(value, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        return f"failed to convert to apply proxy config: {' '.join(str(error).split())}"
    _, problems = merge_proxy_config(raw if raw is not None else {})
    wrong = next((problem for problem in problems if problem.level == "error"), None)
    return f"failed to convert to apply proxy config: {wrong}" if wrong is not None else None


_CHECKS: Mapping[str, Callable[[str], str | None]] = {
    "sidecar.istio.io/interceptionMode": _interception_mode,
    # The reference names the wrong setting here.
    "status.sidecar.istio.io/port": _ports("excludeInboundPorts", single=True),
    "readiness.status.sidecar.istio.io/initialDelaySeconds": _unsigned,
    "readiness.status.sidecar.istio.io/periodSeconds": _unsigned,
    "readiness.status.sidecar.istio.io/failureThreshold": _unsigned,
    f"{_TRAFFIC}includeOutboundIPRanges": _ranges("includeIPRanges", wildcard=True),
    f"{_TRAFFIC}excludeOutboundIPRanges": _ranges("excludeIPRanges", wildcard=False),
    f"{_TRAFFIC}includeInboundPorts": _ports("includeInboundPorts", wildcard=True),
    f"{_TRAFFIC}excludeInboundPorts": _ports("excludeInboundPorts"),
    f"{_TRAFFIC}excludeOutboundPorts": _ports("excludeOutboundPorts"),
    f"{_TRAFFIC}excludeInterfaces": _interfaces,
    f"{_TRAFFIC}kubevirtInterfaces": _interfaces,
    "istio.io/reroute-virtual-interfaces": _interfaces,
    "prometheus.istio.io/merge-metrics": _boolean,
    "proxy.istio.io/config": _proxy_config,
    "sidecar.istio.io/proxyCPU": _quantity,
    "sidecar.istio.io/proxyMemory": _quantity,
    "sidecar.istio.io/proxyCPULimit": _quantity,
    "sidecar.istio.io/proxyMemoryLimit": _quantity,
}
