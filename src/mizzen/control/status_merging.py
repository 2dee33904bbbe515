"""A status that was computed, laid over the one that the server has.

In: a status as a value, the fields of the object's `status`, the generation that it was computed for. Out: the fields
to be written, none where the server has them already. What other controllers wrote stays as it is: parents and
ancestors by their controller's name, conditions of an object by their type. Times of transition are kept while a
condition's status is what it was. No time is read here.
"""

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mizzen.api.gateway_api.statuses import Status
from mizzen.model.convert.gateways.classes import GATEWAY_CONTROLLER, MESH_CONTROLLER
from mizzen.model.convert.status.conditions import CONDITIONS

Document = Mapping[str, Any]

_OURS = (GATEWAY_CONTROLLER, MESH_CONTROLLER)
_MOST_PARENTS, _MOST_ANCESTORS = 32, 16
"""What the CRDs allow, with those of others."""


def merge_status(wanted: Status, current: Document, *, generation: int, now: str) -> dict[str, Any]:
    """The fields of `status` that are to be another; None among them removes a field."""
    encoded: dict[str, Any] = msgspec.to_builtins(wanted)
    changed: dict[str, Any] = {}
    for field in wanted.__struct_encode_fields__:
        old = current.get(field)
        new = _MERGES[field](encoded.get(field), old, Stamp(generation, now))
        if canonical(new) != canonical(old):
            changed[field] = new
    return changed


class Stamp:
    """What a condition gets beside what was found."""

    def __init__(self, generation: int, now: str) -> None:
        self._generation, self._now = generation, now

    def on(self, condition: Document, before: Document | None) -> dict[str, Any]:
        same = before is not None and before.get("status") == condition["status"]
        since = before.get("lastTransitionTime") if same and before is not None else None
        return {**condition, "observedGeneration": self._generation, "lastTransitionTime": since or self._now}


# -- fields -----------------------------------------------------------------------------------------------------------


def merge_conditions(
    wanted: Iterable[Document], old: Any, stamp: Stamp, types: Container[str] = CONDITIONS
) -> list[dict[str, Any]]:
    """Those of an object: those of other types than ours stay."""
    kept = [dict(one) for one in members(old) if one.get("type") not in types]
    return [*kept, *_stamped(wanted, old, stamp)]


def _stamped(wanted: Iterable[Document], old: Any, stamp: Stamp) -> list[dict[str, Any]]:
    before = {one.get("type"): one for one in members(old)}
    return [stamp.on(one, before.get(one["type"])) for one in wanted]


def _merge_listeners(wanted: Any, old: Any, stamp: Stamp) -> list[dict[str, Any]]:
    before = {one.get("name"): one for one in members(old)}
    return [
        {**one, "conditions": _stamped(one["conditions"], before.get(one["name"], {}).get("conditions"), stamp)}
        for one in wanted or ()
    ]


def _merge_addresses(wanted: Any, old: Any, _: Stamp) -> Any:
    """An address that was told stays until there is another: what points to it must not lose it for a restart."""
    return list(wanted) if wanted else old


def _merge_count(wanted: Any, _old: Any, _: Stamp) -> Any:
    return wanted


def _merge_entries(reference: str, most: int) -> Callable[[Any, Any, Stamp], list[dict[str, Any]]]:
    def merge(wanted: Any, old: Any, stamp: Stamp) -> list[dict[str, Any]]:
        known = members(old)
        foreign = [dict(one) for one in known if one.get("controllerName") not in _OURS]
        before = {_identity(one, reference): one.get("conditions") for one in known}
        ours = [
            {**one, "conditions": _stamped(one["conditions"], before.get(_identity(one, reference)), stamp)}
            for one in wanted or ()
        ]
        return [*foreign, *ours[: max(0, most - len(foreign))]]

    return merge


def _identity(entry: Document, reference: str) -> tuple[str, str]:
    return str(entry.get("controllerName")), canonical(entry.get(reference))


_MERGES: Mapping[str, Callable[[Any, Any, Stamp], Any]] = {
    "conditions": merge_conditions,
    "listeners": _merge_listeners,
    "addresses": _merge_addresses,
    "attachedListenerSets": _merge_count,
    "parents": _merge_entries("parentRef", _MOST_PARENTS),
    "ancestors": _merge_entries("ancestorRef", _MOST_ANCESTORS),
}


# -- comparison -------------------------------------------------------------------------------------------------------


def members(value: Any) -> Sequence[Document]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def canonical(value: Any) -> str:
    """A text that is equal for what means the same: lists are sets here, and none is as good as an empty one."""
    return json.dumps(_sorted(value), sort_keys=True) if value not in (None, [], ()) else ""


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return sorted((_sorted(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value
