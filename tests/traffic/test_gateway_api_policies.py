"""What is attached to a Gateway of the Gateway API by its name: Istio's policies and extensions with targetRefs.

Rules that deny name the port of plain HTTP: where a gateway serves TCP, Istio counts only what TCP can tell of them.
"""

import base64
import hashlib
import json

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from eventually import eventually_blocking
from traffic_certificates import ROOT
from traffic_gateway_api import PARENT, routed, to
from traffic_manifests import WORLD, behaviour
from traffic_mesh import MODULE

ISSUER = "tests.example.com"
KEY, STRANGER = (rsa.generate_private_key(65537, 2048) for _ in range(2))


def encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def keys() -> str:
    """The public key as a JSON Web Key Set."""
    numbers = KEY.public_key().public_numbers()
    modulus, exponent = (encode(n.to_bytes((n.bit_length() + 7) // 8)) for n in (numbers.n, numbers.e))
    return json.dumps({"keys": [{"kty": "RSA", "kid": "k", "alg": "RS256", "n": modulus, "e": exponent}]})


def token(subject: str, key: rsa.RSAPrivateKey = KEY) -> str:
    header = {"alg": "RS256", "kid": "k"}
    claims = {"iss": ISSUER, "sub": subject, "exp": 4_000_000_000}
    signed = ".".join(encode(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{encode(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def attached(kind: str, name: str, spec: str, gateway: str = "door") -> str:
    """An object beside the Gateway that it names."""
    return f"""
kind: {kind}
metadata: {{name: {name}, namespace: gateways}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: {gateway}}}]
{spec}
---
"""


@behaviour(
    routed("api-denied", f"- {{{to('api-denied')}}}"),
    attached(
        "AuthorizationPolicy",
        "api-denied",
        "  action: DENY\n"
        "  rules: [{to: [{operation: {hosts: [api-denied.door.example.com], paths: [/secret*], methods: [GET], ports: ['80']}}]}]",
    ),
    attached("AuthorizationPolicy", "api-elsewhere", "  action: DENY\n  rules: [{}]", "nobody"),
)
def test_a_policy_denies_at_the_gateway_that_it_names(entrance):
    denied = entrance.get("api-denied", "/secret/a")
    assert (denied.status, denied.body) == (403, "RBAC: access denied")
    assert entrance.get("api-denied", "/secret/a", method="POST").status == 200
    assert entrance.get("api-denied", "/open").status == 200


@behaviour(
    routed("api-token", f"- {{{to('api-token')}}}"),
    attached("RequestAuthentication", "api-token", f"  jwtRules: [{{issuer: {ISSUER}, jwks: '{keys()}'}}]"),
    attached(
        "AuthorizationPolicy",
        "api-token",
        "  action: DENY\n"
        "  rules:\n"
        f"    - from: [{{source: {{notRequestPrincipals: [{ISSUER}/friend]}}}}]\n"
        "      to: [{operation: {hosts: [api-token.door.example.com], ports: ['80']}}]",
    ),
)
def test_tokens_are_checked_at_the_gateway_that_is_named(entrance):
    expected = {"": 403, token("friend"): 200, token("other"): 403, token("friend", STRANGER): 401}
    for bearer, status in expected.items():
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        assert entrance.get("api-token", headers=headers).status == status


LUA = """
  configPatches:
    - applyTo: HTTP_FILTER
      match:
        context: GATEWAY
        listener:
          filterChain:
            filter:
              name: envoy.filters.network.http_connection_manager
              subFilter: {name: envoy.filters.http.router}
      patch:
        operation: INSERT_BEFORE
        value:
          name: api-lua
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
            default_source_code:
              inline_string: |
                function envoy_on_response(handle) handle:headers():add("x-door", "passed") end
"""


@behaviour(routed("api-patched", f"- {{{to('api-patched')}}}"), attached("EnvoyFilter", "api-patched", LUA))
def test_an_envoy_filter_patches_the_gateway_that_it_names_alone(entrance, mesh, outer):
    assert entrance.get("api-patched").header("x-door") == "passed"
    beside = outer.get("http://nobody.example.com/", address=f"{mesh.pod('ingress').address}:8080")
    assert (beside.status, beside.has("x-door")) == (404, False)


@behaviour(
    WORLD,
    routed("api-wasm", f"- {{{to('api-wasm')}}}", parents=PARENT),
    attached(
        "WasmPlugin",
        "api-wasm",
        "  url: http://world.example.net:8080/module.wasm\n"
        f"  sha256: '{hashlib.sha256(MODULE).hexdigest()}'\n"
        "  match: [{mode: CLIENT, ports: [{number: 8444}]}]",
    ),
)
def test_a_wasm_plugin_is_run_on_one_port_of_the_gateway_that_it_names(entrance):
    tls = {"ca": ROOT.pem}
    eventually_blocking(lambda: entrance.get("api-wasm", port=8444, tls=tls).header("x-wasm") == "written")
    plain = entrance.get("api-wasm")
    assert (plain.status, plain.has("x-wasm")) == (200, False)
