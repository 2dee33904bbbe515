"""Faults of the Gateway API's routes for the mesh, of routes for connections, and of Hosts that nobody expects."""

from fault_cases import HOME, fault, of_family, routing, serving


def _api(name: str, rules: str, *more: str, cause: str | None = None, **options: object) -> dict[str, object]:
    """An HTTPRoute for a Service in the mesh."""
    text = f"""
kind: HTTPRoute
metadata: {{name: {name}}}
spec:
  parentRefs: [{{group: "", kind: Service, name: {name}, port: 80}}]
  rules: {rules}
---
"""
    blamed = f"HTTPRoute/{HOME}/{name}" if cause is None else cause
    return fault(name, serving(name) + text, *more, cause=blamed, **options)


ROUTES = of_family(
    "API",
    _api("api-backend", "[{backendRefs: [{name: api-backend-lost, port: 80}]}]"),
    _api("api-port", "[{backendRefs: [{name: api-port, port: 81}]}]"),
    _api(
        "api-match", "[{matches: [{path: {type: PathPrefix, value: /v1}}], backendRefs: [{name: api-match, port: 80}]}]"
    ),
    _api("api-method", "[{matches: [{method: PUT}], backendRefs: [{name: api-method, port: 80}]}]"),
    _api(
        "api-header",
        "[{matches: [{headers: [{name: x-beta, value: 'yes'}]}], backendRefs: [{name: api-header, port: 80}]}]",
        headers={"x-beta": "no"},
    ),
    _api(
        "api-timeout",
        "[{timeouts: {request: 200ms}, backendRefs: [{name: api-timeout, port: 80}]}]",
        takes=1.0,
    ),
    _api(
        "api-nobody",
        "[{backendRefs: [{name: api-nobody-there, port: 80}]}]",
        serving("api-nobody-there", selector="app: nobody"),
        cause=f"Service/{HOME}/api-nobody-there",
    ),
    _api("api-well", "[{backendRefs: [{name: api-well, port: 80}]}]", cause=""),
    _api(
        "api-redirect",
        "[{filters: [{type: RequestRedirect, requestRedirect: {hostname: other.example.com, statusCode: 302}}]}]",
        cause="",
    ),
)


def _connected(name: str, route: str, *more: str, cause: str) -> dict[str, object]:
    """A VirtualService for connections."""
    text = f"""
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{name}]
  tcp: [{{{route}}}]
---
"""
    own = serving(name, port=9001, port_name="tcp", target=9001)
    return fault(name, own + text, *more, url=f"tcp://{name}:9001", cause=cause)


CONNECTIONS = of_family(
    "TCP",
    _connected(
        "tcp-subset",
        "route: [{destination: {host: tcp-subset, subset: v9}}]",
        cause=f"VirtualService/{HOME}/tcp-subset",
    ),
    _connected(
        "tcp-host",
        "route: [{destination: {host: tcp-host-lost, port: {number: 9001}}}]",
        cause=f"VirtualService/{HOME}/tcp-host",
    ),
    _connected(
        "tcp-nobody",
        "route: [{destination: {host: tcp-nobody-there, port: {number: 9001}}}]",
        serving("tcp-nobody-there", port=9001, port_name="tcp", target=9001, selector="app: nobody"),
        cause=f"Service/{HOME}/tcp-nobody-there",
    ),
    _connected("tcp-well", "route: [{destination: {host: tcp-well, port: {number: 9001}}}]", cause=""),
)

HOSTS = of_family(
    "HOST",
    fault("host-unknown", serving("host-unknown"), host="host-nobody.example.com"),
    fault(
        "host-blocked",
        url="http://scope-shown.traffic/",
        source="scoped",
        host="host-nobody.example.com",
        cause="Sidecar/scoped/default",
    ),
    fault(
        "host-of-another",
        routing("host-of-another", "{match: [{uri: {exact: /only}}], TO}"),
        serving("host-asked"),
        url="http://host-asked/",
        host="host-of-another",
        cause=f"VirtualService/{HOME}/host-of-another",
    ),
)
FAULTS = (*ROUTES, *CONNECTIONS, *HOSTS)
