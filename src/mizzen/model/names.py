"""Names: hosts, clusters and SNI values, made and taken apart in one place.

In: parts (direction, port, subset, host, namespace). Out: the strings that stand in Envoy's configuration, which
operators grep for, and hosts completed the way Istio completes short ones. Golden cases: networking/vs-host-forms,
gateway/auto-passthrough.
"""

import functools
import hashlib
import ipaddress
import sys
import zlib
from typing import NamedTuple

OUTBOUND = "outbound"
INBOUND = "inbound"

BLACK_HOLE = "BlackHoleCluster"
PASSTHROUGH = "PassthroughCluster"
INBOUND_PASSTHROUGH = "InboundPassthroughCluster"
DYNAMIC_DNS = "AllowAnyDynamicDNSCluster"
UNKNOWN = "UnknownService"
"""Where a destination without a host leads: a cluster that never exists."""

_LONGEST_LABEL = 63


class SubsetKey(NamedTuple):
    """The parts of a cluster's name."""

    direction: str
    port: int
    subset: str
    host: str


_BUCKETS = 4
"""Groups that the hosts of one domain make."""


def is_asked_for_hosts(route: str) -> bool:
    """Whether a sidecar's route configuration, known by its port, is one whose virtual hosts may come on demand."""
    return route.isascii() and route.isdigit()


def group_of(host: str) -> str:
    """The group of hosts to which one belongs, so that long lists can be worked out group by group: as a rule hosts of
    one namespace, split evenly."""
    return sys.intern(f"{host.partition('.')[2]}#{zlib.crc32(host.encode()) % _BUCKETS}")


def subset_key(direction: str, port: int, subset: str, host: str) -> str:
    """The cluster name `direction|port|subset|host`."""
    return sys.intern(f"{direction}|{port}|{subset}|{host}")


def parse_subset_key(name: str) -> SubsetKey | None:
    """The parts of a cluster name, in either spelling; None for static clusters and names of other makers."""
    parts = name.split("|")
    if len(parts) != 4 and name.startswith("outbound_."):
        parts = name.replace("_.", "|", 3).split("|", 3)
    if len(parts) != 4 or not parts[1].isdigit():
        return None
    return SubsetKey(parts[0], int(parts[1]), parts[2], parts[3])


def sni_key(port: int, subset: str, host: str) -> str:
    """The SNI of mutual TLS to a cluster, and the name of its SNI-routed twin on a gateway."""
    return f"outbound_.{port}_.{subset}_.{host}"


def service_host(name: str, namespace: str, domain: str) -> str:
    """The host of a Kubernetes service."""
    return f"{name}.{namespace}.svc.{domain}"


def label_value(name: str) -> str:
    """A name as the value of a label: one that is too long is cut and told apart by its hash."""
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_LABEL - 1 - len(digest)].rstrip('-.')}-{digest}"


@functools.lru_cache(maxsize=65536)
def is_ip(text: str) -> bool:
    """Whether the text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=65536)
def is_ipv6(text: str) -> bool:
    """Whether the text is an IPv6 address or an IPv6 CIDR range."""
    return ":" in text


def resolve_host(host: str, namespace: str, domain: str) -> str:
    """Complete a short name (no dot, no wildcard, not an address) against the namespace of the object that wrote it."""
    if not host or "." in host or "*" in host or is_ip(host):
        return host
    return service_host(host, namespace, domain)


def matches(pattern: str, host: str) -> bool:
    """Whether every host that `host` stands for is one that `pattern` stands for; either may begin with `*`."""
    if pattern == host:
        return True
    if not pattern.startswith("*"):
        return False
    if host.startswith("*"):
        return len(host) >= len(pattern) and host[1:].endswith(pattern[1:])
    return len(host) >= len(pattern) and host.endswith(pattern[1:])


def overlap(a: str, b: str) -> bool:
    """Whether one of the two stands for the other."""
    return matches(a, b) or matches(b, a)


def specificity(host: str) -> tuple[bool, int]:
    """Sorts hosts, most specific first when reversed: exact before wildcard, longer before shorter."""
    return (not host.startswith("*"), len(host))


def bracketed(address: str) -> str:
    """An address as it stands before a port: IPv6 in brackets."""
    return f"[{address}]" if is_ipv6(address) else address


def alternates(host: str, dns_domain: str) -> list[str]:
    """The shorter and longer spellings under which a client's resolver finds `host`."""
    if is_ip(host):
        return []
    found = [f"{host}."]
    suffix_at = dns_domain.find(".svc.")
    if suffix_at >= 0:
        found.extend(_kubernetes_forms(host, dns_domain[:suffix_at], dns_domain[suffix_at:]))
    else:
        found.extend(_shared_suffix_forms(host, dns_domain))
    return found


def _kubernetes_forms(host: str, own_namespace: str, suffix: str) -> list[str]:
    if not host.endswith(suffix):
        return []
    name, dot, namespace = host.removesuffix(suffix).partition(".")
    if not dot or "." in namespace:
        return []
    if namespace == own_namespace:
        return [name, f"{name}.{namespace}.svc", f"{name}.{namespace}"]
    return [f"{name}.{namespace}", f"{name}.{namespace}.svc"]


def _shared_suffix_forms(host: str, dns_domain: str) -> list[str]:
    labels, own = host.split("."), dns_domain.split(".")
    shared = 0
    while shared < min(len(labels), len(own)) and labels[-1 - shared] == own[-1 - shared]:
        shared += 1
    unique = labels[: len(labels) - shared]
    if not shared or not unique:
        return []
    text = ".".join(unique)
    return [text, f"{text}.{labels[len(unique)]}"] if len(unique) == 2 else [text]
