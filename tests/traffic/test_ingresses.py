"""Kubernetes Ingresses at the mesh's ingress gateway: classes, kinds of paths, certificates, several for one host."""

from traffic_certificates import ROOT, secret
from traffic_manifests import behaviour, service

OURS = """
kind: IngressClass
metadata: {name: mesh}
spec: {controller: istio.io/ingress-controller}
---
kind: IngressClass
metadata: {name: other}
spec: {controller: example.com/ingress}
---
"""
NEAR, FAR = "app: echo, place: near", "app: echo, place: far"


def ingress(name: str, host: str, paths: str, more: str = "ingressClassName: mesh", annotations: str = "") -> str:
    """An Ingress with one rule; paths as `[Type /path backend[:port]]`, apart by commas."""
    items = []
    for kind, path, backend in (entry.split() for entry in paths.split(",")):
        to, _, port = backend.partition(":")
        number = f"name: {port}" if port else "number: 80"
        service = f"{{service: {{name: {to}, port: {{{number}}}}}}}"
        items.append(f"{{path: '{path}', pathType: {kind}, backend: {service}}}")
    return f"""
kind: Ingress
metadata: {{name: {name}, annotations: {{{annotations}}}}}
spec:
  {more}
  rules: [{{host: "{host}", http: {{paths: [{", ".join(items)}]}}}}]
---
"""


BACKENDS = service("ing-near", selector=NEAR) + service("ing-far", selector=FAR)
PATHS = (
    "Prefix / ing-near, Prefix /far ing-far, Exact /far/exact ing-near, "
    "ImplementationSpecific /any/* ing-far, Prefix /named ing-far:http"
)


def asked(mesh, outer, host: str, path: str = "/", **more) -> str | int:
    """The pod that answers a request at the gateway, or the status if none does."""
    port = 8443 if "tls" in more else 8080
    url = f"{'https' if 'tls' in more else 'http'}://{host}.ing.example.com{path}"
    answer = outer.get(url, address=f"{mesh.pod('ingress').address}:{port}", **more)
    return answer.pod if answer.status == 200 else answer.status


@behaviour(OURS, BACKENDS, ingress("ing-paths", "paths.ing.example.com", PATHS))
def test_the_longest_path_of_an_ingress_wins_by_whole_segments(mesh, outer):
    expected = {
        "/": "near",
        "/far": "far",
        "/far/deep": "far",
        "/farther": "near",
        "/far/exact": "near",
        "/far/exact/more": "far",
        "/any/thing": "far",
        "/named/x": "far",
    }
    assert {path: asked(mesh, outer, "paths", path) for path in expected} == expected


@behaviour(
    OURS,
    BACKENDS,
    ingress(
        "ing-annotated", "annotated.ing.example.com", "Prefix / ing-near", "", "kubernetes.io/ingress.class: istio"
    ),
    ingress("ing-foreign", "foreign.ing.example.com", "Prefix / ing-near", "ingressClassName: other"),
    ingress("ing-unknown", "unknown.ing.example.com", "Prefix / ing-near", "ingressClassName: nowhere"),
    ingress("ing-classless", "classless.ing.example.com", "Prefix / ing-near", ""),
)
def test_only_ingresses_of_our_class_are_served(mesh, outer):
    hosts = ("annotated", "foreign", "unknown", "classless")
    assert [asked(mesh, outer, host) for host in hosts] == ["near", 404, 404, 404]


@behaviour(
    OURS,
    BACKENDS,
    ingress("ing-first", "joined.ing.example.com", "Prefix /a ing-near"),
    ingress("ing-second", "joined.ing.example.com", "Prefix /b ing-far"),
    ingress("ing-wild", "*.ing.example.com", "Prefix /wild ing-far"),
)
def test_ingresses_for_one_host_are_joined_and_a_wildcard_takes_other_hosts(mesh, outer):
    assert [asked(mesh, outer, "joined", path) for path in ("/a", "/b", "/c")] == ["near", "far", 404]
    assert asked(mesh, outer, "somebody", "/wild") == "far"


@behaviour(
    OURS,
    BACKENDS,
    secret("ing-cert", "secure.ing.example.com"),
    ingress(
        "ing-secure",
        "secure.ing.example.com",
        "Prefix / ing-near",
        "ingressClassName: mesh\n  tls: [{hosts: [secure.ing.example.com], secretName: ing-cert}]",
    ),
)
def test_an_ingress_brings_a_certificate_for_its_hosts(mesh, outer):
    assert asked(mesh, outer, "secure", tls={"ca": ROOT.pem}) == "near"
    assert asked(mesh, outer, "secure") == "near"
