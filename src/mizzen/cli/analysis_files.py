"""Manifests for `analyze`: every document under the paths, with what became of it and where it stands.

In: files, folders, stdin, and objects of a cluster, which stand in no file. Out: `Manifests`: objects by key, the place
of each, conditions written in statuses, Problems of decoding, and an `Account` for every document. A later path
replaces objects of an earlier one; within one path the first of two stays. What is no object (values files, patches,
templates before they are rendered, empty documents) is passed over and accounted for; what claims to be one and cannot
be read is an error, and a policy among these is told to deny.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from mizzen.analysis.cluster import Condition, decode_cluster_object, read_conditions
from mizzen.api.closed import Closed
from mizzen.api.decode import Decoded, decode_object, unfold_lists
from mizzen.api.kinds import is_our_group
from mizzen.api.meta import Key, Object
from mizzen.api.problems import Problem
from mizzen.sources import bystanders, documents, entries, judgement, tree

STDIN = "-"
_REVISION = "istio.io/rev"
_HOLD_CONDITIONS = frozenset({"Gateway", "HTTPRoute", "GRPCRoute"}) | {
    "Service",
    "ServiceEntry",
    "WorkloadEntry",
    "AuthorizationPolicy",
}

Outcome = Literal[
    "read", "duplicate", "other revision", "not read", "no object", "no text", "template", "empty", "error"
]


class Place(NamedTuple):
    """Where an object stands; one of a cluster has no file."""

    file: str
    line: int
    lines_before: int
    document: int
    locator: documents.Locator
    item: str = ""
    """Of a List, `items[3]`."""

    def reference(self, path: str = "") -> str:
        """The place as `file:line`, of a field if it can be found; of JSON the file alone."""
        if not self.file or self.file.endswith(".json"):
            return self.file
        if not path:
            return f"{self.file}:{self.line}"
        full = ".".join(filter(None, (self.item, path)))
        return f"{self.file}:{self.lines_before + self.locator.find_line(self.document, full)}"


class Account(NamedTuple):
    """What became of one document, or of one item of a List."""

    reference: str
    subject: str
    outcome: Outcome
    detail: str = ""


class Manifests(msgspec.Struct, kw_only=True):
    """All that was read."""

    objects: dict[Key, Object] = {}
    places: dict[Key, Place] = {}
    conditions: dict[Key, tuple[Condition, ...]] = {}
    problems: list[Problem] = []
    """Of objects that were read all the same."""
    closed: list[tuple[Closed, Place, str]] = []
    """Policies that cannot be read, and why; what stands for each denies."""
    doubles: list[tuple[Key, str]] = []
    """Objects that stand twice, with the place of the one that counts."""
    accounts: list[Account] = []
    errors: list[str] = []
    skipped: list[str] = []
    """Files in folders that are no YAML or JSON."""


class Asked(NamedTuple):
    """How to read."""

    namespace: str = "default"
    """Of objects without one."""
    revision: str = "default"


def load(
    paths: Sequence[str], asked: Asked, stdin: bytes = b"", cluster: Sequence[Mapping[str, Any]] = ()
) -> Manifests:
    """Objects of a cluster, and everything under the paths; raises SourceError for a path that does not exist."""
    manifests = Manifests()
    live = _Reader(manifests, asked, "")
    for document in cluster:
        live.read_object(_IN_CLUSTER, document)
    for path in paths:
        reader = _Reader(manifests, asked, path)
        if path == STDIN:
            reader.read(STDIN, stdin)
            continue
        listing = tree.list_files(pathlib.Path(path))
        for origin, problem in listing.findings:
            outcome: Outcome = "error" if problem.level == "error" else "not read"
            manifests.accounts.append(Account(str(origin), "", outcome, problem.message))
            if outcome == "error":
                manifests.errors.append(f"{origin}: {problem}")
        for name, first in listing.repeats.items():
            manifests.accounts.append(Account(name, "", "not read", f"the same file as {first}"))
        manifests.skipped += tree.other_files(path, listing.files)
        for name in listing.files:
            reader.read_file(name)
    return manifests


_IN_CLUSTER = Place("", 0, 0, 0, documents.Locator(""))


class _Reader:
    """Reads the files of one path."""

    def __init__(self, manifests: Manifests, asked: Asked, path: str) -> None:
        self._path = path
        """What is named itself is meant to hold objects; what lies in a folder may be no manifest at all."""
        self._into = manifests
        self._asked = asked
        self._own: set[Key] = set()
        """What this path holds so far."""
        self._ordinal = 0
        """Of the document in its file."""

    def read_file(self, name: str) -> None:
        """One file."""
        try:
            content = tree.read_bytes(name)
        except tree.Unreadable as unreadable:
            self._fail(name, "", f'errors parsing content "{name}": {unreadable}')
        else:
            self.read(name, content)

    def read(self, name: str, content: bytes) -> None:
        """The bytes of one file."""
        try:
            text = tree.decode_text(content)
        except tree.Unreadable as unreadable:
            if name == self._path or bystanders.bytes_claim(content):
                self._fail(name, "", f'errors parsing content "{name}": {unreadable}')
            else:
                self._into.accounts.append(Account(name, "", "no text", str(unreadable)))
            return
        is_json = name.endswith(".json")
        chunks = [documents.Chunk(text, 1)] if is_json else list(documents.split_yaml(text))
        self._ordinal = 0
        for part, line in chunks:
            try:
                found = documents.parse_json(part) if is_json else documents.parse_yaml(part)
            except documents.DocumentError as bad:
                self._read_broken(name, part, line, bad)
                self._ordinal += 1
                continue
            locator = documents.Locator(part)
            for number, document in enumerate(found):
                place = Place(name, line - 1 + document.line, line - 1, number, locator)
                self._read_document(place, document.value)
                self._ordinal += 1
        if not self._ordinal:
            self._into.accounts.append(Account(name, "", "empty"))

    def _read_broken(self, name: str, part: str, line: int, bad: documents.DocumentError) -> None:
        """A document that does not parse: a template, a text that is no object, or an object that is broken."""
        where = f"{name}:{line - 1 + bad.line}"
        excused = name != self._path
        if excused and bystanders.is_template_text(part):
            self._into.accounts.append(Account(where, "", "template", str(bad)))
        elif excused and not bystanders.text_claims(part):
            self._into.accounts.append(Account(where, "", "no object", str(bad)))
        else:
            self._fail(where, "", self._unprocessed(name, str(bad)))
            for entry in entries.unreadable(part, bad):
                if entry.stand_in is not None:
                    place = Place(name, line - 1 + entry.line, line - 1, 0, documents.Locator(part))
                    self._into.closed.append((entry.stand_in, place, str(bad)))

    def _unprocessed(self, name: str, why: str) -> str:
        return f'errors parsing content "{name}": error processing {name}[{self._ordinal}]: {why}'

    def _read_document(self, place: Place, value: Any) -> None:
        if value is None:
            self._account(place, "", "empty")
            return
        items = list(unfold_lists(value))
        if len(items) == 1 and items[0] is value:
            self.read_object(place, value)
            return
        if not items:
            self._account(place, str(value.get("kind")), "empty")
        for index, item in enumerate(items):
            where = f"items[{index}]"
            line = place.lines_before + place.locator.find_line(place.document, where)
            self.read_object(place._replace(item=where, line=line), item)

    def read_object(self, place: Place, raw: Any) -> None:
        """One object, or what claims to be one."""
        if not isinstance(raw, dict) or not judgement.claims_to_be_object(raw):
            self._account(place, "", "no object")
            return
        subject = _subject(raw)
        if bystanders.is_template(raw):
            self._account(place, subject, "template")
            return
        other = decode_cluster_object(raw)
        if other is not None:
            self._take(place, subject, *other)
            return
        decoded = decode_object(raw, default_namespace=self._asked.namespace)
        found = decoded.object or _forgiven(decoded)
        if found is not None and decoded.key is not None:
            if _is_of_other_revision(raw, self._asked.revision):
                self._account(place, subject, "other revision")
                return
            if self._take(place, subject, decoded.key, found):
                self._into.problems += decoded.problems
                if raw["kind"] in _HOLD_CONDITIONS and (conditions := read_conditions(raw)):
                    self._into.conditions[decoded.key] = conditions
        elif decoded.outcome == "not-read":
            self._account(place, subject, "not read")
        elif decoded.key is None and bystanders.is_named_later(raw):
            self._account(place, subject, "not read", "its name is yet to be generated")
        else:
            self._fail(place.reference(), subject, self._unprocessed(place.file, "; ".join(map(str, decoded.problems))))
            stand_in = judgement.find_stand_in(decoded, raw)
            if stand_in is not None:
                why = "; ".join(f"{problem.path}: {problem.message}" for problem in decoded.problems)
                self._into.closed.append((stand_in, place, why))

    def _take(self, place: Place, subject: str, key: Key, found: Object) -> bool:
        """Put an object into force, unless this path has it already."""
        into = self._into
        if key in self._own:
            first = into.places[key].reference()
            into.doubles.append((key, place.reference()))
            self._account(place, subject, "duplicate", f"already defined at {first}")
            return False
        if key in into.objects:
            before = into.places[key].reference()
            self._account(place, subject, "read", f"replaces the one at {before}")
            into.conditions.pop(key, None)
            into.problems[:] = [problem for problem in into.problems if problem.key != key]
        else:
            self._account(place, subject, "read")
        self._own.add(key)
        into.objects[key], into.places[key] = found, place
        return True

    def _account(self, place: Place, subject: str, outcome: Outcome, detail: str = "") -> None:
        self._into.accounts.append(Account(place.reference(), subject, outcome, detail))

    def _fail(self, reference: str, subject: str, text: str) -> None:
        self._into.accounts.append(Account(reference, subject, "error", text))
        self._into.errors.append(text)


def _subject(raw: dict[str, Any]) -> str:
    metadata = raw.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    full = "/".join(str(part) for part in (names.get("namespace"), names.get("name")) if part)
    return f"{raw.get('kind')} {full}".strip()


def _is_of_other_revision(raw: dict[str, Any], revision: str) -> bool:
    """Whether an object of Istio's is labelled for another control plane."""
    group = str(raw.get("apiVersion")).rpartition("/")[0]
    metadata = raw.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    wanted = labels.get(_REVISION) if isinstance(labels, dict) else None
    return wanted is not None and group.endswith("istio.io") and is_our_group(group) and wanted != revision


def _forgiven(decoded: Decoded) -> Object | None:
    """A policy whose only faults are fields that nobody knows: analysis goes on with the rest of it."""
    errors = [problem for problem in decoded.problems if problem.level == "error"]
    only_unknown = bool(errors) and all(problem.code == "unknown-field" for problem in errors)
    return decoded.remains if only_unknown else None
