"""Ingress: whose it is, and what a gateway serves for it."""

from typing import Any

import pytest
from meshes import apply, delete, mesh_of, proxy, told

from mizzen.api.meta import Key
from mizzen.compile import resource
from mizzen.incremental import Engine
from mizzen.model.convert.ingress import is_ours

CLASS = """
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: istio}
spec: {controller: istio.io/ingress-controller}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
"""
EDGE = """
apiVersion: v1
kind: Service
metadata: {name: istio-ingressgateway, namespace: istio-system}
spec:
  clusterIP: 10.96.0.20
  selector: {istio: ingressgateway}
  ports: [{name: http2, port: 80, targetPort: 8080}, {name: https, port: 443, targetPort: 8443}]
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: web}
spec:
  clusterIP: 10.96.1.1
  ports: [{name: http, port: 80}, {name: admin, port: 9000}]
"""
GATEWAY = proxy("istio-system", "gw-0", kind="router", labels={"istio": "ingressgateway"})


def ingress(
    name: str = "shop", rules: str = "", *, spec: str = "ingressClassName: istio", meta: str = "", day: int = 1
) -> str:
    return f"""
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: web, creationTimestamp: "2026-01-0{day}T00:00:00Z"{meta}}}
spec:
  {spec}
  rules:
  {rules or ON_HOST}
"""


def rule(host: str, *paths: str) -> str:
    return f"- {{host: {host}, http: {{paths: [{', '.join(paths)}]}}}}"


def path(text: str, kind: str | None = "Prefix", port: str = "number: 80") -> str:
    typed = f", pathType: {kind}" if kind else ""
    return f"{{path: '{text}'{typed}, backend: {{service: {{name: front, port: {{{port}}}}}}}}}"


ON_HOST = rule("shop.example", path("/"))


def virtual_hosts(db: Engine, name: str = "http.8080") -> dict[str, list[dict[str, Any]]]:
    found = told(db, GATEWAY, resource.ROUTE, name)[name]
    return {host["domains"][0]: host.get("routes", []) for host in found.get("virtualHosts", [])}


def where(routes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Each route's path condition and cluster."""
    keys = ("path", "pathSeparatedPrefix", "prefix")
    return [
        (next(f"{key} {r['match'][key]}" for key in keys if key in r["match"]), r["route"]["cluster"]) for r in routes
    ]


@pytest.mark.parametrize(
    ("spec", "meta", "mode", "expected"),
    [
        ("ingressClassName: istio", "", "STRICT", True),
        ("ingressClassName: istio", "", "OFF", False),
        ("ingressClassName: nginx", "", "STRICT", False),
        ("ingressClassName: nginx", "", "DEFAULT", False),
        ("ingressClassName: unknown", "", "DEFAULT", False),
        ("defaultBackend: null", "", "STRICT", False),
        ("defaultBackend: null", "", "DEFAULT", True),
        ("defaultBackend: null", "", "OFF", False),
        ("defaultBackend: null", ", annotations: {kubernetes.io/ingress.class: istio}", "STRICT", True),
        ("defaultBackend: null", ", annotations: {kubernetes.io/ingress.class: nginx}", "DEFAULT", False),
        ("defaultBackend: null", ", annotations: {kubernetes.io/ingress.class: istio}", "OFF", False),
        ("ingressClassName: nginx", ", annotations: {kubernetes.io/ingress.class: istio}", "STRICT", True),
    ],
)
def test_annotation_then_class_then_mode_say_whose_it_is(spec: str, meta: str, mode: str, expected: bool) -> None:
    db = mesh_of(CLASS, ingress(spec=spec, meta=meta), config={"ingressControllerMode": mode})
    assert is_ours(db, Key("Ingress", "web", "shop")) is expected


def test_a_host_is_routed_on_the_gateways_plain_port() -> None:
    hosts = virtual_hosts(mesh_of(CLASS, EDGE, ingress()))
    assert list(hosts) == ["shop.example"]
    assert where(hosts["shop.example"]) == [("prefix /", "outbound|80||front.web.svc.cluster.local")]


def test_longer_paths_go_first_and_of_one_length_exact_ones() -> None:
    rules = rule("shop.example", path("/"), path("/a"), path("/a", "Exact"), path("/abc", "Exact"), path("/ab"))
    hosts = virtual_hosts(mesh_of(CLASS, EDGE, ingress(rules=rules)))
    assert [condition for condition, _ in where(hosts["shop.example"])] == [
        "path /abc",
        "pathSeparatedPrefix /ab",
        "path /a",
        "pathSeparatedPrefix /a",
        "prefix /",
    ]


def test_a_path_of_no_type_is_exact_unless_it_ends_like_a_pattern() -> None:
    rules = rule("shop.example", path("/x", None), path("/y/*", None), path("/z.*", "ImplementationSpecific"))
    hosts = virtual_hosts(mesh_of(CLASS, EDGE, ingress(rules=rules)))
    assert [condition for condition, _ in where(hosts["shop.example"])] == [
        "path /x",
        "pathSeparatedPrefix /y",
        "pathSeparatedPrefix /z",
    ]


def test_a_port_may_be_named_and_a_name_that_the_service_lacks_has_no_route() -> None:
    rules = rule("shop.example", path("/admin", port="name: admin"), path("/no", port="name: nope"))
    hosts = virtual_hosts(mesh_of(CLASS, EDGE, ingress(rules=rules)))
    assert where(hosts["shop.example"]) == [
        ("pathSeparatedPrefix /admin", "outbound|9000||front.web.svc.cluster.local")
    ]


def test_rules_of_one_host_are_put_together_the_oldest_first() -> None:
    old = ingress("old", rule("shop.example", path("/a")), day=1)
    new = ingress("new", rule("shop.example", path("/b"), path("/longer")), day=2)
    db = mesh_of(CLASS, EDGE, new, old)
    routes = virtual_hosts(db)["shop.example"]
    assert [condition.split()[1] for condition, _ in where(routes)] == ["/longer", "/a", "/b"]
    origin = routes[0]["metadata"]["filterMetadata"]["istio"]["config"]
    assert origin.endswith("/namespaces/web/virtual-service/shop-example-old-istio-autogenerated-k8s-ingress")


def test_certificates_open_servers_for_their_hosts() -> None:
    spec = "ingressClassName: istio\n  tls: [{hosts: [shop.example], secretName: shop-tls}, {hosts: [no.example]}]"
    db = mesh_of(CLASS, EDGE, ingress(spec=spec))
    listener = told(db, GATEWAY, resource.LISTENER)["0.0.0.0_8443"]
    (chain,) = listener["filterChains"]
    assert chain["filterChainMatch"]["serverNames"] == ["shop.example"]
    name = "https.443.https-443-ingress-shop-web-0.shop-istio-autogenerated-k8s-ingress-web.istio-system"
    assert list(virtual_hosts(db, name)) == ["shop.example"]


def test_a_default_backend_is_not_served() -> None:
    spec = "ingressClassName: istio\n  defaultBackend: {service: {name: front, port: {number: 80}}}"
    assert list(virtual_hosts(mesh_of(CLASS, EDGE, ingress(spec=spec)))) == ["shop.example"]


def test_the_mesh_says_which_gateways_serve_ingresses() -> None:
    db = mesh_of(CLASS, EDGE, ingress(), config={"ingressSelector": "other"})
    assert told(db, GATEWAY, resource.LISTENER) == {}


def test_a_removed_ingress_leaves_the_others() -> None:
    other = ingress("other", rule("other.example", path("/")))
    db = mesh_of(CLASS, EDGE, ingress(), other)
    assert list(virtual_hosts(db)) == ["other.example", "shop.example"]
    delete(db, other)
    assert list(virtual_hosts(db)) == ["shop.example"]
    apply(db, other)
    assert list(virtual_hosts(db)) == ["other.example", "shop.example"]
