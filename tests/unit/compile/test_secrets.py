"""Secrets of gateways: what a credential's name means, and who gets it."""

import base64
import json

import acceptance_material
import pytest
from meshes import mesh_of, proxy, told

from mizzen.compile import resource
from mizzen.compile.secrets import Credential, parse_credential


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(name: str, namespace: str = "edge", **data: str) -> str:
    lines = ", ".join(f'"{key}": {b64(value)}' for key, value in data.items())
    return f"""
apiVersion: v1
kind: Secret
metadata: {{name: {name}, namespace: {namespace}}}
data: {{{lines}}}
"""


GATEWAY = proxy("edge", "gw-0", kind="router")
CHAIN, KEY = (part.decode() for part in acceptance_material.leaf())
ROOTS, REVOKED = acceptance_material.root_pem().decode(), acceptance_material.revocations_pem().decode()
PAIR = {"tls.crt": CHAIN, "tls.key": KEY}


def served(text: str, *names: str) -> dict[str, dict[str, object]]:
    return told(mesh_of(text), GATEWAY, resource.SECRET, *names)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kubernetes://a", Credential("Secret", "own", "a", False)),
        ("kubernetes://ns/a-cacert", Credential("Secret", "ns", "a", True)),
        ("kubernetes-gateway://ns/a", Credential("Secret", "ns", "a", False)),
        ("configmap://ns/roots", Credential("ConfigMap", "ns", "roots", True)),
        ("configmap://roots", None),
        ("invalid://", None),
        ("default", None),
        ("kubernetes://", None),
    ],
)
def test_a_name_says_which_object_and_which_part(name: str, expected: Credential | None) -> None:
    assert parse_credential(name, "own") == expected


def test_a_certificate_and_its_key_are_served_inline() -> None:
    found = served(secret("shop", **PAIR), "kubernetes://shop")["kubernetes://shop"]
    assert found["tlsCertificate"] == {
        "certificateChain": {"inlineBytes": b64(CHAIN)},
        "privateKey": {"inlineBytes": b64(KEY)},
    }


def test_generic_keys_come_before_those_of_tls_secrets() -> None:
    generic = {"cert": CHAIN + ROOTS, "key": KEY}
    found = served(secret("shop", **generic, **PAIR), "kubernetes://shop")["kubernetes://shop"]
    assert found["tlsCertificate"]["certificateChain"] == {"inlineBytes": b64(CHAIN + ROOTS)}  # type: ignore[index]


def test_roots_come_from_their_own_secret_else_from_the_certificates() -> None:
    apart = secret("shop-cacert", cacert=ROOTS, crl=REVOKED)
    both = secret("shop", **PAIR, **{"ca.crt": CHAIN}) + "---" + apart
    name = "kubernetes://shop-cacert"
    assert served(both, name)[name]["validationContext"] == {
        "trustedCa": {"inlineBytes": b64(ROOTS)},
        "crl": {"inlineBytes": b64(REVOKED)},
    }
    alone = secret("shop", **PAIR, **{"ca.crt": CHAIN})
    assert served(alone, name)[name]["validationContext"] == {"trustedCa": {"inlineBytes": b64(CHAIN)}}


@pytest.mark.parametrize("name", ["kubernetes://absent", "kubernetes://half", "kubernetes://shop-cacert", "invalid://"])
def test_what_cannot_be_read_is_left_out_and_the_rest_is_served(name: str) -> None:
    text = secret("shop", **PAIR) + "---" + secret("half", **{"tls.crt": CHAIN})
    assert list(served(text, name, "kubernetes://shop")) == ["kubernetes://shop"]


def test_another_namespaces_secret_is_not_served() -> None:
    text = secret("shop", "pay", **PAIR)
    assert served(text, "kubernetes://pay/shop", "kubernetes-gateway://pay/shop", "kubernetes://shop") == {}


def test_a_sidecar_gets_no_secret_of_its_namespace() -> None:
    assert told(mesh_of(secret("shop", **PAIR)), proxy("edge"), resource.SECRET, "kubernetes://shop") == {}


def test_roots_of_its_namespace_are_for_every_proxy() -> None:
    text = secret("shop", **PAIR, **{"ca.crt": ROOTS})
    for namespace, expected in (("edge", ["kubernetes://shop-cacert"]), ("web", [])):
        found = told(mesh_of(text), proxy(namespace), resource.SECRET, "kubernetes://shop", "kubernetes://shop-cacert")
        assert list(found) == expected


RULE = """
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: bank, namespace: edge}
spec:
  host: bank.example
  workloadSelector: {matchLabels: {app: till}}
  trafficPolicy: {tls: {mode: MUTUAL, credentialName: shop}}
"""


def test_a_rule_that_selects_a_sidecar_gives_it_the_credential_that_it_names() -> None:
    db = mesh_of(secret("shop", **PAIR) + "---" + secret("other", **PAIR), RULE)
    names = ("kubernetes://shop", "kubernetes://other")
    assert list(told(db, proxy("edge", labels={"app": "till"}), resource.SECRET, *names)) == ["kubernetes://shop"]
    assert told(db, proxy("edge", labels={"app": "shelf"}), resource.SECRET, *names) == {}
    assert told(db, proxy("web", labels={"app": "till"}), resource.SECRET, *names) == {}


def pod(name: str, ip: str, account: str, app: str, namespace: str = "edge") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: {app}}}}}
spec: {{serviceAccountName: {account}, containers: []}}
status: {{podIP: {ip}}}
"""


INGRESS = """
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: edge}
spec:
  selector: {app: ingress}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
"""


@pytest.mark.parametrize(
    ("said", "gets"),
    [
        ({"name": "gw-0", "ip": "10.0.0.1", "SERVICE_ACCOUNT": "ingress"}, True),
        ({"name": "gw-0", "ip": "10.0.0.77", "SERVICE_ACCOUNT": "ingress"}, True),
        ({"name": "gw-0", "ip": "10.0.0.1", "SERVICE_ACCOUNT": "app"}, False),
        ({"name": "gw-0", "ip": "10.0.0.1"}, False),
        ({"name": "gw-0", "ip": "10.0.0.77", "SERVICE_ACCOUNT": "app"}, False),
        ({"name": "app-0", "ip": "10.0.0.2", "SERVICE_ACCOUNT": "app"}, False),
        ({"name": "app-0", "ip": "10.0.0.77", "SERVICE_ACCOUNT": "app"}, False),
        ({"name": "nobody", "ip": "10.0.0.77", "SERVICE_ACCOUNT": "app"}, False),
        ({"name": "nobody", "ip": "10.0.0.3", "SERVICE_ACCOUNT": "ingress"}, False),
    ],
)
def test_keys_are_for_pods_that_gateways_select_under_their_own_account(said: dict[str, str], gets: bool) -> None:
    db = mesh_of(
        secret("shop", **PAIR),
        INGRESS,
        pod("gw-0", "10.0.0.1", "ingress", "ingress"),
        pod("app-0", "10.0.0.2", "app", "app"),
        pod("else-0", "10.0.0.3", "ingress", "ingress", namespace="pay"),
    )
    who = proxy("edge", kind="router", labels={"app": "ingress"}, **said)
    assert bool(told(db, who, resource.SECRET, "kubernetes://shop")) is gets


def config_map(text: str) -> str:
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: roots, namespace: pay}}
data: {{ca.crt: {json.dumps(text)}}}
"""


def test_roots_in_a_config_map_are_for_everybody() -> None:
    name = "configmap://pay/roots"
    assert served(config_map(ROOTS), name)[name]["validationContext"] == {"trustedCa": {"inlineBytes": b64(ROOTS)}}


OTHER_KEY = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2
OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r
1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G
-----END PRIVATE KEY-----
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kubernetes://shop", secret("shop", **{"tls.crt": "CHAIN", "tls.key": KEY})),
        ("kubernetes://shop", secret("shop", **{"tls.crt": CHAIN, "tls.key": "KEY"})),
        ("kubernetes://shop", secret("shop", **{"tls.crt": CHAIN, "tls.key": OTHER_KEY})),
        ("kubernetes://shop-cacert", secret("shop-cacert", cacert="ROOTS")),
        ("kubernetes://shop-cacert", secret("shop-cacert", cacert=ROOTS, crl="GONE")),
        ("configmap://pay/roots", config_map("ROOTS")),
    ],
)
def test_what_envoy_could_not_use_is_not_served(name: str, text: str) -> None:
    assert served(text, name) == {}
