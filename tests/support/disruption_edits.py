"""The edits that the disruption test makes to its manifests, one after the other.

`EDITS` go through the states in order: each `Edit` replaces files of the state before it, or takes them away, and is
one thing that operators do. Where an edit must be undone before others make sense, its undoing is an edit like any
other.
"""

from collections.abc import Iterator, Mapping

import msgspec
from disruption_manifests import (
    HTTP,
    NETWORKING,
    SIDE_PORTS,
    TCP,
    State,
    credential,
    destination_rule,
    gateway,
    mesh_config,
    server,
    service,
    virtual_service,
)

SECURITY = "apiVersion: security.istio.io/v1"
ENVOY_FILTER = "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter"


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One edit."""

    name: str
    files: Mapping[str, str | None]
    """New contents; None takes the file away."""

    def apply(self, state: State) -> State:
        """The state after it."""
        merged = {**state, **self.files}
        return {name: text for name, text in merged.items() if text is not None}


def edit(name: str, **files: str | None) -> Edit:
    return Edit(name=name, files={file.replace("_", "-"): text for file, text in files.items()})


def policy(kind: str, name: str, spec: str, namespace: str = "apps") -> str:
    return f"""
{SECURITY}
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}}}
spec: {spec}
"""


def envoy_filter(name: str, patches: str, app: str = "ws") -> str:
    return f"""
{ENVOY_FILTER}
metadata: {{name: {name}, namespace: apps}}
spec:
  workloadSelector: {{labels: {{app: {app}}}}}
  configPatches:
{patches}
"""


_MORE = "{name: http-more, port: 8085, targetPort: 8085}"
_BRANCH = """
    - name: branch
      match: [{uri: {prefix: /branch}}]
      route: [{destination: {host: ws.apps.svc.cluster.local, subset: v1, port: {number: 80}}}]
"""
_OUTLIERS = "outlierDetection: {consecutive5xxErrors: 3, interval: 5s, baseEjectionTime: 30s}"
_POOL = "connectionPool: {tcp: {maxConnections: 500}, http: {http1MaxPendingRequests: 300}}"
_KEYS = '{"keys":[{"kty":"oct","kid":"one","k":"c2VjcmV0LXRoYXQtaXMtbG9uZy1lbm91Z2g"}]}'
_EGRESS = """
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: other}
spec:
  egress: [{hosts: ["watched/*", "apps/ws.apps.svc.cluster.local"]}]
"""
_LISTENER_PATCH = """
    - applyTo: LISTENER
      match: {context: SIDECAR_INBOUND, listener: {name: virtualInbound}}
      patch: {operation: MERGE, value: {per_connection_buffer_limit_bytes: 65536}}
"""
_CLUSTER_PATCH = """
    - applyTo: CLUSTER
      match: {context: SIDECAR_OUTBOUND, cluster: {service: ws.apps.svc.cluster.local}}
      patch: {operation: MERGE, value: {connect_timeout: 7s}}
"""
_ROUTE_PATCH = """
    - applyTo: VIRTUAL_HOST
      match: {context: SIDECAR_OUTBOUND, routeConfiguration: {name: "80"}}
      patch: {operation: MERGE, value: {include_attempt_count_in_response: true}}
"""
_FILTER_PATCH = """
    - applyTo: HTTP_FILTER
      match:
        context: SIDECAR_INBOUND
        listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}
      patch:
        operation: INSERT_FIRST
        value:
          name: note
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
            mutations: {request_mutations: [{remove: x-none}]}
"""
_TELEMETRY = """
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: logs, namespace: apps}
spec:
  selector: {matchLabels: {app: side}}
  accessLogging: [{disabled: true}]
"""
_METRICS = """
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: tags, namespace: other}
spec:
  metrics:
    - providers: [{name: prometheus}]
      overrides: [{match: {metric: REQUEST_COUNT}, tagOverrides: {extra: {value: "'yes'"}}}]
"""


def outside_entry(name: str, ports: str, more: str = "") -> str:
    return f"""
{NETWORKING}
kind: ServiceEntry
metadata: {{name: {name}, namespace: other}}
spec:
  hosts: [{name}.example.net]
  ports: [{ports}]
  resolution: STATIC
  location: MESH_EXTERNAL
{more}
  endpoints: [{{address: 192.0.2.9}}]
"""


def _virtual_service_edits() -> Iterator[Edit]:
    yield edit("VirtualService: weights", routes=virtual_service(shares=(50, 50)))
    yield edit("VirtualService: timeout", routes=virtual_service("timeout: 5s"))
    yield edit("VirtualService: header", routes=virtual_service("headers: {request: {set: {x-tier: gold}}}"))
    yield edit("VirtualService: retries", routes=virtual_service("retries: {attempts: 4, retryOn: 5xx}"))
    fault = "fault: {delay: {percentage: {value: 1}, fixedDelay: 0.01s}}"
    yield edit("VirtualService: fault", routes=virtual_service(fault))
    yield edit("VirtualService: route before", routes=virtual_service(before=_BRANCH))
    tcp = virtual_service().replace(
        "  http:\n",
        "  tcp: [{match: [{port: 9000}], route: [{destination: {host: ws.apps.svc.cluster.local, subset: v1, "
        "port: {number: 9000}}}]}]\n  http:\n",
    )
    yield edit("VirtualService: route of TCP", routes=tcp)
    yield edit("VirtualService: route of TCP removed", routes=virtual_service())


def _destination_rule_edits() -> Iterator[Edit]:
    yield edit("DestinationRule: outlier detection", rule=destination_rule(_OUTLIERS))
    yield edit("DestinationRule: connection pool", rule=destination_rule(_POOL))
    yield edit("DestinationRule: load balancing", rule=destination_rule("loadBalancer: {simple: RANDOM}"))
    subset = "    - {name: more, labels: {version: v1, app: ws}}"
    yield edit("DestinationRule: subset", rule=destination_rule(subsets=subset))
    yield edit("DestinationRule: TLS", rule=destination_rule("tls: {mode: ISTIO_MUTUAL}"))
    yield edit("DestinationRule: TLS removed", rule=destination_rule())
    only = virtual_service().replace("subset: all", "subset: v1")
    yield edit("VirtualService: one subset", routes=only)
    fewer = destination_rule().replace("    - {name: all, labels: {app: ws}}\n", "")
    yield edit("DestinationRule: subset gone", rule=fewer)
    yield edit("DestinationRule: subset back", rule=destination_rule())
    yield edit("VirtualService: both subsets", routes=virtual_service())


def _service_edits() -> Iterator[Edit]:
    yield edit("Service: port added", ws_service=service("ws", "ws", f"{HTTP}, {TCP}, {_MORE}"))
    yield edit("Service: port removed", ws_service=service("ws", "ws", f"{HTTP}, {TCP}"))
    renamed = TCP.replace("name: tcp", "name: http-raw")
    yield edit("Service: port's protocol", ws_service=service("ws", "ws", f"{HTTP}, {renamed}"))
    yield edit("Service: port's protocol back", ws_service=service("ws", "ws", f"{HTTP}, {TCP}"))
    noted = service("ws", "ws", f"{HTTP}, {TCP}", annotations='{team: "red"}')
    yield edit("Service: annotation", ws_service=noted)
    labelled = service("ws", "ws", f"{HTTP}, {TCP}", labels="{tier: front}")
    yield edit("Service: label", ws_service=labelled)
    yield edit("Service new, HTTP", fresh=service("fresh", "ws", HTTP))
    fresh = service("fresh", "ws", HTTP) + "---" + service("raw", "ws", "{name: tcp, port: 9100, targetPort: 9000}")
    yield edit("Service new, TCP", fresh=fresh)
    yield edit("ServiceEntry: HTTP", world=outside_entry("world", "{number: 80, name: http, protocol: HTTP}"))
    deep = outside_entry("deep", "{number: 9000, name: tcp, protocol: TCP}", "  addresses: [192.0.2.9]")
    yield edit("ServiceEntry: TCP", deep=deep)
    yield edit("Sidecar: egress", sidecar=_EGRESS)
    hidden = _EGRESS.replace("apps/ws.apps.svc.cluster.local", "apps/fresh.apps.svc.cluster.local")
    yield edit("Sidecar: server hidden", sidecar=hidden)
    yield edit("Sidecar removed", sidecar=None)


def _security_edits() -> Iterator[Edit]:
    yield edit("PeerAuthentication: STRICT", peers=policy("PeerAuthentication", "default", "{mtls: {mode: STRICT}}"))
    yield edit("PeerAuthentication removed", peers=None)
    one_port = "{selector: {matchLabels: {app: ws}}, mtls: {mode: PERMISSIVE}, portLevelMtls: {9000: {mode: DISABLE}}}"
    yield edit("PeerAuthentication: one port", peers=policy("PeerAuthentication", "ws", one_port))
    yield edit("PeerAuthentication of one port removed", peers=None)
    allow = "{selector: {matchLabels: {app: ws}}, rules: [{}]}"
    yield edit("AuthorizationPolicy: ALLOW", allow=policy("AuthorizationPolicy", "all", allow))
    deny = "{selector: {matchLabels: {app: side}}, action: DENY, rules: [{to: [{operation: {paths: [/secret]}}]}]}"
    yield edit("AuthorizationPolicy: DENY", deny=policy("AuthorizationPolicy", "secret", deny))
    tokens = f"{{selector: {{matchLabels: {{app: ws}}}}, jwtRules: [{{issuer: one.example, jwks: '{_KEYS}'" + "}]}"
    yield edit("RequestAuthentication", tokens=policy("RequestAuthentication", "one", tokens))
    yield edit("AuthorizationPolicies removed", allow=None, deny=None, tokens=None)


def _extension_edits() -> Iterator[Edit]:
    yield edit("EnvoyFilter: listener", patches=envoy_filter("one", _LISTENER_PATCH))
    yield edit("EnvoyFilter removed", patches=None)
    yield edit("EnvoyFilter: cluster", patches=envoy_filter("one", _CLUSTER_PATCH, "client"))
    yield edit("EnvoyFilter: virtual host", patches=envoy_filter("one", _ROUTE_PATCH, "client"))
    yield edit("EnvoyFilter: HTTP filter", patches=envoy_filter("one", _FILTER_PATCH, "side"))
    yield edit("Telemetry: access log", telemetry=_TELEMETRY)
    yield edit("Telemetry: tags", telemetry=_TELEMETRY + "---" + _METRICS)


def _gateway_edits() -> Iterator[Edit]:
    port = "    - {port: {number: 81, name: http-more, protocol: HTTP}, hosts: [ws.example]}"
    yield edit("Gateway: server added", gateway=gateway(port))
    host = gateway(port).replace('hosts: ["ws.example"]', 'hosts: ["ws.example", "more.example"]')
    yield edit("Gateway: host added", gateway=host)
    yield edit("Gateway: server removed", gateway=gateway())
    yield edit("Gateway: version of TLS", gateway=gateway(tls=", minProtocolVersion: TLSV1_3"))
    yield edit("Secret: certificate renewed", credential=credential())


def _mesh_edits() -> Iterator[Edit]:
    yield edit("Mesh: encoding of the access log", mesh=mesh_config("    accessLogEncoding: JSON"))
    yield edit("Deployment: annotation", side=server("side", SIDE_PORTS, annotations='{note: "yes"}'))
    yield edit("Deployment: label of its pods", side=server("side", SIDE_PORTS, labels=", tier: back"))
    yield edit("Deployment: no pods", side=server("side", SIDE_PORTS, replicas=0))


EDITS: tuple[Edit, ...] = (
    *_virtual_service_edits(),
    *_destination_rule_edits(),
    *_service_edits(),
    *_security_edits(),
    *_extension_edits(),
    *_gateway_edits(),
    *_mesh_edits(),
)
