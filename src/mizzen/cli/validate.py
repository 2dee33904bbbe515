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


class Verdict(NamedTuple):
    """What is to be said of one file."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """Advice that makes a file no less valid."""


class _Asked(NamedTuple):
    """What the command line says about objects."""

    namespace: str
    """Of objects without one."""
    istio_namespace: str
    with_places: bool
    """Whether to say where in a file and in an object a fault is."""


@click.command("validate", cls=Command)
@click.option("-f", "--filename", "paths", multiple=True, metavar="PATH", help="File, folder or `-`; repeatable.")
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

    `mizzen -v validate` says with each fault where it is.
    """
    from mizzen.api.validate.faults import join_messages

    del referential
    if not paths:
        raise MizzenError(_NO_FILE)
    asked = _Asked(namespace or options.DEFAULT_NAMESPACE, istio_namespace, invocation.verbose)
    verdicts = [(name, verdict) for path in paths for name, verdict in _judge(path, asked)]
    errors = [message for _, verdict in verdicts for message in verdict.errors]
    for name, verdict in verdicts:
        for notice in verdict.notices:
            click.echo(notice, err=True)
        if verdict.warnings or not errors:
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
        yield STDIN, _judge_bytes(STDIN, sys.stdin.buffer.read(), asked)
        return
    try:
        files = tree.list_files(pathlib.Path(path)).files
    except SourceError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        yield path, Verdict(errors=(f'cannot stat file "{path}": stat {path}: {str(reason).lower()}',))
        return
    for name in files:
        try:
            content = tree.read_bytes(name)
        except tree.Unreadable as unreadable:
            yield name, Verdict(errors=(f'cannot read file "{name}": {unreadable}',))
        else:
            yield name, _judge_bytes(name, content, asked)


def _judge_bytes(name: str, content: bytes, asked: _Asked) -> Verdict:
    from mizzen.sources import documents, tree

    try:
        text = tree.decode_text(content)
    except tree.Unreadable as unreadable:
        return Verdict(errors=(_undecodable(name, str(unreadable)),))
    chunks = [documents.Chunk(text, 1)] if name.endswith(".json") else list(documents.split_yaml(text))
    verdicts = list(_judge_chunks(name, chunks, asked))
    errors, warnings, notices = (tuple(line for verdict in verdicts for line in verdict[kind]) for kind in range(3))
    return Verdict(errors, warnings, notices)


def _judge_chunks(name: str, chunks: Iterable["Chunk"], asked: _Asked) -> Iterator[Verdict]:
    from mizzen.sources import documents

    for text, line in chunks:
        try:
            found = documents.parse_json(text) if name.endswith(".json") else documents.parse_yaml(text)
        except documents.DocumentError as bad:
            yield Verdict(errors=(_undecodable(name, f"line {line - 1 + bad.line}: {bad.message}"),))
            continue
        locator = documents.Locator(text)
        for index, document in enumerate(found):
            if document.repeated:
                repeated = (f'line {line - 1 + at}: key "{key}" already set in map' for key, at in document.repeated)
                yield Verdict(errors=tuple(_undecodable(name, reason) for reason in repeated))
            else:
                yield from _judge_document(_Place(name, line - 1, index, locator), document.value, asked)


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

    if not isinstance(raw, dict) or not raw.get("kind"):
        return Verdict(notices=(f"{place.at('')}: no object, since it has no kind",))
    decoded = decode_object(raw, default_namespace=asked.namespace)
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
    return Verdict(
        errors=tuple(say(each) for each in found if each.level == "error"),
        warnings=tuple(say(each) for each in problems if each.level != "error"),
        notices=tuple(each.message for each in advice if each.level != "error"),
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
