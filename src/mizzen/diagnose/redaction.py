"""Private keys out of what is printed.

In: a resource as protobuf JSON. Out: the same with `[redacted]` for every key and password, wherever it stands: in a
Secret, or inline in a TLS context that somebody patched in.
"""

from typing import Any

REDACTED = "[redacted]"
_SOURCE = {"inlineString": REDACTED}

_PRIVATE = frozenset({"privateKey", "password", "sessionTicketKeys"})
"""Fields whose whole value is private; in Envoy's API each is a DataSource or holds only such."""
_PRIVATE_SECRETS = frozenset({"genericSecret"})


def redact(value: Any) -> Any:
    """A copy without private keys."""
    if isinstance(value, dict):
        return {name: _redacted(name) if _is_private(name, item) else redact(item) for name, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def _is_private(name: str, value: Any) -> bool:
    return isinstance(value, dict) and (name in _PRIVATE or name in _PRIVATE_SECRETS)


def _redacted(name: str) -> dict[str, Any]:
    if name == "sessionTicketKeys":
        return {"keys": [_SOURCE]}
    if name == "genericSecret":
        return {"secret": _SOURCE}
    return _SOURCE
