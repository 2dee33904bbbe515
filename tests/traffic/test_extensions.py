"""What users add to Envoy themselves: EnvoyFilters at sidecars and gateways, good and bad."""

import hashlib

from eventually import eventually_blocking
from traffic_manifests import WORLD, behaviour, routes, service
from traffic_mesh import MODULE
from traffic_programs import statuses

NEAR = "app: echo, place: near"
MODULE_URL = "http://world.example.net:8080/module.wasm"
LUA = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"
LIMIT = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"


def filter_before_router(name: str, where: str, selector: str, config: str) -> str:
    """An EnvoyFilter that puts an HTTP filter before the router."""
    lines = "\n".join(f"            {line}" for line in config.strip("\n").splitlines())
    return f"""
kind: EnvoyFilter
metadata: {{name: {name}}}
spec:
  workloadSelector: {{labels: {{{selector}}}}}
  configPatches:
    - applyTo: HTTP_FILTER
      match: {where}
      patch:
        operation: INSERT_BEFORE
        value:
          name: {name}
          typed_config:
{lines}
---
"""


INBOUND_ROUTER = (
    "{context: SIDECAR_INBOUND, listener: {portNumber: PORT, filterChain: {filter: {name:"
    " envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}}}}"
)


@behaviour(
    service("lua", target=8083, selector=NEAR),
    filter_before_router(
        "lua-header",
        INBOUND_ROUTER.replace("PORT", "8083"),
        NEAR,
        f"""
"@type": {LUA}
default_source_code:
  inline_string: |
    function envoy_on_request(handle) handle:headers():add("x-lua", "seen") end
    function envoy_on_response(handle) handle:headers():add("x-lua-answer", "written") end
""",
    ),
    service("without-lua", selector=NEAR),
)
def test_an_envoy_filter_runs_lua_on_one_port_of_one_workload(client):
    answer = client.get("http://lua/")
    assert (answer.seen.header("x-lua"), answer.header("x-lua-answer")) == ("seen", "written")
    plain = client.get("http://without-lua/")
    assert (plain.seen.header("x-lua"), plain.header("x-lua-answer")) == ("", "")


@behaviour(
    service("limited", selector=NEAR),
    """
kind: EnvoyFilter
metadata: {name: limited}
spec:
  workloadSelector: {labels: {app: client}}
  configPatches:
    - applyTo: HTTP_FILTER
      match:
        context: SIDECAR_OUTBOUND
        listener:
          filterChain:
            filter:
              name: envoy.filters.network.http_connection_manager
              subFilter: {name: envoy.filters.http.router}
      patch:
        operation: INSERT_BEFORE
        value:
          name: envoy.filters.http.local_ratelimit
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
            stat_prefix: limited
    - applyTo: HTTP_ROUTE
      match:
        context: SIDECAR_OUTBOUND
        routeConfiguration: {vhost: {name: "limited.traffic.svc.cluster.local:80"}}
      patch:
        operation: MERGE
        value:
          typed_per_filter_config:
            envoy.filters.http.local_ratelimit:
              "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: limited
              token_bucket: {max_tokens: 3, tokens_per_fill: 3, fill_interval: 3600s}
              filter_enabled: {default_value: {numerator: 100}}
              filter_enforced: {default_value: {numerator: 100}}
""",
    service("unlimited", selector=NEAR),
)
def test_an_envoy_filter_limits_one_route(client, visitor):
    assert statuses(client.send("http://limited/", count=8)) == {200: 3, 429: 5}
    assert statuses(client.send("http://unlimited/", count=8)) == {200: 8}
    assert statuses(visitor.send("http://limited/", count=8)) == {200: 8}


@behaviour(
    routes("merged", "- {timeout: 20s, route: [{destination: {host: merged}}]}", selector=NEAR),
    """
kind: EnvoyFilter
metadata: {name: merged}
spec:
  workloadSelector: {labels: {app: client}}
  configPatches:
    - applyTo: HTTP_ROUTE
      match:
        context: SIDECAR_OUTBOUND
        routeConfiguration: {vhost: {name: "merged.traffic.svc.cluster.local:80"}}
      patch:
        operation: MERGE
        value: {route: {timeout: 0.2s}}
""",
)
def test_an_envoy_filter_changes_a_route(client, visitor):
    assert client.get("http://merged/", headers={"x-delay": "2"}).status == 504
    assert visitor.get("http://merged/", headers={"x-delay": "0.5"}).status == 200


@behaviour(
    service("without-cluster", selector=NEAR),
    """
kind: EnvoyFilter
metadata: {name: without-cluster}
spec:
  workloadSelector: {labels: {app: client}}
  configPatches:
    - applyTo: CLUSTER
      match: {context: SIDECAR_OUTBOUND, cluster: {service: without-cluster.traffic.svc.cluster.local}}
      patch: {operation: REMOVE}
""",
)
def test_an_envoy_filter_removes_a_cluster(client, visitor):
    assert client.get("http://without-cluster/").status == 503
    assert visitor.get("http://without-cluster/").status == 200


def plugin(name: str, port: int, url: str, more: str = "") -> str:
    """A Service on a port of `near` that a Wasm module guards."""
    return f"""
{service(name, target=port, selector=NEAR)}
kind: WasmPlugin
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: echo, place: near}}}}
  url: {url}
  phase: AUTHN
  match: [{{mode: SERVER, ports: [{{number: {port}}}]}}]
  {more}
---
"""


@behaviour(WORLD, plugin("wasm", 8084, MODULE_URL, f"sha256: '{hashlib.sha256(MODULE).hexdigest()}'"))
def test_a_wasm_module_is_fetched_and_run(client):
    answer = client.get("http://wasm/")
    assert (answer.status, answer.header("x-wasm")) == (200, "written")


@behaviour(
    WORLD,
    plugin("wasm-closed", 8085, MODULE_URL, f"sha256: '{'0' * 64}'"),
    plugin("wasm-open", 8086, "http://world.example.net:8080/missing", "failStrategy: FAIL_OPEN"),
)
def test_without_its_wasm_module_a_port_is_closed_unless_the_plugin_says_otherwise(client):
    closed = client.get("http://wasm-closed/")
    assert (closed.status, closed.body) == (403, "RBAC: access denied")
    opened = client.get("http://wasm-open/")
    assert (opened.status, opened.has("x-wasm")) == (200, False)


@behaviour(service("beside-a-bad-filter"))
def test_a_bad_envoy_filter_is_told_and_harms_nobody(client, mesh):
    bad = """
kind: EnvoyFilter
metadata: {name: bad}
spec:
  configPatches:
    - applyTo: HTTP_FILTER
      match: {context: ANY, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}
      patch:
        operation: INSERT_FIRST
        value:
          name: bad
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, no_such_field: 1}
"""
    mesh.apply("bad", [bad])
    try:
        assert client.get("http://beside-a-bad-filter/").status == 200
        eventually_blocking(lambda: [item for item in mesh.problems()["objects"] if "bad" in str(item)])
    finally:
        mesh.apply("bad", [])
