"""Known secrets, and the search for them in whatever came out of a program.

A private key is looked for in every form in which it could get out: lines of its PEM, its DER as base64 without line
ends, the PEM as base64 (as in Secrets and dumps), hexadecimal, and its numbers in decimal. Other secrets are looked for
as they are and as base64.
"""

import base64
from collections.abc import Iterable
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

_CHUNK = 40


class Known:
    """Secrets by a name that may be shown, each with the texts that would give it away."""

    def __init__(self) -> None:
        self._needles: dict[bytes, str] = {}

    def add_text(self, name: str, text: str) -> None:
        """A secret that is any text."""
        self._add(name, text.encode())
        self._add_encoded(name, text.encode())

    def add_key(self, name: str, pem: str) -> None:
        """A private key. Its public half stands in certificates, so only what is private is looked for."""
        key = serialization.load_pem_private_key(pem.encode(), password=None)
        for number in _numbers(key):
            secret = number.to_bytes((number.bit_length() + 7) // 8, "big")
            self._add(name, str(number).encode())
            self._add(name, secret.hex()[:_CHUNK].encode())
            self._add_encoded(name, secret)
            for form in (serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL):
                self._add_lines(name, key, form, secret)

    def _add_lines(self, name: str, key: Any, form: serialization.PrivateFormat, secret: bytes) -> None:
        """The secret as it stands in base64 in the key's PEM, and in the base64 of that."""
        pem, der = (
            key.private_bytes(encoding, form, serialization.NoEncryption())
            for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER)
        )
        start = (der.index(secret) + 2) // 3 * 4
        end = start + len(secret) // 3 * 4 - 4
        self._add(name, base64.b64encode(der)[start:end][:_CHUNK])
        lines = pem.decode().splitlines()
        private = []
        for number, line in enumerate(lines[1:-1]):
            part = line[max(0, start - number * 64) : max(0, end - number * 64)]
            private.append(part)
            if len(part) >= 16:
                self._add(name, part[:_CHUNK].encode())
        self._add_encoded(name, "\n".join(filter(None, private)).encode())

    def add_broken_key(self, name: str, pem: str) -> None:
        """What looks like a key and is none: each of its lines, and the whole as base64."""
        for line in pem.splitlines():
            if not line.startswith("-----") and len(line) >= 16:
                self._add(name, line[:_CHUNK].encode())
        self._add_encoded(name, pem.encode())

    def _add_encoded(self, name: str, data: bytes) -> None:
        """Base64 of the data, wherever in a longer text it begins; what a neighbour may change is left out."""
        middle = data[len(data) // 3 :] if len(data) > 300 else data
        for shift in range(3):
            encoded = base64.b64encode(middle[shift:])[:-4]
            if len(encoded) >= 16:
                self._add(name, encoded[:_CHUNK])
                self._add(name, encoded[:_CHUNK].translate(bytes.maketrans(b"+/", b"-_")))

    def _add(self, name: str, needle: bytes) -> None:
        assert len(needle) >= 10, f"{name}: {len(needle)} bytes are too few to be looked for"
        self._needles[needle] = name

    def found_in(self, content: bytes | str) -> list[str]:
        """The names of the secrets that the content gives away, sorted."""
        data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
        return sorted({name for needle, name in self._needles.items() if needle in data})

    def found_in_any(self, contents: Iterable[tuple[str, bytes | str]]) -> list[str]:
        """`place: secret` for everything that any content gives away."""
        return [f"{place}: {name}" for place, content in contents for name in self.found_in(content)]


def _numbers(key: object) -> list[int]:
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.private_numbers()
        return [numbers.d, numbers.p, numbers.q]
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return [key.private_numbers().private_value]
