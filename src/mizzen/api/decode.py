"""Plain data in, an object or its Problems out.

`decode_object` takes what a YAML or JSON document holds and answers with a `Decoded`: the object's key, the object if
its fields have their types, and Problems with the path of each fault. It goes by the object's apiVersion and kind; an
object of a kind that is not read is no Problem unless its group is the mesh's own. The fast way is one conversion by
msgspec and a look at the names; whatever that refuses is read again field by field (`careful`), which forgives what
Kubernetes and protobuf forgive and reports every fault, not only the first. Nothing is ever raised for what a user
wrote. Rules beyond types are not checked here.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mizzen.api.careful import read_carefully
from mizzen.api.kinds import Kind, is_our_group, kind_of_api, split_api_version
from mizzen.api.meta import LAST_APPLIED, Key, Object
from mizzen.api.policy import AuthorizationPolicy, AuthorizationPolicySpec, Rule
from mizzen.api.problems import Problem
from mizzen.api.scalars import decode_scalar
from mizzen.api.shape import is_plain, shape_of

Outcome = Literal["decoded", "failed", "not-read"]


class Decoded(Struct, frozen=True, kw_only=True):
    """What became of one document."""

    outcome: Outcome
    """`not-read`: the document is fine, and its kind is none that a mesh reads."""
    key: Key | None = None
    """Known for all objects of our kinds that have a name, also for those that failed."""
    object: Object | None = None
    """The object, if the outcome is `decoded`."""
    remains: Object | None = None
    """Of an object that failed: what could be read of it, its faulty fields left out. Never to be served as it is."""
    problems: tuple[Problem, ...] = ()


class _Refused(Exception):
    """Ends the reading of a document before its fields; holds what became of it."""

    def __init__(self, decoded: Decoded) -> None:
        super().__init__(decoded.outcome)
        self.decoded = decoded


def decode_object(raw: object, *, default_namespace: str = "default") -> Decoded:
    """The object in a document; `raw` is left unchanged, and free-form parts of it are shared with the object."""
    try:
        kind = _identify(raw)
        key, prepared = _prepare(raw, kind, default_namespace)
    except _Refused as refused:
        return refused.decoded
    if is_plain(prepared, shape_of(kind.type)):
        try:
            plain = msgspec.convert(prepared, kind.type, dec_hook=decode_scalar, str_keys=True)
        except (msgspec.ValidationError, UnicodeError):
            pass  # read carefully below
        else:
            return Decoded(outcome="decoded", key=key, object=plain)
    value, problems = read_carefully(prepared, kind.type, key=key)
    if any(problem.level == "error" for problem in problems):
        return Decoded(outcome="failed", key=key, remains=value, problems=problems)
    return Decoded(outcome="decoded", key=key, object=value, problems=problems)


def closed_policy(decoded: Decoded) -> AuthorizationPolicy | None:
    """What to enforce in place of an AuthorizationPolicy that does not decode: it denies all that it selects.

    If what it selects is itself unreadable, it selects its whole namespace. None for other kinds and outcomes.
    """
    broken = decoded.remains
    if decoded.outcome != "failed" or not isinstance(broken, AuthorizationPolicy):
        return None
    selecting = ("spec.selector", "spec.targetRef", "spec.target_ref")
    lost = any(problem.path == "spec" or problem.path.startswith(selecting) for problem in decoded.problems)
    spec = AuthorizationPolicySpec() if lost else broken.spec
    closed = msgspec.structs.replace(spec, action="DENY", rules=(Rule(),), provider=None)
    return AuthorizationPolicy(metadata=broken.metadata, spec=closed)


def unfold_lists(raw: object) -> Iterator[object]:
    """The items of a `List` (or of a list of one kind), or the document itself."""
    items = raw.get("items") if isinstance(raw, Mapping) else None
    kind = raw.get("kind") if isinstance(raw, Mapping) else None
    if (
        not isinstance(raw, Mapping)
        or not isinstance(items, list)
        or not isinstance(kind, str)
        or not kind.endswith("List")
    ):
        yield raw
        return
    for item in items:
        if isinstance(item, Mapping) and kind != "List":
            yield {"apiVersion": raw.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
        else:
            yield item


def _identify(raw: object) -> Kind:
    """The kind of a document."""
    if not isinstance(raw, Mapping):
        raise _failed("not-an-object", "", "not an object: expected a map with apiVersion and kind")
    api_version, name = raw.get("apiVersion"), raw.get("kind")
    for path, value in (("apiVersion", api_version), ("kind", name)):
        if not isinstance(value, str) or not value:
            raise _failed("not-an-object", path, "not an object: no apiVersion or no kind")
    assert isinstance(api_version, str)
    assert isinstance(name, str)
    group, version = split_api_version(api_version)
    kind = kind_of_api(group, name)
    if kind and version in kind.versions:
        return kind
    if not is_our_group(group):
        raise _Refused(Decoded(outcome="not-read"))
    if kind:
        served = ", ".join(kind.versions)
        raise _failed("unknown-version", "apiVersion", f"unknown version {version!r} of {name}; known are {served}")
    raise _failed("unknown-kind", "kind", f"unknown kind {name!r} of {group}")


def _prepare(raw: object, kind: Kind, default_namespace: str) -> tuple[Key, Mapping[str, Any]]:
    """The key, and the document with its namespace filled in and without kubectl's copy of itself."""
    assert isinstance(raw, Mapping)
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        raise _failed("no-name", "metadata.name", f"{kind.kind} without a name")
    name, namespace = metadata.get("name"), metadata.get("namespace") or ""
    if not isinstance(name, str) or not name:
        fault = f"{kind.kind} without a name" if not name else f"expected string, got {name!r}"
        raise _failed("no-name", "metadata.name", fault)
    if not isinstance(namespace, str):
        raise _failed("invalid-field", "metadata.namespace", f"{kind.kind} {name}: expected string, got {namespace!r}")
    wanted = (namespace or default_namespace) if kind.namespaced else ""
    if wanted != metadata.get("namespace"):
        metadata = {**metadata, "namespace": wanted}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping) and LAST_APPLIED in annotations:
        kept = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
        metadata = {**metadata, "annotations": kept}
    if metadata is not raw["metadata"]:
        raw = {**raw, "metadata": metadata}
    return Key(kind.name, wanted, name), raw


def _failed(code: str, path: str, message: str) -> _Refused:
    return _Refused(Decoded(outcome="failed", problems=(Problem(code=code, path=path, message=message),)))
