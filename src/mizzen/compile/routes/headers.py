"""Header changes of routes and destinations. Golden case: networking/vs-mirrors-cors-headers."""

from typing import Any

from mizzen.api.networking.virtual_service import HeaderOperations, Headers

_SET = "OVERWRITE_IF_EXISTS_OR_ADD"


def _is_pseudo(name: str) -> bool:
    """The authority is rewritten by other means; other pseudo headers not at all."""
    return name.startswith(":") or name.lower() == "host"


def _additions(operations: HeaderOperations) -> list[dict[str, Any]]:
    """Headers set, then headers added, each sorted by name."""
    changes = [
        {"header": {"key": key, "value": value}, "append_action": _SET}
        for key, value in sorted(operations.set.items())
        if not _is_pseudo(key)
    ]
    changes += [
        {"header": {"key": key, "value": value}} for key, value in sorted(operations.add.items()) if not _is_pseudo(key)
    ]
    return changes


def apply_headers(fields: dict[str, Any], headers: Headers | None) -> None:
    """Append the changes to a route's, or a weighted cluster's, lists."""
    if headers is None:
        return
    for operations, side in ((headers.request, "request"), (headers.response, "response")):
        if operations is None:
            continue
        if added := _additions(operations):
            fields.setdefault(f"{side}_headers_to_add", []).extend(added)
        if removed := [name for name in operations.remove if not _is_pseudo(name)]:
            fields.setdefault(f"{side}_headers_to_remove", []).extend(removed)


def authority(headers: Headers | None) -> str:
    """The authority that header changes ask for; setting beats adding."""
    if headers is None or headers.request is None:
        return ""
    for changes in (headers.request.set, headers.request.add):
        for name, value in sorted(changes.items()):
            if name.lower() in ("host", ":authority") and value:
                return value
    return ""
