"""Secrets of gateways: what a credential's name means, and who gets it."""

import base64

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
PAIR = {"tls.crt": "CHAIN", "tls.key": "KEY"}


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
        "certificateChain": {"inlineBytes": b64("CHAIN")},
        "privateKey": {"inlineBytes": b64("KEY")},
    }


def test_generic_keys_come_before_those_of_tls_secrets() -> None:
    found = served(secret("shop", cert="GENERIC", key="GK", **PAIR), "kubernetes://shop")["kubernetes://shop"]
    assert found["tlsCertificate"]["certificateChain"] == {"inlineBytes": b64("GENERIC")}  # type: ignore[index]


def test_roots_come_from_their_own_secret_else_from_the_certificates() -> None:
    both = secret("shop", **PAIR, **{"ca.crt": "OWN"}) + "---" + secret("shop-cacert", cacert="APART", crl="GONE")
    name = "kubernetes://shop-cacert"
    assert served(both, name)[name]["validationContext"] == {
        "trustedCa": {"inlineBytes": b64("APART")},
        "crl": {"inlineBytes": b64("GONE")},
    }
    alone = secret("shop", **PAIR, **{"ca.crt": "OWN"})
    assert served(alone, name)[name]["validationContext"] == {"trustedCa": {"inlineBytes": b64("OWN")}}


@pytest.mark.parametrize("name", ["kubernetes://absent", "kubernetes://half", "kubernetes://shop-cacert", "invalid://"])
def test_what_cannot_be_read_is_left_out_and_the_rest_is_served(name: str) -> None:
    text = secret("shop", **PAIR) + "---" + secret("half", **{"tls.crt": "CHAIN"})
    assert list(served(text, name, "kubernetes://shop")) == ["kubernetes://shop"]


def test_another_namespaces_secret_is_not_served() -> None:
    text = secret("shop", "pay", **PAIR)
    assert served(text, "kubernetes://pay/shop", "kubernetes-gateway://pay/shop", "kubernetes://shop") == {}


def test_a_sidecar_gets_no_secret_of_its_namespace() -> None:
    assert told(mesh_of(secret("shop", **PAIR)), proxy("edge"), resource.SECRET, "kubernetes://shop") == {}


def test_roots_in_a_config_map_are_for_everybody() -> None:
    text = """
apiVersion: v1
kind: ConfigMap
metadata: {name: roots, namespace: pay}
data: {ca.crt: ROOTS}
"""
    name = "configmap://pay/roots"
    assert served(text, name)[name]["validationContext"] == {"trustedCa": {"inlineBytes": b64("ROOTS")}}
