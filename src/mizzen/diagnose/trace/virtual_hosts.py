"""Which virtual host a Host header meets, as Envoy chooses it.

In: a route configuration and an authority. Out: the virtual host with the domain that won, or None. Exact domains come
first, then the longest suffix wildcard (`*.example.com`), then the longest prefix wildcard (`example.*`), then `*`;
a wildcard must stand for at least one character.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json


class Chosen(NamedTuple):
    """A virtual host and why."""

    host: Json
    domain: str


def by_domain(configuration: Json) -> dict[str, Json]:
    """The virtual hosts by domain, in lower case."""
    return {
        domain.lower(): host
        for host in dump.items(configuration, "virtual_hosts")
        for domain in dump.texts(host, "domains")
    }


def choose(configuration: Json, domains: Mapping[str, Json], authority: str) -> Chosen | None:
    """The virtual host for an authority, of the configuration's by domain."""
    name = authority.lower()
    if dump.field(configuration, "ignore_port_in_host_matching") is True:
        name = strip_port(name)
    if name in domains:
        return Chosen(domains[name], name)
    return _wildcard(domains, name) or (Chosen(domains["*"], "*") if "*" in domains else None)


def _wildcard(domains: Mapping[str, Json], name: str) -> Chosen | None:
    suffixes = [d for d in domains if d.startswith("*") and len(d) > 1]
    prefixes = [d for d in domains if d.endswith("*") and len(d) > 1 and not d.startswith("*")]
    for found in (
        [d for d in suffixes if len(name) >= len(d) and name.endswith(d[1:])],
        [d for d in prefixes if len(name) >= len(d) and name.startswith(d[:-1])],
    ):
        if found:
            best = max(found, key=len)
            return Chosen(domains[best], best)
    return None


def strip_port(authority: str) -> str:
    """The authority without its port; IPv6 addresses keep their brackets."""
    head, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():
        return authority
    return authority if ":" in head and not head.endswith("]") else head


def describe(host: Json) -> str:
    """A virtual host by its name and its first domains."""
    domains = dump.texts(host, "domains")
    more = f" and {len(domains) - 3} more" if len(domains) > 3 else ""
    return f"{dump.text(host, 'name')} ({', '.join(domains[:3])}{more})"
