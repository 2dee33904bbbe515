"""What comes in from outside, and why a gateway would not take it."""

import pytest
from traced_mesh import SHOP, ask, blamed, world_of

DOOR = """
---
apiVersion: v1
kind: Pod
metadata:
  name: door
  namespace: web
  labels: {gateway: door, sidecar.istio.io/inject: "true"}
  annotations: {inject.istio.io/templates: gateway}
spec: {serviceAccountName: door, containers: [{name: istio-proxy, image: auto}]}
---
apiVersion: v1
kind: Service
metadata: {name: door, namespace: web}
spec:
  type: LoadBalancer
  selector: {gateway: door}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: https, port: 443, targetPort: 8443}]
"""


def gateway(server: str, selector: str = "gateway: door") -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{name: front, namespace: web}}
spec: {{selector: {{{selector}}}, servers: [{{{server}}}]}}
"""


def routes(host: str = "shop.example.com", bound: str = "front") -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: routes, namespace: web}}
spec: {{hosts: [{host}], gateways: [{bound}], http: [{{route: [{{destination: {{host: server}}}}]}}]}}
"""


HTTP = "port: {number: 80, name: http, protocol: HTTP}, hosts: [shop.example.com]"
HTTPS = "port: {number: 443, name: https, protocol: HTTPS}, hosts: [shop.example.com]"
URL = "http://shop.example.com/"


@pytest.mark.parametrize("source", ["outside", "gateway/door", "gateway/door.web"])
def test_a_request_from_outside_goes_through_the_gateway(source):
    found = ask(world_of(SHOP, DOOR, gateway(HTTP), routes()), URL, source=source)
    assert (found.outcome, found.certain, found.destination) == ("delivered", True, "server.web")
    assert list(dict.fromkeys(step.side for step in found.steps)) == ["door.web", "server.web"]


@pytest.mark.parametrize(
    ("objects", "cause", "fix"),
    [
        (gateway(HTTP) + routes(bound="other"), "VirtualService/routes", "add web/front to spec.gateways"),
        (gateway(HTTP) + routes(bound="mesh"), "VirtualService/routes", "add web/front to spec.gateways"),
        (
            gateway(HTTP.replace("shop.", "other.")) + routes(),
            "Gateway/front",
            "add shop.example.com to the hosts of its server",
        ),
        (gateway(HTTP), "Gateway/front", "create a VirtualService with host shop.example.com and the gateway"),
    ],
)
def test_no_virtual_host_has_a_reason(objects, cause, fix):
    found = ask(world_of(SHOP, DOOR, objects), URL, source="outside")
    assert (found.status, found.flag, found.details, found.link) == (404, "NR", "route_not_found", "route")
    assert (blamed(found), found.fix) == (cause, fix)


@pytest.mark.parametrize(
    ("objects", "cause"),
    [
        (gateway(HTTP, selector="gateway: nobody"), "Gateway/front"),
        (gateway(HTTP.replace("number: 80", "number: 81")), "Gateway/front"),
    ],
)
def test_nobody_listens(objects, cause):
    found = ask(world_of(SHOP, DOOR, objects, routes()), URL, source="outside")
    assert (found.outcome, found.link, blamed(found)) == ("failed", "listener", cause)


def test_a_redirect_to_tls():
    found = ask(
        world_of(SHOP, DOOR, gateway(f"{HTTP}, tls: {{httpsRedirect: true}}"), routes()), f"{URL}a", source="outside"
    )
    assert (found.outcome, found.status, found.destination) == ("redirected", 301, "https://shop.example.com/a")


def test_a_missing_secret_breaks_the_handshake():
    server = f"{HTTPS}, tls: {{mode: SIMPLE, credentialName: shop-tls}}"
    found = ask(world_of(SHOP, DOOR, gateway(server), routes()), URL.replace("http", "https"), source="outside")
    assert (found.outcome, found.status, found.link, blamed(found)) == ("failed", 0, "secret", "Gateway/front")
    assert "create the Secret web/shop-tls" in found.fix


def test_an_unknown_server_name_meets_no_chain():
    server = f"{HTTPS}, tls: {{mode: SIMPLE, credentialName: shop-tls}}"
    found = ask(world_of(SHOP, DOOR, gateway(server), routes()), "https://other.example.com/", source="outside")
    assert (found.flag, found.details, found.link) == ("NR", "filter_chain_not_found", "filter_chain")
    assert (blamed(found), found.fix) == ("Gateway/front", "add other.example.com to the hosts of a server")
