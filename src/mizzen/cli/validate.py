"""`mizzen validate`: manifests held against the rules of admission, offline.

In: files, folders or stdin with YAML or JSON. Out, on stderr as istioctl has it: each file as valid or with its
warnings, or the list of all errors and exit code 1. It is strict where admission forgives: fields that nobody knows and
keys written twice are errors. Kinds that are not read pass without a word.
"""

import pathlib
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mizzen.cli import options
from mizzen.cli.flags import Command
from mizzen.cli.groups import Invocation
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.api.decode import Decoded
    from mizzen.api.problems import Problem
    from mizzen.api.validate.faults import Fault
    from mizzen.sources.documents import Chunk
    from mizzen.sources.tree import Listing

STDIN = "-"

_NO_FILE = """error: you must specify resources by --filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'"""
_PROTOS = {
    "networking.istio.io": "istio.networking.v1alpha3",
    "security.istio.io": "istio.security.v1beta1",
    "telemetry.istio.io": "istio.telemetry.v1alpha1",
    "extensions.istio.io": "istio.extensions.v1alpha1",
}
"""The proto packages of the groups whose specs are protobuf messages."""


_OUTCOMES = {"not-read": "not read"}


class Verdict(NamedTuple):
    """What is to be said of one file."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """Advice that makes a file no less valid."""
    accounts: tuple[str, ...] = ()
    """What became of each document, for those who ask."""
    is_read: bool = True
    """False for what is not looked into."""


class _Asked(NamedTuple):
    """What the command line says about objects."""

    namespace: str
    """Of objects without one."""
    istio_namespace: str
    with_places: bool
    """Whether to say where in a file and in an object a fault is."""


@click.command("validate", cls=Command)
@options.manifests_option()
@click.option("-x", "--referential/--no-referential", default=True, hidden=True, help="Taken, and without effect.")
@click.option(
    "-i", "--istioNamespace", "istio_namespace", default="istio-system", help="Its Services need no protocols."
)
@options.namespace_option
@click.pass_obj
def validate(
    invocation: Invocation, paths: tuple[str, ...], referential: bool, istio_namespace: str, namespace: str
) -> None:
    """Hold manifests against the rules of admission, offline.

    `mizzen -v validate` says with each fault where it is, and what became of every document.
    """
    from mizzen.api.validate.faults import join_messages

    del referential
    if not paths:
        raise MizzenError(_NO_FILE)
    asked = _Asked(namespace or options.DEFAULT_NAMESPACE, istio_namespace, invocation.verbose)
    verdicts = [(name, verdict) for path in paths for name, verdict in _judge(path, asked)]
    errors = [message for _, verdict in verdicts for message in verdict.errors]
    if asked.with_places:
        for account in (account for _, verdict in verdicts for account in verdict.accounts):
            click.echo(account, err=True)
    for name, verdict in verdicts:
        for notice in verdict.notices:
            click.echo(notice, err=True)
        if verdict.warnings or (verdict.is_read and not errors):
            click.echo(_describe(name, verdict.warnings), err=True)
    if errors:
        raise MizzenError(join_messages(errors).removesuffix("\n"))


def _describe(name: str, warnings: tuple[str, ...]) -> str:
    listed = "".join(f"\n\t* {warning}" for warning in warnings)
    if name == STDIN:
        return f"validation had warnings: {listed}" if warnings else "validation succeed"
    return f'"{name}" has warnings: {listed}' if warnings else f'"{name}" is valid'


def _judge(path: str, asked: _Asked) -> Iterator[tuple[str, Verdict]]:
    """The files under a path with their verdicts; a path that cannot be read is an error, and the others are read."""
    from mizzen.errors import SourceError
    from mizzen.sources import tree

    if path == STDIN:
        yield STDIN, _judge_bytes(STDIN, sys.stdin.buffer.read(), asked, named=True)
        return
    try:
        listing = tree.list_files(pathlib.Path(path))
    except SourceError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        yield path, Verdict(errors=(f'cannot stat file "{path}": stat {path}: {str(reason).lower()}',))
        return
    yield from _unread(path, listing)
    for name in listing.files:
        try:
            content = tree.read_bytes(name)
        except tree.Unreadable as unreadable:
            yield name, Verdict(errors=(f'cannot read file "{name}": {unreadable}',))
        else:
            yield name, _judge_bytes(name, content, asked, named=name == path)


def _unread(path: str, listing: "Listing") -> Iterator[tuple[str, Verdict]]:
    """What under a path is not looked into, and why."""
    from mizzen.sources import tree

    for origin, problem in listing.findings:
        errors = (f"{origin}: {problem}",) if problem.level == "error" else ()
        accounts = (f"{origin}: not read ({problem.message})",)
        yield str(origin), Verdict(errors=errors, accounts=accounts, is_read=False)
    for name, first in listing.repeats.items():
        yield name, Verdict(accounts=(f"{name}: not read (the same file as {first})",), is_read=False)
    for name in tree.other_files(path, listing.files):
        accounts = (f"{name}: skipped, for its name does not end in .json, .yaml or .yml",)
        yield name, Verdict(accounts=accounts, is_read=False)


def _judge_bytes(name: str, content: bytes, asked: _Asked, *, named: bool) -> Verdict:
    """The bytes of a file; what lies in a folder may be no manifest at all, what was named itself is meant to be."""
    from mizzen.sources import bystanders, documents, tree

    try:
        text = tree.decode_text(content)
    except tree.Unreadable as unreadable:
        if named or bystanders.bytes_claim(content):
            return Verdict(errors=(_undecodable(name, str(unreadable)),), accounts=(f"{name}: error",))
        return Verdict(accounts=(f"{name}: no text ({unreadable})",), is_read=False)
    chunks = [documents.Chunk(text, 1)] if name.endswith(".json") else list(documents.split_yaml(text))
    verdicts = list(_judge_chunks(name, chunks, asked, named=named))
    return Verdict(
        errors=tuple(line for verdict in verdicts for line in verdict.errors),
        warnings=tuple(line for verdict in verdicts for line in verdict.warnings),
        notices=tuple(line for verdict in verdicts for line in verdict.notices),
        accounts=tuple(line for verdict in verdicts for line in verdict.accounts) or (f"{name}: empty",),
        is_read=not verdicts or any(verdict.is_read for verdict in verdicts),
    )


def _judge_chunks(name: str, chunks: Iterable["Chunk"], asked: _Asked, *, named: bool) -> Iterator[Verdict]:
    from mizzen.sources import documents

    for text, line in chunks:
        try:
            found = documents.parse_json(text) if name.endswith(".json") else documents.parse_yaml(text)
        except documents.DocumentError as bad:
            yield _judge_broken(name, "" if named else text, line - 1 + bad.line, bad.message)
            continue
        locator = documents.Locator(text)
        for index, document in enumerate(found):
            if document.repeated and (named or _is_meant(document.value)):
                repeated = (f'line {line - 1 + at}: key "{key}" already set in map' for key, at in document.repeated)
                yield Verdict(errors=tuple(_undecodable(name, reason) for reason in repeated))
            else:
                yield from _judge_document(_Place(name, line - 1, index, locator), document.value, asked)


def _judge_broken(name: str, text: str, line: int, reason: str) -> Verdict:
    """A document that does not parse; without its text it cannot be excused."""
    from mizzen.sources import bystanders

    if text and bystanders.is_template_text(text):
        return Verdict(accounts=(f"{name}:{line}: template ({reason})",), is_read=False)
    if text and not bystanders.text_claims(text):
        return Verdict(accounts=(f"{name}:{line}: no object ({reason})",), is_read=False)
    errors = (_undecodable(name, f"line {line}: {reason}"),)
    return Verdict(errors=errors, accounts=(f"{name}:{line}: error",))


def _is_meant(value: Any) -> bool:
    """Whether any object is in a document."""
    from mizzen.api.decode import unfold_lists
    from mizzen.sources import judgement

    return any(judgement.claims_to_be_object(item) for item in unfold_lists(value))


def _undecodable(name: str, reason: str) -> str:
    return f"failed to decode file {name}: : {reason}"


class _Place(NamedTuple):
    """A document in a file."""

    file: str
    lines_before: int
    document: int
    locator: Any
    item: str = ""
    """Of a List, `items[3]`."""

    def at(self, path: str) -> str:
        """Where a field of it is, for a person."""
        full = ".".join(filter(None, (self.item, path)))
        line = self.lines_before + self.locator.find_line(self.document, full)
        return f"{self.file}:{line}" + (f" {path}" if path else "")


def _judge_document(place: _Place, value: Any, asked: _Asked) -> Iterator[Verdict]:
    from mizzen.api.decode import unfold_lists

    if value is None:
        yield Verdict(accounts=(f"{place.at('')}: empty",))
        return
    items = list(unfold_lists(value))
    if len(items) == 1 and items[0] is value:
        yield _judge_object(place, value, asked)
    else:
        for index, item in enumerate(items):
            yield _judge_object(place._replace(item=f"items[{index}]"), item, asked)


def _judge_object(place: _Place, raw: Any, asked: _Asked) -> Verdict:
    """One object: its Problems as istioctl words them, each behind `Kind/namespace/name`."""
    from mizzen.api.decode import decode_object
    from mizzen.api.validate.objects import validate_object
    from mizzen.sources import bystanders, judgement

    if not isinstance(raw, dict) or not judgement.claims_to_be_object(raw):
        missing = "kind" if not isinstance(raw, dict) or not raw.get("kind") else "apiVersion"
        return Verdict(
            notices=(f"{place.at('')}: no object, since it has no {missing}",),
            accounts=(f"{place.at('')}: no object",),
        )
    if bystanders.is_template(raw):
        return Verdict(accounts=(f"{place.at('')}: template",), is_read=False)
    decoded = decode_object(raw, default_namespace=asked.namespace)
    if decoded.key is None and bystanders.is_named_later(raw):
        return Verdict(accounts=(f"{place.at('')}: {raw['kind']} not read (its name is yet to be generated)",))
    metadata = raw.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    written = str(names.get("namespace") or "")
    subject = f"{raw['kind']}/{written}/{names.get('name') or ''}: "
    problems = [_strict(problem, raw) for problem in decoded.problems]
    if decoded.object is not None and decoded.key is not None:
        problems += validate_object(decoded.key, decoded.object)

    def say(problem: "Problem | Fault") -> str:
        where = f" ({place.at(problem.path)})" if asked.with_places else ""
        return f"{subject}{problem.message}{where}"

    advice = list(_advise(decoded, written, asked))
    found: list[Problem | Fault] = [*problems, *advice]
    outcome = "error" if any(each.level == "error" for each in found) else _OUTCOMES.get(decoded.outcome, "read")
    return Verdict(
        errors=tuple(say(each) for each in found if each.level == "error"),
        warnings=tuple(say(each) for each in problems if each.level != "error"),
        notices=tuple(each.message for each in advice if each.level != "error"),
        accounts=(f"{place.at('')}: {subject.removesuffix(': ')} {outcome}",),
    )


def _strict(problem: "Problem", raw: dict[str, Any]) -> "Problem":
    """A Problem of decoding as the strict reader of protobuf puts it; metadata is not its concern."""
    import msgspec

    group = str(raw.get("apiVersion")).rpartition("/")[0]
    message = problem.message
    if problem.path.startswith("spec") and group in _PROTOS:
        if problem.code == "unknown-field":
            field, hint = problem.path.rpartition(".")[2], message.removeprefix("unknown field").removeprefix("; ")
            message = f'unknown field "{field}" in {_PROTOS[group]}.{raw["kind"]}' + (f" ({hint})" if hint else "")
        else:
            message = f"{problem.path}: {message}"
        return msgspec.structs.replace(problem, level="error", message=f"cannot parse proto message: {message}")
    if problem.code == "unknown-field" and "." not in problem.path and group in _PROTOS:
        return msgspec.structs.replace(problem, level="error", message=f'unknown field "{problem.path}"')
    return msgspec.structs.replace(problem, message=f"{problem.path}: {message}") if problem.path else problem


def _advise(decoded: "Decoded", namespace: str, asked: _Asked) -> Iterator["Fault"]:
    """What there is to say of a Service or a Deployment outside of Istio's namespace."""
    from mizzen.api.kube.services import Service
    from mizzen.api.kube.workloads import Deployment
    from mizzen.api.validate import kubernetes

    if namespace == asked.istio_namespace:
        return
    if isinstance(decoded.object, Service):
        yield from kubernetes.check_service(decoded.object, namespace)
    elif isinstance(decoded.object, Deployment):
        yield from kubernetes.check_deployment(decoded.object, namespace)
