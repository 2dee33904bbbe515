"""Values: one patch of an EnvoyFilter as a message, read once however many resources it changes.

In: the key of a patch. Out: `ReadyPatch`, or a Problem for one that cannot be read, which is left out alone; `problems`
gathers those of an EnvoyFilter. Fields that Envoy's messages do not have are passed over, as Istio does:
the patch may be meant for another version. An `Any` of an unknown type cannot be sent and makes a patch unreadable.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from google.protobuf.message import Message

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.api.networking.envoy_filter import (
    ApplyTo,
    EnvoyConfigObjectMatch,
    EnvoyConfigObjectPatch,
    EnvoyFilter,
    Patch,
    PatchContext,
    PatchOperation,
)
from mizzen.api.problems import Problem
from mizzen.api.validate.envoy_filter.values import PATCHED
from mizzen.compile.patches.opaque import as_typed_structs
from mizzen.errors import DecodeError
from mizzen.incremental import Engine, attempt, query
from mizzen.model.envoy_filters import MAX_VERSION_PATTERN, PatchId, version_pattern
from mizzen.model.proxy import Kind

_MESSAGES: Mapping[str, str] = {apply_to: message for apply_to, message in PATCHED.items() if apply_to != "BOOTSTRAP"}
"""The bootstrap is not told by a control plane, so nothing can patch it there."""
_INSERTED = ("NETWORK_FILTER", "HTTP_FILTER", "HTTP_ROUTE", "LISTENER_FILTER")
"""What can be inserted at a place; elsewhere an insertion only adds."""
_NAMED = ("CLUSTER", "LISTENER", "EXTENSION_CONFIG")
"""What is known to Envoy by its name, so that one without cannot be added."""

_CONTEXTS: Mapping[Kind, tuple[PatchContext, ...]] = {
    "sidecar": ("SIDECAR_OUTBOUND", "SIDECAR_INBOUND"),
    "router": ("GATEWAY",),
    "waypoint": ("WAYPOINT",),
}

_ANYTHING = EnvoyConfigObjectMatch()


class ReadyPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that can be applied."""

    id: PatchId
    apply_to: ApplyTo
    operation: PatchOperation
    match: EnvoyConfigObjectMatch
    value: Any = None
    """The message; nobody changes it. None for a removal."""

    @property
    def merges(self) -> bool:
        """Whether it merges, in either way."""
        return self.operation in ("MERGE", "MERGE_AND_REPLACE_LIST")

    @property
    def replaces_lists(self) -> bool:
        """Whether a merge puts lists in place of those that are there."""
        return self.operation == "MERGE_AND_REPLACE_LIST"

    def is_in(self, context: PatchContext) -> bool:
        """Whether it is for this part of the configuration."""
        return self.match.context in ("ANY", context)

    def adds_to(self, context: PatchContext) -> bool:
        """Whether it adds a resource to this part; where it names no part, only clients' and gateways' grow."""
        named = self.match.context if self.match.context != "ANY" else None
        return self.operation == "ADD" and (
            context == named or (named is None and context in ("SIDECAR_OUTBOUND", "GATEWAY"))
        )


def contexts(kind: Kind) -> tuple[PatchContext, ...]:
    """The parts of a proxy's configuration: a sidecar's outbound part before its inbound one."""
    return _CONTEXTS[kind]


def patches(db: Engine, ids: tuple[PatchId, ...]) -> list[ReadyPatch]:
    """Those of the patches that can be read."""
    found = (attempt(examined, db, identity) for identity in ids)
    return [each for each in found if isinstance(each, ReadyPatch)]


@query
def examined(db: Engine, identity: PatchId) -> ReadyPatch | Problem | None:
    """The patch, or what is wrong with it; None where there is no such patch, or it is not for here."""
    envoy_filter: EnvoyFilter | None = db.input(identity.key)
    if envoy_filter is None or identity.position >= len(envoy_filter.spec.config_patches):
        return None
    found = envoy_filter.spec.config_patches[identity.position]
    if found.apply_to == "BOOTSTRAP":
        return None
    fault = _written_fault(found)
    read = build_problem(identity, *fault) if fault is not None else _read(identity, found)
    if isinstance(read, Problem):
        db.remark(read)
    return read


@query
def problems(db: Engine, key: Key) -> tuple[Problem, ...]:
    """What is wrong with the patches of an EnvoyFilter; each of them is out of force, the others are not."""
    envoy_filter: EnvoyFilter | None = db.input(key)
    count = len(envoy_filter.spec.config_patches) if envoy_filter is not None else 0
    found = (examined(db, PatchId(key.namespace, key.name, index)) for index in range(count))
    return tuple(each for each in found if isinstance(each, Problem))


def build_problem(identity: PatchId, path: str, message: str) -> Problem:
    """A Problem of one patch."""
    return Problem(
        key=identity.key,
        path=f"spec.configPatches[{identity.position}].{path}",
        message=message,
        code="unusable-patch",
    )


def _written_fault(found: EnvoyConfigObjectPatch) -> tuple[str, str] | None:
    """The path of what is wrong around the value, and what it is."""
    if found.apply_to not in _MESSAGES:
        return "applyTo", "missing applyTo"
    if found.patch is None or found.patch.operation == "INVALID":
        return "patch", "missing patch operation"
    if found.patch.operation != "REMOVE" and found.patch.value is None:
        return "patch.value", "missing patch value for non-remove operation"
    pattern = found.match.proxy.proxy_version if found.match is not None and found.match.proxy is not None else ""
    if len(pattern) > MAX_VERSION_PATTERN:
        return "match.proxy.proxyVersion", f"longer than {MAX_VERSION_PATTERN} characters: it matches no version"
    if pattern and version_pattern(pattern) is None:
        return "match.proxy.proxyVersion", "not a regular expression of RE2: it matches no version"
    return None


def _read(identity: PatchId, found: EnvoyConfigObjectPatch) -> ReadyPatch | Problem:
    written = found.patch or Patch()
    operation = written.operation
    if operation.startswith("INSERT") and found.apply_to not in _INSERTED:
        operation = "ADD"
    message = None
    if operation != "REMOVE":
        kind = protos.message_class(_MESSAGES[found.apply_to])
        try:
            message = protos.from_json(kind, as_typed_structs(written.value or {}), ignore_unknown=True)
            _settle(message)
        except DecodeError as bad:
            return build_problem(identity, "patch.value", str(bad))
        except RecursionError:
            return build_problem(identity, "patch.value", "nested too deeply")
        if operation == "ADD" and found.apply_to in _NAMED and not message.name:
            return build_problem(identity, "patch.value.name", "what has no name cannot be added")
    return ReadyPatch(
        id=identity,
        apply_to=found.apply_to,
        operation=operation,
        match=found.match or _ANYTHING,
        value=message,
    )


def _settle(message: Message) -> None:
    """Give every `Any` inside the bytes that it has in all processes; raises DecodeError for one of unknown type."""
    if message.DESCRIPTOR.full_name == "google.protobuf.Any":
        packed: Any = message
        if packed.type_url:
            inside = protos.unpack(packed)
            _settle(inside)
            packed.value = protos.encode(inside)
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if not field.is_repeated:
            _settle(value)
        elif not field.message_type.GetOptions().map_entry:
            for each in value:
                _settle(each)
        elif field.message_type.fields_by_name["value"].message_type is not None:
            for each in value.values():
                _settle(each)
