"""What comes in from outside, and why a gateway would not take it."""

import datetime

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
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


def certificate_secret(days: int) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.example.com")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - datetime.timedelta(days=60))
        .not_valid_after(NOW + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.example.com")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    content = {"tls.crt": signed.public_bytes(serialization.Encoding.PEM).decode(), "tls.key": private.decode()}
    metadata = {"name": "shop-tls", "namespace": "web"}
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": content}
    return "\n---\n" + yaml.safe_dump(document)


NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
SECURE = f"{HTTPS}, tls: {{mode: SIMPLE, credentialName: shop-tls}}"


def test_a_certificate_that_is_good():
    world = world_of(SHOP, DOOR, gateway(SECURE), routes(), certificate_secret(30), now=NOW)
    found = ask(world, "https://shop.example.com/", source="outside")
    assert (found.outcome, found.status, found.certain) == ("delivered", 200, True)


def test_a_certificate_that_has_expired_is_the_secrets_fault():
    world = world_of(SHOP, DOOR, gateway(SECURE), routes(), certificate_secret(-1), now=NOW)
    found = ask(world, "https://shop.example.com/", source="outside")
    assert (found.outcome, found.link, blamed(found), found.certain) == ("failed", "secret", "Secret/shop-tls", False)
    assert found.depends_on == ("whether the client minds that the server's certificate has expired",)


def test_a_server_that_takes_a_host_from_other_namespaces_only():
    found = ask(world_of(SHOP, DOOR, gateway(HTTP.replace("shop.", "bare/shop.")), routes()), URL, source="outside")
    assert (found.flag, blamed(found)) == ("NR", "Gateway/front")
    assert "from other namespaces only" in found.reason


def test_of_several_gateways_the_one_is_blamed_that_a_route_is_bound_to():
    server = f"{HTTPS}, tls: {{mode: SIMPLE, credentialName: shop-tls}}"
    other = gateway(server.replace("shop.", "other.")).replace("name: front", "name: another")
    own = gateway(server.replace("shop.", "shopp."))
    found = ask(world_of(SHOP, DOOR, other, own, routes()), URL.replace("http", "https"), source="outside")
    assert (found.flag, blamed(found), found.fix) == (
        "NR",
        "Gateway/front",
        "add shop.example.com to the hosts of a server",
    )


def by_address(action: str, block: str) -> str:
    return f"""
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: addresses, namespace: web}}
spec:
  selector: {{matchLabels: {{gateway: door}}}}
  action: {action}
  rules: [{{from: [{{source: {{remoteIpBlocks: [{block}]}}}}]}}]
"""


@pytest.mark.parametrize("action", ["ALLOW", "DENY"])
def test_who_calls_from_outside_decides_where_a_policy_looks_at_addresses(action):
    world = world_of(SHOP, DOOR, gateway(HTTP), routes(), by_address(action, "203.0.113.0/24"))
    unknown = ask(world, URL, source="outside")
    assert unknown.depends_on == ("the address from which somebody outside calls",)
    inside, beside = (ask(world, URL, source="outside", client=ip) for ip in ("203.0.113.9", "192.0.2.9"))
    assert inside.certain
    assert beside.certain
    assert (inside.outcome, beside.outcome) == (
        ("delivered", "denied") if action == "ALLOW" else ("denied", "delivered")
    )
