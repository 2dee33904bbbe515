"""Key sets as issuers might publish them, each with whether Envoy reads it."""

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa


def encoded(number: int, length: int = 0) -> str:
    """A number in base64url."""
    raw = number.to_bytes(length or (number.bit_length() + 7) // 8 or 1, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _point(curve: ec.EllipticCurve, name: str) -> dict[str, str]:
    length = (curve.key_size + 7) // 8
    numbers = ec.generate_private_key(curve).public_key().public_numbers()
    return {"kty": "EC", "crv": name, "x": encoded(numbers.x, length), "y": encoded(numbers.y, length)}


_NUMBERS = rsa.generate_private_key(65537, 2048).public_key().public_numbers()
RSA = {"kty": "RSA", "alg": "RS256", "kid": "one", "n": encoded(_NUMBERS.n), "e": "AQAB"}
_P256, _P384 = _point(ec.SECP256R1(), "P-256"), _point(ec.SECP384R1(), "P-384")
_RAW = ed25519.Ed25519PrivateKey.generate().public_key().public_bytes_raw()
_OKP = {"kty": "OKP", "crv": "Ed25519", "x": base64.urlsafe_b64encode(_RAW).rstrip(b"=").decode()}
_OCT = {"kty": "oct", "k": "AAAA"}


def _without(key: dict[str, Any], name: str) -> dict[str, Any]:
    return {k: v for k, v in key.items() if k != name}


KEYS: dict[str, tuple[Any, bool]] = {
    "rsa": (RSA, True),
    "rsa without an algorithm": (_without(RSA, "alg"), True),
    "rsa for encryption": ({**RSA, "alg": "RSA-OAEP", "use": "enc"}, True),
    "rsa padded": ({**RSA, "n": RSA["n"] + "=="}, True),
    "rsa padded wrongly": ({**RSA, "n": RSA["n"] + "="}, False),
    "rsa with spaces": ({**RSA, "n": f"\t {RSA['n'][:9]}\n{RSA['n'][9:]}"}, True),
    "rsa with a leading zero": ({**RSA, "n": encoded(_NUMBERS.n, 260)}, True),
    "rsa in plain base64": ({**RSA, "n": RSA["n"][:-4] + "+/+/"}, False),
    "rsa of 511 bits": ({**RSA, "n": encoded(2**510 + 1)}, False),
    "rsa of 512 bits": ({**RSA, "n": encoded(2**511 + 1)}, True),
    "rsa of 16384 bits": ({**RSA, "n": encoded(2**16383 + 1)}, True),
    "rsa of 16385 bits": ({**RSA, "n": encoded(2**16384 + 1)}, False),
    "rsa of an even modulus": ({**RSA, "n": encoded(2**2047)}, False),
    "rsa of exponent 3": ({**RSA, "e": "Aw"}, True),
    "rsa of exponent 17": ({**RSA, "e": "EQ"}, False),
    "rsa without an exponent": (_without(RSA, "e"), False),
    "rsa with a number": ({**RSA, "n": 5}, False),
    "placeholder": ({**RSA, "n": "x"}, False),
    "p256": (_P256, True),
    "p256 without a curve": (_without(_P256, "crv"), True),
    "p256 by algorithm": ({**_P256, "alg": "ES256"}, True),
    "p256 of another algorithm": ({**_P256, "alg": "ES384"}, False),
    "p256 of rsa": ({**_P256, "alg": "RS256"}, False),
    "p256 of a number as algorithm": ({**_P256, "alg": 1}, True),
    "p256 for key agreement": ({**_P256, "alg": "ECDH-ES"}, False),
    "p256 off its curve": ({**_P256, "x": encoded(5, 32)}, False),
    "p384": (_P384, True),
    "p384 without a curve": (_without(_P384, "crv"), False),
    "p384 by algorithm": ({**_without(_P384, "crv"), "alg": "ES384"}, True),
    "p521": (_point(ec.SECP521R1(), "P-521"), True),
    "another curve": (_point(ec.SECP256K1(), "secp256k1"), False),
    "a number as curve": ({**_P256, "crv": 1}, False),
    "ed25519": (_OKP, True),
    "ed25519 by algorithm": ({**_OKP, "alg": "EdDSA"}, True),
    "ed25519 of another algorithm": ({**_OKP, "alg": "ES256"}, False),
    "ed25519 without a curve": (_without(_OKP, "crv"), False),
    "ed25519 too short": ({**_OKP, "x": "AA"}, False),
    "x25519": ({**_OKP, "crv": "X25519"}, False),
    "secret": (_OCT, True),
    "secret by algorithm": ({**_OCT, "alg": "HS256"}, True),
    "secret of another algorithm": ({**_OCT, "alg": "RS256"}, False),
    "secret of nothing": ({**_OCT, "k": ""}, False),
    "unknown type": ({"kty": "XX"}, False),
    "no type": ({}, False),
    "no key": (1, False),
}

SETS: dict[str, tuple[str, bool]] = {
    **{name: (json.dumps({"keys": [key]}), readable) for name, (key, readable) in KEYS.items()},
    "a good one last": (json.dumps({"keys": [1, {"kty": "XX"}, RSA]}), True),
    "a good one first": (json.dumps({"keys": [RSA, {}]}), True),
    "none": ('{"keys": []}', False),
    "no list": ('{"keys": null}', False),
    "a list": (json.dumps([RSA]), False),
    "one key alone": (json.dumps(RSA), False),
    "no JSON": ("not json", False),
    "more behind it": (json.dumps({"keys": [RSA]}) + " x", False),
    "space around it": (f" \n{json.dumps({'keys': [RSA]})}\n", True),
    "a name twice": (f'{{"keys": [], "keys": [{json.dumps(RSA)}]}}', False),
    "a name twice in a key": (f'{{"keys": [{{"kty": "RSA", {json.dumps(RSA)[1:]}]}}', False),
    "no number": (f'{{"keys": [{json.dumps(RSA)}], "x": NaN}}', False),
    "a large number": (f'{{"keys": [{json.dumps(RSA)}], "x": 1e999}}', False),
    "half a character": (f'{{"keys": [{json.dumps(RSA)}], "x": "\\ud800"}}', False),
    "deep": (f'{{"keys": [{json.dumps(RSA)}], "x": {"[" * 200}{"]" * 200}}}', False),
    "not so deep": (f'{{"keys": [{json.dumps(RSA)}], "x": {"[" * 40}{"]" * 40}}}', True),
}
