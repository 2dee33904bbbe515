"""Filters between the route and its action: preflights, limits, authorizers, extensions, gRPC."""

import pytest
from traced_mesh import BASE, SHOP, ask, blamed, pod, service, world_of


def envoy_filter(name: str, value: str) -> str:
    return f"""
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {{name: {name}, namespace: web}}
spec:
  workloadSelector: {{labels: {{app: server}}}}
  configPatches:
    - applyTo: HTTP_FILTER
      match: {{context: SIDECAR_INBOUND, listener: {{filterChain: {{filter: {{name: envoy.filters.network.http_connection_manager}}}}}}}}
      patch: {{operation: INSERT_BEFORE, value: {value}}}
"""


def limit(tokens: int) -> str:
    whole = "{default_value: {numerator: 100}}"
    config = (
        '{"@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit,'
        f" stat_prefix: x, token_bucket: {{max_tokens: {tokens}, fill_interval: 60s}},"
        f" filter_enabled: {whole}, filter_enforced: {whole}}}"
    )
    return envoy_filter("limit", f"{{name: envoy.filters.http.local_ratelimit, typed_config: {config}}}")


def test_a_local_rate_limit_lets_the_first_request_through_and_is_shown():
    found = ask(world_of(SHOP, limit(10)), "http://server/")
    assert found.outcome == "delivered"
    assert "local rate limit: 10 requests, refilled every 60s" in [step.title for step in found.steps]


@pytest.mark.parametrize(("earlier", "flag", "certain"), [(0, "-", True), (1, "-", True), (2, "RL", True)])
def test_a_local_rate_limit_ends_those_beyond_it(earlier, flag, certain):
    found = ask(world_of(SHOP, limit(2)), "http://server/", earlier=earlier)
    assert (found.flag, found.certain) == (flag, certain)
    if flag == "RL":
        assert (found.outcome, found.status, found.details) == ("limited", 429, "local_rate_limited")
        assert blamed(found) == "EnvoyFilter/limit"


def test_requests_at_once_may_exceed_a_rate_limit():
    assert not ask(world_of(SHOP, limit(2)), "http://server/", at_once=3).certain


CORS = """
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: routes, namespace: web}
spec:
  hosts: [server]
  http:
    - corsPolicy: {allowOrigins: [{exact: "http://a.example"}], allowMethods: [GET]}
      route: [{destination: {host: server}}]
"""


def preflight(origin: str) -> dict[str, str]:
    return {"origin": origin, "access-control-request-method": "GET"}


def test_preflights_of_allowed_origins_are_answered_at_once():
    found = ask(world_of(SHOP, CORS), "http://server/", headers=preflight("http://a.example"), method="OPTIONS")
    assert (found.outcome, found.status, found.details) == ("responded", 200, "cors_response")
    assert found.side == "client.web"


def test_other_preflights_go_on():
    world = world_of(SHOP, CORS)
    assert ask(world, "http://server/", headers=preflight("http://b.example"), method="OPTIONS").outcome == "delivered"
    assert ask(world, "http://server/", method="OPTIONS").outcome == "delivered"


CUSTOM = """
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: asked, namespace: web}
spec:
  selector: {matchLabels: {app: server}}
  action: CUSTOM
  provider: {name: judge}
  rules: [{to: [{operation: {paths: ["/asked*"]}}]}]
"""


def provider(**more: object) -> dict[str, object]:
    settings = {"service": "judge.web.svc.cluster.local", "port": 9000, **more}
    return {"extensionProviders": [{"name": "judge", "envoyExtAuthzGrpc": settings}]}


JUDGE = pod("judge", ports="9000") + service("judge", port="{name: grpc, port: 9000}")


def test_an_authorizer_is_asked_about_what_its_policy_matches():
    world = world_of(SHOP, CUSTOM, JUDGE, config=provider())
    found = ask(world, "http://server/asked/x")
    assert (found.outcome, found.certain) == ("delivered", False)
    assert found.depends_on == ("what the authorizer outbound|9000||judge.web.svc.cluster.local answers",)
    assert ask(world, "http://server/other").certain


def test_an_authorizer_without_endpoints_denies():
    nobody = service("judge", port="{name: grpc, port: 9000}", app="nobody")
    found = ask(world_of(SHOP, CUSTOM, nobody, config=provider()), "http://server/asked")
    assert (found.outcome, found.status, found.flag, found.details) == ("denied", 403, "UAEX", "ext_authz_error")
    assert blamed(found) == "Service/judge"
    assert [visit.name for visit in found.visits if visit.kind == "rule"] == [found.policy]
    assert "-rule[0]" in found.policy
    opened = world_of(SHOP, CUSTOM, nobody, config=provider(failOpen=True))
    assert ask(opened, "http://server/asked").outcome == "delivered"


def test_denials_of_grpc_calls_are_told_in_trailers():
    deny = """
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: none, namespace: web}
spec: {selector: {matchLabels: {app: server}}, action: DENY, rules: [{}]}
"""
    text = BASE + pod("client") + pod("server") + service("server", port="{name: grpc, port: 80, targetPort: 8080}")
    found = ask(world_of(text, deny), "grpc://server/pkg.Service/Method")
    assert (found.outcome, found.status, found.link) == ("denied", 200, "policy")
    assert "HTTP 403 is told as grpc-status 7" in [step.title for step in found.steps]


def test_extensions_make_a_verdict_hang_on_them():
    lua = '{"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: ""}}'
    found = ask(world_of(SHOP, envoy_filter("lua", f"{{name: my-lua, typed_config: {lua}}}")), "http://server/")
    assert (found.outcome, found.depends_on) == ("delivered", ("what the extension my-lua does",))


def test_upgrades_that_nobody_allows_are_refused():
    headers = {"connection": "upgrade", "upgrade": "something"}
    found = ask(world_of(SHOP), "http://server/", headers=headers)
    assert (found.status, found.details) == (403, "upgrade_failed")
    assert ask(world_of(SHOP), "http://server/", headers={**headers, "upgrade": "WebSocket"}).outcome == "delivered"


def test_what_an_authorizer_answers_may_be_said():
    world = world_of(SHOP, CUSTOM, JUDGE, config=provider())
    found = ask(world, "http://server/asked/x", authorizer=401)
    assert (found.outcome, found.status, found.flag, found.details) == ("denied", 401, "UAEX", "ext_authz_denied")
    assert (found.certain, blamed(found)) == (True, "AuthorizationPolicy/asked")
    allowed = ask(world, "http://server/asked/x", authorizer=200)
    assert (allowed.outcome, allowed.certain) == ("delivered", True)
    broken = ask(world, "http://server/asked/x", authorizer=500)
    assert (broken.status, broken.details) == (403, "ext_authz_error")


@pytest.mark.parametrize("config", [provider(), {}])
def test_an_authorizer_that_cannot_be_used_denies_for_certain(config):
    found = ask(world_of(SHOP, CUSTOM, config=config), "http://server/asked")
    assert (found.outcome, found.status, found.certain) == ("denied", 403, True)
    assert blamed(found) == "AuthorizationPolicy/asked"


def test_of_two_rate_limits_the_one_of_the_port_is_blamed():
    other = limit(9).replace("name: limit,", "name: a-limit,").replace("stat_prefix: x", "stat_prefix: other")
    other = other.replace("listener: {filterChain", "listener: {portNumber: 9000, filterChain")
    own = limit(1).replace("listener: {filterChain", "listener: {portNumber: 8080, filterChain")
    found = ask(world_of(SHOP, other, own), "http://server/", earlier=1)
    assert (found.flag, blamed(found)) == ("RL", "EnvoyFilter/limit")
