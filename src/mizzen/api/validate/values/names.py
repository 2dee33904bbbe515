"""Names: DNS labels and domains, ports' names, labels of objects, protocols, visibility.

The rules are those of the reference, which differ from Kubernetes' in details: upper case passes, a trailing dot does,
and a wildcard may be a part of the first label.
"""

import bisect
import itertools
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from mizzen.api.message import names
from mizzen.api.validate.faults import Faults, at, error, quote, warning

_MANY = 8192
_LABEL = re.compile(r"[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?")
_WILDCARD_LABEL = re.compile(r"\*|(?:\*|\*-)?[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_KEY_PREFIX = re.compile(r"[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*\.?")
_KEY_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_OUTBOUND = re.compile(r"outbound_\.[0-9]+_\.[^.]*_\.(.+)")

PROTOCOLS = names("tcp udp grpc grpc-web http http_proxy http2 https tls mongo redis mysql")
HTTP_PROTOCOLS = names("http http2 http_proxy grpc grpc-web")
TLS_PROTOCOLS = names("https tls")


def is_label(text: str) -> bool:
    """Whether the text is a DNS label, in either case."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


@lru_cache(_MANY)
def fqdn_fault(domain: str) -> str | None:
    """What keeps a text from being a domain name without wildcards."""
    return _length_fault(domain) or _labels_fault(domain, domain)


@lru_cache(_MANY)
def wildcard_fault(domain: str) -> str | None:
    """What keeps a text from being a domain name whose first label may be `*`, `*-x` or `*x`."""
    fault = _length_fault(domain)
    if fault is not None:
        return fault
    first, dot, rest = domain.partition(".")
    if len(first) > 63 or not _WILDCARD_LABEL.fullmatch(first):
        return _label_fault(domain, first)
    return _labels_fault(domain, rest) if dot else None


def outbound_name_fault(domain: str) -> str | None:
    """As `wildcard_fault`, but the names that sidecars give in SNI (`outbound_.80_.v1_.host`) pass too."""
    named = _OUTBOUND.fullmatch(domain)
    return wildcard_fault(named[1] if named else domain)


def partial_wildcard_fault(host: str) -> str | None:
    """What is wrong with a `*` that is neither the whole host nor its whole first label."""
    if "*" not in host or host == "*" or host.startswith("*."):
        return None
    return f"partial wildcard {quote(host)} not allowed"


def _length_fault(domain: str) -> str | None:
    if not domain:
        return "empty domain name not allowed"
    if len(domain.encode(errors="replace")) > 255:
        return f"domain name {quote(domain)} too long (max 255)"
    return None


def _labels_fault(domain: str, rest: str) -> str | None:
    labels = rest.split(".")
    last = labels[-1]
    if _NUMBER.fullmatch(last):
        return f"domain name {quote(domain)} invalid (top level domain {quote(last)} cannot be all-numeric)"
    for label in labels if last else labels[:-1]:
        if not is_label(label):
            return _label_fault(domain, label)
    return None


def _label_fault(domain: str, label: str) -> str:
    return f"domain name {quote(domain)} invalid (label {quote(label)} invalid)"


def covers(pattern: str, host: str) -> bool:
    """Whether every name that `host` stands for is one that `pattern` stands for."""
    if not pattern.startswith("*"):
        return pattern == host
    return host.endswith(pattern[1:]) and (not host.startswith("*") or len(host) >= len(pattern))


def overlapping_pairs(hosts: Sequence[str]) -> set[tuple[int, int]]:
    """The places of hosts that mean some name in common, where any may begin with `*`; a repeated one pairs once."""
    first: dict[str, int] = {}
    pairs: set[tuple[int, int]] = set()
    for index, host in enumerate(hosts):
        if first.setdefault(host, index) != index:
            pairs.add((first[host], index))
    # Read backwards, all names under a wildcard begin alike, so they stand side by side.
    backwards = sorted((host.removeprefix("*")[::-1], index) for host, index in first.items())
    for host, index in first.items():
        if host.startswith("*"):
            ending = host[:0:-1]
            for other, place in itertools.islice(backwards, bisect.bisect_left(backwards, (ending, -1)), None):
                if not other.startswith(ending):
                    break
                if place != index:
                    pairs.add((min(index, place), max(index, place)))
    return pairs


def port_name_fault(name: str) -> str | None:
    """What is wrong with the name of a port."""
    return None if is_label(name) else f"invalid port name: {name}"


def protocol_of(text: str) -> str:
    """The protocol that a text names, in lower case; empty for one that is not known."""
    name = text.lower()
    return name if name in PROTOCOLS else ""


def protocol_fault(text: str) -> str | None:
    """What is wrong with a protocol, which may be left open."""
    return None if not text or protocol_of(text) else f"unsupported protocol: {text}"


def check_labels(labels: Mapping[str, str], path: str) -> Faults:
    """Labels as Kubernetes takes them."""
    for key, value in labels.items():
        if not _is_label_key(key):
            yield error(f"{path}[{key}]", f"invalid tag key: {quote(key)}")
        if value and (len(value) > 63 or not _KEY_NAME.fullmatch(value)):
            yield error(f"{path}[{key}]", f"invalid tag value: {quote(value)}")


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if len(name) > 63 or not _KEY_NAME.fullmatch(name):
        return False
    return not slash or (len(prefix) <= 253 and _KEY_PREFIX.fullmatch(prefix) is not None)


def check_gateway_names(gateways: Sequence[str], path: str) -> Faults:
    """Names of gateways. As in the reference nothing is looked at behind the first name without a namespace."""
    for index, name in enumerate(gateways):
        here = f"{path}[{index}]"
        namespace, slash, gateway = name.partition("/")
        if not slash:
            parts = name.split(".")
            if len(parts) > 1:
                better = quote(f"{parts[1]}/{parts[0]}")
                message = (
                    f"using legacy gatewayName format {quote(name)}; prefer the <namespace>/<name> format: {better}"
                )
                yield warning(here, message)
            yield from at(here, fqdn_fault(name))
            return
        if not namespace or not gateway:
            yield error(here, "config namespace and gateway name cannot be empty")
        if not is_label(namespace):
            yield error(here, f"invalid value for namespace: {quote(namespace)}")
        if not is_label(gateway):
            yield error(here, f"invalid value for gateway name: {quote(gateway)}")


def check_export_to(
    entries: Sequence[str], namespace: str, path: str, *, service_entry: bool = False, selecting: bool = False
) -> Faults:
    """To whom an object is shown; `selecting` is a DestinationRule with a selector, which stays in its namespace."""
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        here = f"{path}[{index}]"
        name = namespace if entry == "." else entry
        if name in seen:
            own = f": . and current namespace {namespace}" if name != entry else f" for entry {entry}"
            yield error(here, f"duplicate entries in exportTo{own}")
        fault = None if service_entry and entry == "~" else _visibility_fault(entry)
        yield from at(here, fault)
        if fault is None:
            seen.add(name)
    if selecting and seen:
        if namespace not in seen:
            yield error(path, "destination rule with workload selector cannot have exportTo beyond current namespace")
        elif len(seen) > 1:
            yield error(path, "destination rule with workload selector cannot have multiple entries in exportTo")
    if "*" in seen and len(seen) > 1:
        yield error(path, "cannot have both public (*) and non-public exportTo values for a resource")
    if "~" in seen and len(seen) > 1:
        yield error(path, "cannot export service entry to no one (~) and someone")


def _visibility_fault(entry: str) -> str | None:
    if entry == "~":
        return "exportTo ~ (none) is not allowed for Istio configuration objects"
    if entry in (".", "*") or is_label(entry):
        return None
    return "only .,*, or a valid DNS 1123 label is allowed as exportTo entry"
