"""Key sets: whether Envoy would read an issuer's keys; for a set that it cannot read, it refuses the whole listener.

In: the text of a JWKS. Out: yes or no. One readable key is enough: Envoy leaves out the others. What it reads was tried
with the Envoy that Mizzen brings: tests/envoy/test_key_sets.py.
"""

import base64
import json
import math
import re
from typing import Any, NoReturn

_DEEPEST = 64
_BASE64URL = re.compile(r"[0-9A-Za-z_-]*")
_RSA_BITS = range(512, 16385)
_RSA_EXPONENTS = (3, 65537)
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
"""The curve of each algorithm for elliptic curves."""

Json = dict[str, Any]


def is_readable(text: str) -> bool:
    """Whether Envoy finds a key in the set."""
    try:
        found = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite, parse_int=_finite
        )
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    keys = found.get("keys") if isinstance(found, dict) and _is_shallow(found, _DEEPEST) else None
    return isinstance(keys, list) and any(isinstance(key, dict) and _is_key(key) for key in keys)


# -- JSON as Envoy has it ---------------------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


def _is_shallow(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)


# -- keys -------------------------------------------------------------------------------------------------------------


def _is_key(key: Json) -> bool:
    match key.get("kty"):
        case "RSA":
            return _is_rsa(_number(key, "n"), _number(key, "e"))
        case "EC":
            return _is_on_curve(key)
        case "OKP":
            return key.get("crv") == "Ed25519" and _text(key, "alg") in ("", "EdDSA") and len(_bytes(key, "x")) == 32
        case "oct":
            return _text(key, "alg")[:2] in ("", "HS") and bool(_bytes(key, "k"))
    return False


def _is_rsa(modulus: int, exponent: int) -> bool:
    return modulus.bit_length() in _RSA_BITS and modulus % 2 == 1 and exponent in _RSA_EXPONENTS


def _is_on_curve(key: Json) -> bool:
    """Whether the key is a point of its curve; without a name that is the algorithm's, without either P-256."""
    from cryptography.hazmat.primitives.asymmetric import ec

    algorithm, curve = _text(key, "alg"), key.get("crv", "")
    wanted = curve or _CURVES.get(algorithm or "ES256")
    classes: dict[str, type[ec.EllipticCurve]] = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1}
    if not isinstance(wanted, str) or wanted not in classes or (algorithm and _CURVES.get(algorithm) != wanted):
        return False
    try:
        ec.EllipticCurvePublicNumbers(_number(key, "x"), _number(key, "y"), classes[wanted]()).public_key()
    except ValueError:
        return False
    return True


def _text(key: Json, name: str) -> str:
    """A member that is looked at only where it is a text."""
    value = key.get(name)
    return value if isinstance(value, str) else ""


def _number(key: Json, name: str) -> int:
    return int.from_bytes(_bytes(key, name), "big")


def _bytes(key: Json, name: str) -> bytes:
    """What a member holds in base64url, which may be padded; nothing where it is none."""
    text = "".join(_text(key, name).split())
    bare = text.rstrip("=")
    if not _BASE64URL.fullmatch(bare) or len(bare) % 4 == 1 or (text != bare and len(text) % 4):
        return b""
    return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
