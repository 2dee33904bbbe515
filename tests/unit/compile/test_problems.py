"""What the compiler leaves out is told once, on its object, whether or not a proxy asks; and no more once it is mended."""

from typing import Any

import pytest

from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.api.meta import Key
from mizzen.compile import problems, resource, snapshot
from mizzen.compile.security import authorization
from mizzen.incremental import Engine
from mizzen.model.mesh import MESH
from mizzen.model.proxy import parse_node
from mizzen.sources.documents import parse_yaml

REGEX = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: regex, namespace: shop}
spec:
  hosts: [cart]
  http:
  - match: [{uri: {prefix: /}, sourceLabels: {app: front}}, {uri: {regex: "REGEX"}}]
    route: [{destination: {host: cart}}]
"""
FILTER = """
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: timeout, namespace: shop}
spec: {configPatches: [{applyTo: CLUSTER, patch: {operation: OPERATION, value: {connect_timeout: TIMEOUT}}}]}
"""
SERVERS = """
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: NAME, namespace: shop, creationTimestamp: "CREATED"}
spec: {selector: {app: ingress}, servers: [{port: {number: 80, name: http, protocol: PROTOCOL}, hosts: ["*"]}]}
"""


def peer(name: str, created: str, selector: str = "") -> str:
    return f"""
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {{name: {name}, namespace: shop, creationTimestamp: "{created}"}}
spec: {{mtls: {{mode: STRICT}}{selector}}}
"""


class Mesh:
    """An engine under examination."""

    def __init__(self) -> None:
        self.db = Engine()

    def put(self, text: str) -> Key:
        decoded = decode_object(parse_yaml(text)[0].value)
        assert decoded.key is not None
        self.db.set(decoded.key, decoded.object)
        return decoded.key

    def told(self) -> list[tuple[str, str, str, str]]:
        for part in problems.parts(self.db):
            self.db.root(problems.examine, *part).value()
        found = problems.gather(self.db)
        return [(p.code, p.key.name if p.key is not None else "", p.path, p.message) for p in found]


@pytest.fixture
def mesh() -> Mesh:
    return Mesh()


def proxy(kind: str, **labels: str) -> Any:
    metadata = {"NAMESPACE": "shop", "LABELS": labels, "INSTANCE_IPS": "10.0.0.1", "MIZZEN_DIALECT": "envoy"}
    return parse_node({"id": f"{kind}~10.0.0.1~a.shop~shop.svc.cluster.local", "metadata": metadata})


def test_nothing_is_told_of_an_empty_mesh(mesh: Mesh) -> None:
    assert mesh.told() == []


def test_a_route_with_a_bad_regex_is_told_until_it_is_mended(mesh: Mesh) -> None:
    mesh.put(REGEX.replace("REGEX", "a("))
    ((code, name, path, message),) = mesh.told()
    assert (code, name, path) == ("unusable-route", "regex", "spec.http[0].match[1]")
    assert "'a('" in message
    mesh.put(REGEX.replace("REGEX", "a"))
    assert mesh.told() == []


def test_routes_for_a_gateway_a_port_and_a_namespace_are_told_too(mesh: Mesh) -> None:
    text = REGEX.replace("REGEX", "a(").replace("{uri: {regex", "{gateways: [web], port: 8443, uri: {regex")
    mesh.put(text.replace("hosts: [cart]", "hosts: [cart]\n  gateways: [web, mesh]"))
    assert [path for _, _, path, _ in mesh.told()] == ["spec.http[0].match[1]"]


def test_a_route_that_envoy_would_refuse_is_told_with_its_effect(mesh: Mesh) -> None:
    route = '[{destination: {host: cart}, headers: {request: {set: {"a\\nb": c}}}}]'
    mesh.put(REGEX.replace("REGEX", "a").replace("[{destination: {host: cart}}]", route))
    found = mesh.told()
    assert [path for _, _, path, _ in found] == ["spec.http[0].match[0]", "spec.http[0].match[1]"]
    assert all(message.startswith("answered with 503, for Envoy would refuse the route: ") for *_, message in found)


def test_what_a_proxy_asks_for_is_not_told_twice(mesh: Mesh) -> None:
    mesh.put(REGEX.replace("REGEX", "a("))
    root = mesh.db.root(snapshot.resources, proxy("sidecar", app="cart"), resource.ROUTE, frozenset(["80"]))
    root.value()
    assert len(mesh.told()) == 1


def test_an_unreadable_patch_is_told_without_a_proxy(mesh: Mesh) -> None:
    mesh.put(FILTER.replace("OPERATION", "ADD").replace("TIMEOUT", "3x"))
    ((code, name, path, _),) = mesh.told()
    assert (code, name, path) == ("unusable-patch", "timeout", "spec.configPatches[0].patch.value")


def test_a_patch_whose_outcome_envoy_would_refuse_is_told_while_a_proxy_has_it(mesh: Mesh) -> None:
    mesh.put(FILTER.replace("OPERATION", "MERGE").replace("TIMEOUT", "-3s"))
    assert mesh.told() == []
    root = mesh.db.root(snapshot.resources, proxy("sidecar"), resource.CLUSTER, None)
    root.value()
    assert {(code, name) for code, name, *_ in mesh.told()} == {("unusable-patch", "timeout")}
    root.release()
    assert mesh.told() == []


def test_of_policies_for_a_whole_namespace_the_younger_ones_are_shadowed(mesh: Mesh) -> None:
    mesh.put(peer("young", "2026-02-01T00:00:00Z"))
    mesh.put(peer("old", "2026-01-01T00:00:00Z"))
    mesh.put(peer("selecting", "2026-03-01T00:00:00Z", ", selector: {matchLabels: {app: a}}"))
    ((code, name, _, message),) = mesh.told()
    assert (code, name) == ("shadowed", "young")
    assert "old counts" in message


def test_a_server_that_collides_is_told_while_a_gateway_has_both(mesh: Mesh) -> None:
    for name, created, protocol in (("one", "2026-01-01", "HTTP"), ("two", "2026-02-01", "TCP")):
        text = SERVERS.replace("NAME", name).replace("CREATED", f"{created}T00:00:00Z").replace("PROTOCOL", protocol)
        mesh.put(text)
    assert mesh.told() == []
    mesh.db.root(snapshot.resources, proxy("router", app="ingress"), resource.LISTENER, None).value()
    ((code, name, path, message),) = mesh.told()
    assert (code, name, path) == ("unusable-server", "two", "spec.servers[0]")
    assert message == "left out, for an earlier server has port 80"


def test_a_format_that_envoy_does_not_read_is_told_of_the_mesh_config(mesh: Mesh) -> None:
    written = {"accessLogFile": "/dev/stdout", "accessLogFormat": "%NOPE%"}
    provider = {"name": "x", "envoyFileAccessLog": {"path": "/x", "logFormat": {"labels": {"a": {"b": "%REQ%"}}}}}
    mesh.db.set(MESH, merge_mesh_config({**written, "extensionProviders": [provider]})[0])
    assert [(code, path) for code, _, path, _ in mesh.told()] == [
        ("unreadable-format", "accessLogFormat"),
        ("unreadable-format", "extensionProviders[0].envoyFileAccessLog.logFormat.labels.a.b"),
    ]


def test_a_route_that_its_parent_does_not_take_is_told(mesh: Mesh) -> None:
    mesh.put(
        "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: istio}, "
        "spec: {controllerName: istio.io/gateway-controller}}"
    )
    mesh.put(
        "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: web, namespace: shop}, "
        "spec: {gatewayClassName: istio, listeners: [{name: a, port: 80, protocol: HTTP, hostname: a.example}]}}"
    )
    mesh.put(
        "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: shop}, "
        "spec: {parentRefs: [{name: web}], hostnames: [b.example], rules: [{backendRefs: [{name: x, port: 80}]}]}}"
    )
    found = {(code, name) for code, name, *_ in mesh.told()}
    assert ("NoMatchingListenerHostname", "r") in found
    assert ("BackendNotFound", "r") in found


def test_a_policy_that_cannot_be_compiled_is_told_as_denying(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("source")

    mesh.put(
        "{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: p, namespace: shop}, "
        "spec: {rules: [{}]}}"
    )
    monkeypatch.setattr(authorization.rules, "build_rule", fail)
    ((code, name, _, message),) = mesh.told()
    assert (code, name) == ("not-compiled", "p")
    assert message == "everything that it selects is denied, for it cannot be compiled: KeyError: 'source'"


def test_a_change_examines_no_more_than_its_object(mesh: Mesh) -> None:
    for n in range(20):
        mesh.put(REGEX.replace("REGEX", "a(").replace("name: regex", f"name: r{n}"))
    mesh.told()
    before = mesh.db.runs_by_query["routes"]
    mesh.put(REGEX.replace("REGEX", "b(").replace("name: regex", "name: r7"))
    assert len(mesh.told()) == 20
    assert mesh.db.runs_by_query["routes"] - before <= 2
