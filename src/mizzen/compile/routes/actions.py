"""Route actions: forwarding, redirects and direct responses.

In: an HTTPRoute and its resolved targets. Out: fields of Envoy's Route. Golden cases:
networking/vs-rewrite-redirect-respond, networking/subset-split, networking/vs-mirrors-cors-headers.
"""

from collections.abc import Sequence
from typing import Any

from mizzen import protos
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.networking.destination import Percent
from mizzen.api.networking.virtual_service import (
    HTTPDirectResponse,
    HTTPRedirect,
    HTTPRoute,
    HTTPRouteDestination,
)
from mizzen.compile.filters.timeouts import build_timeouts
from mizzen.compile.routes import headers, retries
from mizzen.compile.routes.destinations import RouteClient, Target, alpn_config
from mizzen.compile.routes.route_filters import fraction
from mizzen.compile.values import duration, wrapped
from mizzen.model.patterns import quote

_route_v3 = protos.package("envoy.config.route.v3")

_REDIRECTS = {
    0: "MOVED_PERMANENTLY",
    301: "MOVED_PERMANENTLY",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}


def build_redirect(redirect: HTTPRedirect, listen_port: int, *, is_tls: bool) -> dict[str, Any] | None:
    """A RedirectAction; None for a status that is no redirect."""
    code = _REDIRECTS.get(redirect.redirect_code)
    if code is None:
        return None
    fields: dict[str, Any] = {"response_code": code, "host_redirect": redirect.authority}
    if redirect.prefix_rewrite:
        fields["prefix_rewrite"] = redirect.prefix_rewrite
    else:
        fields["path_redirect"] = redirect.uri
    if redirect.scheme:
        fields["scheme_redirect"] = redirect.scheme
    port = 0
    if redirect.port is not None:
        port = redirect.port
    elif redirect.derive_port == "FROM_REQUEST_PORT":
        port = listen_port
    scheme = redirect.scheme or ("https" if is_tls else "http")
    if port and (scheme, port) not in (("http", 80), ("https", 443)):
        fields["port_redirect"] = port
    return fields


def build_direct_response(response: HTTPDirectResponse) -> dict[str, Any]:
    """A DirectResponseAction."""
    fields: dict[str, Any] = {"status": response.status}
    body = response.body
    if body is not None and body.string is not None:
        fields["body"] = {"inline_string": body.string}
    elif body is not None and body.bytes is not None:
        fields["body"] = {"inline_bytes": body.bytes}
    return fields


def build_forward(
    client: RouteClient,
    rule: HTTPRoute,
    targets: Sequence[tuple[HTTPRouteDestination, Target]],
    mirrors: Sequence[tuple[Target, Percent | None, int]],
    mesh: MeshConfig,
    fields: dict[str, Any],
    *,
    gateway_semantics: bool,
) -> dict[str, Any]:
    """A RouteAction; what a single destination adds to headers and filters goes into the route's own `fields`."""
    timeout = duration(rule.timeout) if rule.timeout is not None else {}
    action = build_timeouts(timeout, client.dialect)
    if gateway_semantics:
        action["cluster_not_found_response_code"] = "INTERNAL_SERVER_ERROR"
    forwarded_host = client.forwarded_host
    _apply_rewrite(action, rule, fields, gateway_semantics=gateway_semantics, forwarded_host=forwarded_host)
    if rule.rewrite is None or not rule.rewrite.authority:
        own = headers.authority(rule.headers)
        if own:
            action["host_rewrite_literal"] = own
    policies = [_mirror(target, percentage, whole) for target, percentage, whole in mirrors]
    action["request_mirror_policies"] = [p for p in policies if p is not None]
    hashes = False
    if len(targets) == 1:
        destination, target = targets[0]
        hashes = target.hashes
        action["cluster"] = target.cluster
        headers.apply_headers(fields, destination.headers)
        own = headers.authority(destination.headers)
        if own and "host_rewrite_literal" not in action:
            action["host_rewrite_literal"] = own
        if overrides := alpn_config(target):
            fields.setdefault("typed_per_filter_config", {}).update(overrides)
    else:
        weighted = [_weighted(d, t) for d, t in targets if d.weight > 0]
        action["weighted_clusters"] = {"clusters": weighted}
    entries = [_route_v3.RouteAction.FromString(t.hash_policy) for _, t in targets if t.hash_policy]
    if entries:
        action["hash_policy"] = [policy for entry in entries for policy in entry.hash_policy]
    policy = retries.build_policy(rule.retries, mesh.default_http_retry_policy, avoid_hosts=not hashes)
    if policy is not None:
        action["retry_policy"] = policy
    return action


def _apply_rewrite(
    action: dict[str, Any],
    rule: HTTPRoute,
    fields: dict[str, Any],
    *,
    gateway_semantics: bool,
    forwarded_host: bool,
) -> None:
    rewrite = rule.rewrite
    if rewrite is None:
        return
    if rewrite.uri_regex_rewrite is not None:
        action["regex_rewrite"] = {
            "pattern": {"regex": rewrite.uri_regex_rewrite.match},
            "substitution": rewrite.uri_regex_rewrite.rewrite,
        }
    elif rewrite.uri:
        prefix = fields["match"].get("path_separated_prefix")
        if gateway_semantics and rewrite.uri == "/" and prefix:
            action["regex_rewrite"] = {
                "pattern": {"regex": f"^{quote(prefix)}(/?)(.*)"},
                "substitution": r"/\2",
            }
        else:
            action["prefix_rewrite"] = rewrite.uri
    if rewrite.authority:
        action["host_rewrite_literal"] = rewrite.authority
    if forwarded_host:
        action["append_x_forwarded_host"] = True


def _mirror(target: Target, percentage: Percent | None, whole: int) -> dict[str, Any] | None:
    share = fraction(percentage, whole)
    if not share.get("numerator"):
        return None
    return {
        "cluster": target.cluster,
        "runtime_fraction": {"default_value": share},
        "trace_sampled": {},
        "disable_shadow_host_suffix_append": True,
    }


def _weighted(destination: HTTPRouteDestination, target: Target) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": target.cluster, "weight": wrapped(destination.weight)}
    headers.apply_headers(fields, destination.headers)
    own = headers.authority(destination.headers)
    if own:
        fields["host_rewrite_literal"] = own
    if overrides := alpn_config(target):
        fields["typed_per_filter_config"] = overrides
    return fields
