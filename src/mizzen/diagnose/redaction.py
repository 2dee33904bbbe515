"""What must not leave a machine in a report: private keys, tokens, the contents of Secrets.

In: text of any kind, or objects. Out: the same with `[redacted]` in place of what is secret. Certificates and the
names of keys stay: a reader of a report needs them.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any

from mizzen.api.meta import LAST_APPLIED

REDACTED = "[redacted]"

_KEY = re.compile(
    r"(-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----).*?(-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----)", re.DOTALL
)
_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")
_HEADER = re.compile(r"((?:proxy-)?authorization\"?\s*[:=]\s*\"?(?:bearer|basic)\s+)[^\s\",']+", re.IGNORECASE)
_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s/@]+(@)", re.IGNORECASE)
_ENCODED = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{40,}={0,2}")
"""`-----BEGIN` in base64."""


def redact_text(text: str) -> str:
    """The text without keys, tokens and passwords, also where a key is in base64."""
    text = _KEY.sub(rf"\1\n{REDACTED}\n\2", text)
    text = _ENCODED.sub(_redact_encoded, text)
    text = _TOKEN.sub(REDACTED, text)
    text = _HEADER.sub(rf"\1{REDACTED}", text)
    return _PASSWORD.sub(rf"\1{REDACTED}\2", text)


def _redact_encoded(found: re.Match[str]) -> str:
    """Certificates stay; what cannot be decoded is taken for a key."""
    try:
        plain = base64.b64decode(found[0], validate=True)
    except ValueError:
        return REDACTED
    return REDACTED if b"PRIVATE KEY" in plain else found[0]


def redact_object(document: Any) -> Any:
    """A Kubernetes object, or a List of them, in which the values of Secrets are cut out."""
    if not isinstance(document, Mapping):
        return document
    found = dict(document)
    if isinstance(found.get("items"), list):
        found["items"] = [redact_object(item) for item in found["items"]]
    if found.get("kind") != "Secret":
        return found
    for name in ("data", "stringData"):
        values = found.get(name)
        if isinstance(values, Mapping):
            found[name] = dict.fromkeys(values, REDACTED)
    return _without_last_applied(found)


def _without_last_applied(secret: dict[str, Any]) -> dict[str, Any]:
    """kubectl's copy of a Secret holds its values once more."""
    metadata = secret.get("metadata")
    if not isinstance(metadata, Mapping):
        return secret
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping) or LAST_APPLIED not in annotations:
        return secret
    kept = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
    return {**secret, "metadata": {**metadata, "annotations": kept}}
