"""What an installation decides, from the files of its charts: Helm values, the injector's config, the mesh config.

In: paths, or stdin. Out: documents as plain data, an `InjectionConfig`, the mesh config as it was written.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from mizzen.cli import options
from mizzen.errors import DecodeError, SourceError

STDIN = "-"

F = TypeVar("F", bound=Callable[..., Any])


def file_option(*names: str, help: str) -> Callable[[F], F]:
    """An option that names a file."""
    return click.option(*names, default="", metavar="FILE", help=help)


def installation_options(function: F) -> F:
    """`--meshConfigFile`, `--valuesFile`, `--injectConfigFile`, `--revision` and `--dialect`."""
    return options.compose(
        (
            file_option("--meshConfigFile", "mesh_config_file", help="Mesh config, or the ConfigMap that holds it."),
            file_option("--valuesFile", "values_file", help="Helm values of the installation."),
            file_option(
                "--injectConfigFile", "inject_config_file", help="Injector's config, or the ConfigMap that holds it."
            ),
            click.option("-r", "--revision", default="", help="Revision of the control plane."),
            click.option("--dialect", type=click.Choice(("istio", "envoy")), help="What the proxy image understands."),
        )
    )(function)


def injection_config(
    *, values_file: str, inject_config_file: str, revision: str, dialect: str | None, native_sidecars: bool = False
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


def mesh_config(path: str) -> Mapping[str, Any]:
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
    return _only(read_documents(path), path)


def _only(documents: list[Any], where: str) -> Mapping[str, Any]:
    if len(documents) > 1 or not all(isinstance(document, Mapping) for document in documents):
        raise SourceError(f"{where}: expected one YAML map")
    return documents[0] if documents else {}


def read_documents(path: str) -> list[Any]:
    """The documents of a file, or of stdin for `-`, as plain data; empty ones are left out."""
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
