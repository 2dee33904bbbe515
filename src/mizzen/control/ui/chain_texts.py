"""How the messages of a chain read in a few words.

In: messages of listeners, routes, clusters and endpoints. Out: titles and facts (name, value), of fields that matter to
whoever follows a request. Istio's words where istioctl has some for the same (`diagnose.tables`).
"""

import json
from typing import Any

from mizzen.diagnose import printing
from mizzen.diagnose.tables import match
from mizzen.diagnose.tables.listeners import describe_chain_match
from mizzen.diagnose.trace.world import parse_config_path

Facts = tuple[tuple[str, str], ...]

_DOMAINS_SHOWN = 6
_CONDITION_SHOWN = 160


def _facts(*found: tuple[str, object]) -> Facts:
    """Those that say something."""
    return tuple((name, str(value)) for name, value in found if value not in ("", 0, None, (), []))


def origin(message: Any) -> str:
    """`Kind NAMESPACE/NAME` of the object that the message's metadata names; empty where it names none."""
    if "istio" not in message.metadata.filter_metadata:
        return ""
    key = parse_config_path(message.metadata.filter_metadata["istio"].fields["config"].string_value)
    return f"{key.kind} {key.namespace}/{key.name}" if key is not None else ""


def address(found: Any) -> str:
    """`IP:PORT`, `unix://PATH` or `envoy://LISTENER/ID`."""
    if found.HasField("pipe"):
        return f"unix://{found.pipe.path}"
    if found.HasField("envoy_internal_address"):
        inner = found.envoy_internal_address
        return f"envoy://{inner.server_listener_name}/{inner.endpoint_id}"
    host = found.socket_address.address
    return f"{f'[{host}]' if ':' in host else host}:{found.socket_address.port_value}"


def duration(found: Any) -> str:
    """Seconds as Envoy's JSON writes them."""
    return str(printing.print_message(found))


def enum(message: Any, field: str) -> str:
    """An enum's value by its name."""
    value = getattr(message, field)
    kind = message.DESCRIPTOR.fields_by_name[field].enum_type
    known = kind.values_by_number.get(value)
    return known.name if known is not None else str(value)


# -- listeners --------------------------------------------------------------------------------------------------------


def listener_facts(listener: Any) -> Facts:
    """Where it listens, and how many chains there are."""
    chains = len(listener.filter_chains) + listener.HasField("default_filter_chain")
    bound = not listener.HasField("bind_to_port") or listener.bind_to_port.value
    direction = enum(listener, "traffic_direction").lower()
    return _facts(
        ("address", address(listener.address)),
        ("direction", "" if direction == "unspecified" else direction),
        ("chains", chains),
        ("bound", "" if bound else "no, connections are handed over"),
    )


def chain_match(chain: Any) -> str:
    """What a connection must have to take the chain."""
    return describe_chain_match({"filter_chain_match": printing.print_message(chain.filter_chain_match)})


def chain_facts(chain: Any, manager: Any) -> Facts:
    """Its name, TLS, and the filters in order; `manager` is the HTTP connection manager's configuration, if any."""
    tls = chain.transport_socket.typed_config.type_url.rpartition(".")[2] if chain.HasField("transport_socket") else ""
    network = [filter_.name.removeprefix("envoy.filters.network.") for filter_ in chain.filters]
    http = [filter_.name.removeprefix("envoy.filters.http.") for filter_ in manager.http_filters] if manager else []
    return _facts(
        ("name", chain.name),
        ("transport", tls),
        ("filters", " → ".join(network)),
        ("HTTP filters", " → ".join(http)),
    )


def tcp_clusters(config: Any) -> list[tuple[str, str]]:
    """The clusters of a TCP proxy with their weights; no weight where there is one cluster alone."""
    if config.HasField("weighted_clusters"):
        return [(each.name, str(each.weight)) for each in config.weighted_clusters.clusters]
    return [(config.cluster, "")] if config.cluster else []


# -- routes -----------------------------------------------------------------------------------------------------------


def host_facts(host: Any) -> Facts:
    """Its domains, and how many routes there are."""
    domains = list(host.domains)
    more = len(domains) - _DOMAINS_SHOWN
    text = ", ".join(domains[:_DOMAINS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    tls = enum(host, "require_tls")
    return _facts(("domains", text), ("routes", len(host.routes)), ("TLS", "" if tls == "NONE" else tls))


def route_match(route: Any) -> str:
    """The path and all further conditions."""
    printed = printing.print_message(route.match)
    parts = [match.describe_match({"match": printed}) or "any path"]
    for kind, name in (("headers", "header"), ("queryParameters", "parameter")):
        for condition in printed.get(kind, ()):
            rest = {field: value for field, value in condition.items() if field != "name"}
            text = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
            parts.append(f"{name} {condition.get('name', '')} {text[:_CONDITION_SHOWN]}")
    return "; ".join(parts)


def route_facts(route: Any) -> Facts:
    """What becomes of a request that takes it."""
    if route.HasField("redirect"):
        return _facts(("name", route.name), ("redirect", _compact(route.redirect)))
    if route.HasField("direct_response"):
        return _facts(("name", route.name), ("direct response", route.direct_response.status))
    action = route.route
    retry = action.retry_policy
    return _facts(
        ("cluster", action.cluster or ("by weight" if action.HasField("weighted_clusters") else "by header")),
        ("name", route.name),
        ("timeout", duration(action.timeout) if action.HasField("timeout") else ""),
        ("retries", f"{retry.num_retries.value} on {retry.retry_on}" if action.HasField("retry_policy") else ""),
        ("prefix rewrite", action.prefix_rewrite),
        ("host rewrite", action.host_rewrite_literal),
        ("mirror", ", ".join(mirror.cluster for mirror in action.request_mirror_policies)),
    )


def _compact(message: Any) -> str:
    return json.dumps(printing.print_message(message), ensure_ascii=False, separators=(",", ":"))[:_CONDITION_SHOWN]


def http_clusters(route: Any) -> list[tuple[str, str]]:
    """The clusters of a route with their weights; no weight where there is one cluster alone."""
    action = route.route
    if action.HasField("weighted_clusters"):
        return [(each.name, str(each.weight.value)) for each in action.weighted_clusters.clusters]
    return [(action.cluster, "")] if action.cluster else []


# -- clusters ---------------------------------------------------------------------------------------------------------


def cluster_facts(cluster: Any) -> Facts:
    """How its endpoints are found, and how they are spoken to."""
    sockets = [cluster.transport_socket] if cluster.HasField("transport_socket") else []
    sockets += [each.transport_socket for each in cluster.transport_socket_matches]
    kinds = dict.fromkeys(s.typed_config.type_url.rpartition(".")[2] or s.name for s in sockets)
    return _facts(
        ("type", enum(cluster, "type")),
        ("balancer", enum(cluster, "lb_policy")),
        ("transport", " or ".join(kinds)),
        ("connect timeout", duration(cluster.connect_timeout) if cluster.HasField("connect_timeout") else ""),
        ("ejects outliers", "yes" if cluster.HasField("outlier_detection") else ""),
    )


def elsewhere(cluster: Any) -> str:
    """Where the hosts of a cluster without endpoints come from."""
    kind = enum(cluster, "type")
    return "the address that was asked for" if kind == "ORIGINAL_DST" else f"no endpoints ({kind})"


def endpoint_facts(group: Any, endpoint: Any) -> Facts:
    """Health, weight and place."""
    where = group.locality
    place = "/".join(part for part in (where.region, where.zone, where.sub_zone) if part)
    istio = endpoint.metadata.filter_metadata
    workload = istio["istio"].fields["workload"].string_value if "istio" in istio else ""
    return _facts(
        ("health", enum(endpoint, "health_status").lower()),
        ("weight", endpoint.load_balancing_weight.value),
        ("priority", group.priority),
        ("locality", place),
        ("workload", workload),
    )
