"""Route matches and virtual host domains in istioctl's words; shared by the listener and the route table.

In: `envoy.config.route.v3` messages as JSON. Out: text. Header and query conditions are not shown, as in istioctl.
"""

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json

_SHOWN_DOMAINS = 2


def describe_match(route: Json) -> str:
    """The path condition of a route: `/a*`, `/a`, `PathPrefix:/a` or `regex /a.*`; empty for any other kind."""
    condition = dump.message(route, "match")
    forms = (
        ("{}*", dump.text(condition, "prefix")),
        ("PathPrefix:{}", dump.text(condition, "path_separated_prefix")),
        ("{}", dump.text(condition, "path")),
        ("regex {}", dump.text(condition, "safe_regex", "regex")),
    )
    return " ".join(form.format(value) for form, value in forms if value)


def target_cluster(route: Json) -> str:
    """The one cluster that the route forwards to; empty for weights, redirects and the rest."""
    return dump.text(route, "route", "cluster")


def describe_domains(domains: list[str]) -> str:
    """The telling domains of a virtual host: without ports and without longer spellings of what is there already."""
    if len(domains) <= 1:
        return "".join(domains)
    portless = [d for d in domains if ":" not in d or d.endswith("]")]
    shown = [d for d in portless if not _is_expanded(d, portless)]
    text = ", ".join(shown[:_SHOWN_DOMAINS])
    more = len(shown) - _SHOWN_DOMAINS
    return f"{text} + {more} more..." if more > 0 else text


def _is_expanded(domain: str, others: list[str]) -> bool:
    """Whether a shorter form of a cluster-local name stands beside it."""
    return any(
        domain.endswith(suffix) and domain.removesuffix(suffix) in others for suffix in (".svc.cluster.local", ".svc")
    )


def describe_inline(configuration: Json) -> str:
    """A route configuration that a listener carries itself, in one line."""
    hosts = list(dump.items(configuration, "virtual_hosts"))
    only = _catch_all_cluster(hosts)
    if only:
        return describe_cluster(only)
    return "Inline Route: " + "; ".join(_describe_host(host) for host in hosts)


def describe_cluster(name: str) -> str:
    """`Cluster: NAME`, but Istio's built-in clusters (`PassthroughCluster`, …) by their bare name."""
    return name if "Cluster" in name else f"Cluster: {name}"


def _describe_host(host: Json) -> str:
    domains = dump.texts(host, "domains")
    routes = ", ".join(describe_match(route) for route in dump.items(host, "routes"))
    return routes if domains == ["*"] else f"{'/'.join(domains)} {routes}"


def _catch_all_cluster(hosts: list[Json]) -> str:
    """The cluster of a configuration that sends everything to one place, else empty."""
    if len(hosts) != 1 or dump.texts(hosts[0], "domains") != ["*"]:
        return ""
    routes = list(dump.items(hosts[0], "routes"))
    if len(routes) != 1 or dump.text(routes[0], "match", "prefix") != "/":
        return ""
    return target_cluster(routes[0])
