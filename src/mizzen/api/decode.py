"""Plain data in, an object or its Problems out.

`decode_object` takes what a YAML or JSON document holds and answers with a `Decoded`: the object's key, the object if
its fields have their types, and Problems with the path of each fault. It goes by the object's apiVersion and kind; an
object of a kind that is not read is no Problem unless its group is the mesh's own. The fast way is one conversion by
msgspec and a look at the names; whatever that refuses is read again field by field (`careful`), which forgives what
Kubernetes and protobuf forgive and reports every fault, not only the first. Unknown fields are warnings, but for those
of security.istio.io: they fail as ones with a wrong type do (`closed`). Nothing is ever raised for what a user wrote.
Rules beyond types are not checked here (`validate`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from mizzen.api.careful import read_carefully
from mizzen.api.kinds import Kind, is_our_group, kind_of_api, split_api_version
from mizzen.api.meta import Key, Object, without_remarks
from mizzen.api.policy import AuthorizationPolicy, PeerAuthentication, RequestAuthentication
from mizzen.api.problems import Problem
from mizzen.api.scalars import decode_scalar
from mizzen.api.shape import is_plain, shape_of

Outcome = Literal["decoded", "failed", "not-read"]

_SECURITY = (AuthorizationPolicy, PeerAuthentication, RequestAuthentication)


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


class _Document(NamedTuple):
    """A document that is known to be an object of ours."""

    kind: Kind
    version: str
    key: Key
    data: Mapping[str, Any]
    """The document, with its namespace filled in and without kubectl's copy of itself."""


def decode_object(raw: object, *, default_namespace: str = "default") -> Decoded:
    """The object in a document; `raw` is left unchanged, and free-form parts of it are shared with the object."""
    document = _identify(raw, default_namespace)
    if isinstance(document, Decoded):
        return document
    kind, key = document.kind, document.key
    known_version = document.version in kind.versions
    if known_version and is_plain(document.data, shape_of(kind.type)):
        try:
            plain = msgspec.convert(document.data, kind.type, dec_hook=decode_scalar, str_keys=True)
        except (msgspec.ValidationError, UnicodeError):
            pass  # read carefully below
        else:
            return Decoded(outcome="decoded", key=key, object=plain)
    value, problems = read_carefully(document.data, kind.type, key=key)
    if kind.type in _SECURITY:
        problems = tuple(map(_refuse_unknown, problems))
    if not known_version:
        problems = (_unknown_version(document), *problems)
    if any(problem.level == "error" for problem in problems):
        return Decoded(outcome="failed", key=key, remains=value, problems=problems)
    return Decoded(outcome="decoded", key=key, object=value, problems=problems)


def _refuse_unknown(problem: Problem) -> Problem:
    """A field that is not known is an error in what a policy says: read without it, the policy would allow more."""
    if problem.code != "unknown-field" or not problem.path.startswith("spec."):
        return problem
    return msgspec.structs.replace(problem, level="error")


def unfold_lists(raw: object) -> Iterator[object]:
    """The items of a `List` (or of a list of one kind), or the document itself."""
    if not isinstance(raw, Mapping):
        yield raw
        return
    kind, items = raw.get("kind"), raw.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        yield raw
        return
    for item in items:
        if isinstance(item, Mapping) and kind != "List":
            yield {"apiVersion": raw.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
        else:
            yield item


def _identify(raw: object, default_namespace: str) -> _Document | Decoded:
    """The object in a document, or what became of the document if there is none of ours in it."""
    if not isinstance(raw, Mapping):
        return _failed("not-an-object", "", "not an object: expected a map with apiVersion and kind")
    api_version, name = raw.get("apiVersion"), raw.get("kind")
    if not isinstance(api_version, str) or not isinstance(name, str) or not api_version or not name:
        return _failed("not-an-object", "", "not an object: apiVersion or kind is missing or no string")
    group, version = split_api_version(api_version)
    kind = kind_of_api(group, name)
    if kind and (version in kind.versions or is_our_group(group)):
        return _identify_object(raw, kind, version, default_namespace)
    if is_our_group(group):
        return _failed("unknown-kind", "kind", f"unknown kind {name!r} of {group}")
    return Decoded(outcome="not-read")


def _identify_object(raw: Mapping[str, Any], kind: Kind, version: str, default_namespace: str) -> _Document | Decoded:
    """The object with its key; an object without a usable name or namespace fails."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        return _failed("no-name", "metadata.name", f"{kind.kind} without a name")
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        fault = f"{kind.kind} with a name that is no string" if name else f"{kind.kind} without a name"
        return _failed("no-name", "metadata.name", fault)
    if namespace is not None and not isinstance(namespace, str):
        fault = f"{kind.kind} {name} with a namespace that is no string"
        return _failed("invalid-field", "metadata.namespace", fault)
    wanted = (namespace or default_namespace) if kind.namespaced else ""
    data = {**raw, "metadata": _clean_metadata(metadata, wanted, kind)}
    return _Document(kind, version, Key(kind.name, wanted, name), data)


def _clean_metadata(metadata: Mapping[str, Any], namespace: str, kind: Kind) -> Mapping[str, Any]:
    """Metadata with this namespace, without annotations that mean nothing."""
    clean = {**metadata, "namespace": namespace}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping):
        clean["annotations"] = without_remarks(annotations, of_tools=kind.takes_remarks)
    return clean


def _unknown_version(document: _Document) -> Problem:
    """The Problem of an object of our kinds in a version that does not exist."""
    known = ", ".join(document.kind.versions)
    message = f"unknown version {document.version!r} of {document.kind.kind}; known are {known}"
    return Problem(key=document.key, code="unknown-version", path="apiVersion", message=message)


def _failed(code: str, path: str, message: str) -> Decoded:
    return Decoded(outcome="failed", problems=(Problem(code=code, path=path, message=message),))
