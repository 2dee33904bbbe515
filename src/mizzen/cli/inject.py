"""`mizzen inject` (istioctl's `kube-inject`): manifests in, the same manifests with sidecars out.

Input: a file or stdin with YAML or JSON documents. Output: YAML on stdout or to a file, document for document. What is
skipped is said on stderr; if a workload cannot be injected, nothing is written, so that no half of a manifest is
deployed without its sidecars.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import click

from mizzen.cli.flags import Command
from mizzen.errors import DecodeError, MizzenError, SourceError

STDIN = "-"

F = TypeVar("F", bound=Callable[..., Any])


def _file_option(*names: str, help: str) -> Callable[[F], F]:
    return click.option(*names, default="", metavar="FILE", help=help)


@click.command("inject", cls=Command)
@_file_option("-f", "--filename", help="Manifests to inject; - reads stdin.")
@_file_option("-o", "--output", help="Where to write; stdout if absent.")
@_file_option("--meshConfigFile", "mesh_config_file", help="Mesh config, or the ConfigMap that holds it.")
@_file_option("--valuesFile", "values_file", help="Helm values of the installation.")
@_file_option("--injectConfigFile", "inject_config_file", help="Injector's config, or the ConfigMap that holds it.")
@click.option("-r", "--revision", default="", help="Revision of the control plane.")
@click.option("--dialect", type=click.Choice(("istio", "envoy")), help="What the proxy image understands.")
@click.option(
    "--native-sidecars", is_flag=True, envvar="ENABLE_NATIVE_SIDECARS", help="Sidecars as init containers that stay."
)
def inject(filename: str, output: str, mesh_config_file: str, **chosen: Any) -> int:
    """Add the sidecar to the pods of manifests, offline.

    Pods, Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs, whatever else has a pod template, and
    Lists of them are injected; every other document passes unchanged. Injecting again changes nothing.
    """
    from mizzen.inject.manifests import inject_documents

    if not filename:
        raise click.UsageError("filename not specified (see -f)")
    mesh = _mesh_config(mesh_config_file) if mesh_config_file else None
    done = inject_documents(_read_documents(filename), mesh=mesh, config=_injection_config(**chosen))
    for skipped in done.skipped:
        name = f"{skipped.key.namespace}/{skipped.key.name}"
        click.echo(f'===> Skipping injection because "{name}": {skipped.reason}', err=True)
    for problem in done.problems:
        click.echo(f"Error: {problem}", err=True)
    if done.problems:
        return 1
    _write(output, "".join(f"{render_document(document)}---\n" for document in done.documents))
    return 0


def _injection_config(
    *, values_file: str, inject_config_file: str, revision: str, dialect: str | None, native_sidecars: bool
) -> Any:
    """The installation's choices: files first, then flags."""
    import msgspec

    from mizzen.inject import values

    config = values.InjectionConfig()
    if values_file:
        config = values.decode_values(_read_one(values_file), config)
    if inject_config_file:
        found = _read_one(inject_config_file)
        if found.get("kind") == "ConfigMap":
            config = values.decode_injector(found, config)
        else:
            config = values.decode_config(found, config)
    flags = {"revision": revision, "dialect": dialect, "native_sidecars": native_sidecars}
    return msgspec.structs.replace(config, **{name: value for name, value in flags.items() if value})


def _mesh_config(path: str) -> Mapping[str, Any]:
    """The mesh config as written; one with a fault would give sidecars that nobody asked for."""
    from mizzen.api.mesh.merge import merge_mesh_config

    found = _config_map_entry(_read_one(path), "mesh")
    _, problems = merge_mesh_config(found)
    faults = [str(problem) for problem in problems if problem.level == "error"]
    if faults:
        raise DecodeError("; ".join(faults), path)
    return found


def _config_map_entry(found: Mapping[str, Any], entry: str) -> Mapping[str, Any]:
    """What a ConfigMap holds under a name; anything else is taken to be that itself."""
    if found.get("kind") != "ConfigMap":
        return found
    text = (found.get("data") or {}).get(entry, "")
    return _only(_parse(text, f"ConfigMap entry {entry!r}"), entry)


def _read_one(path: str) -> Mapping[str, Any]:
    return _only(_read_documents(path), path)


def _only(documents: list[Any], where: str) -> Mapping[str, Any]:
    if len(documents) > 1 or not all(isinstance(document, Mapping) for document in documents):
        raise SourceError(f"{where}: expected one YAML map")
    return documents[0] if documents else {}


def _read_documents(path: str) -> list[Any]:
    from mizzen.sources import tree

    try:
        content = sys.stdin.buffer.read() if path == STDIN else tree.read_bytes(path)
        return _parse(tree.decode_text(content), path)
    except tree.Unreadable as error:
        raise SourceError(f"{path}: {error.problem.message}") from error


def _parse(text: str, where: str) -> list[Any]:
    """All documents of a text but the empty ones."""
    from mizzen.sources import documents

    found = []
    for chunk in documents.split_yaml(text):
        try:
            found += documents.parse_yaml(chunk.text)
        except documents.DocumentError as error:
            raise DecodeError(f"{where}:{chunk.line + error.line - 1}: {error}") from error
    return [document.value for document in found if document.value is not None]


def render_document(document: Any) -> str:
    """One document as YAML that Kubernetes reads back as the same values."""
    import yaml

    dumped: str = yaml.dump(document, Dumper=_dumper(), sort_keys=True, allow_unicode=True, width=1 << 30)
    return dumped


@cache
def _dumper() -> Any:
    """PyYAML's, but it quotes every string that Kubernetes would read as a number, a boolean or nothing."""
    import yaml

    from mizzen.sources.scalars import resolve_plain

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # either is a class
        def ignore_aliases(self, _data: Any) -> bool:
            return True

    def represent(dumper: Any, text: str) -> Any:
        plain = isinstance(resolve_plain(text), str)
        style = ("|" if "\n" in text else None) if plain else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return Dumper


def _write(path: str, text: str) -> None:
    if not path:
        click.echo(text, nl=False)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise MizzenError(f"{path}: {error.strerror}") from error
