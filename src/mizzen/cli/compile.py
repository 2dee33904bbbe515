"""`mizzen compile`: what a proxy would be told, offline from manifests.

In: files, folders or stdin with objects, the mesh config, and the proxy: its xDS Node, or a Pod of those objects. Out:
all its resources as JSON, YAML or a summary on stdout, problems on stderr. With `-o status` no proxy is asked for: the
statuses of the Gateway API's objects are printed. The exit code is 0 unless an input cannot be read or the proxy is
unknown: bad objects are problems, and their neighbours are compiled.
"""

import contextlib
import difflib
import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from mizzen.cli import options, render, targets
from mizzen.cli.flags import Command
from mizzen.errors import DecodeError, MizzenError, SourceError

if TYPE_CHECKING:
    from mizzen import settings
    from mizzen.api.mesh.config import MeshConfig
    from mizzen.incremental import Engine
    from mizzen.model.proxy import Proxy
    from mizzen.sources.files import Contents

_NOT_READ = ("unreadable-file", "too-large", "not-text")
"""Codes of findings that leave a whole file out: fatal for a file that was named itself."""


@click.command("compile", cls=Command)
@click.option(
    "-f", "--filename", "paths", multiple=True, required=True, metavar="PATH", help="File, folder or `-`; repeatable."
)
@click.option("--mesh", "mesh_file", default="", metavar="FILE", help="Mesh config, over the defaults.")
@click.option("--node", "node_file", default="", metavar="FILE", help="The proxy's xDS Node as protobuf JSON.")
@click.option("--proxy", "pod", default="", metavar="NAME.NAMESPACE", help="The proxy of this Pod instead.")
@click.option("--dialect", type=click.Choice(["istio", "envoy"]), help="Compile for Istio's or for upstream Envoy.")
@options.output_option("json", "yaml", "summary", "status", default="json")
def compile_(
    paths: tuple[str, ...],
    mesh_file: str,
    node_file: str,
    pod: str,
    dialect: Literal["istio", "envoy"] | None,
    output: str,
) -> None:
    """Print what a proxy would be told, offline from manifests."""
    from mizzen.diagnose import snapshot

    if output == "status":
        with _collector_off():
            printed = _statuses(_fill(_load(paths), mesh_file))
        click.echo(render.render_json(printed, indent=2), nl=False)
        return
    if bool(node_file) == bool(pod):
        raise click.UsageError("give either --node or --proxy", click.get_current_context())
    with _collector_off():
        contents = _load(paths)
        engine = _fill(contents, mesh_file)
        proxy = _find_proxy(contents, node_file=node_file, pod=pod)
        if dialect:
            proxy = msgspec.structs.replace(proxy, dialect=dialect)
        taken = snapshot.take_snapshot(engine, proxy)
    if output == "summary":
        click.echo(render.render_table(snapshot.summarize(taken)), nl=False)
        return
    text = render.render_yaml(taken.printed) if output == "yaml" else render.render_json(taken.printed, indent=2)
    click.echo(text, nl=False)


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """Nearly everything that is made lives until the end, so looking for garbage costs a fifth of the time in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _load(paths: Sequence[str]) -> "Contents":
    """The objects under the paths; problems are told, and a named file that cannot be read is fatal."""
    from mizzen.sources import files

    contents = files.load(paths, sys.stdin.buffer.read)
    for finding in contents.findings:
        if finding.problem.code in _NOT_READ and finding.origin.file in paths:
            raise SourceError(str(finding))
        click.echo(f"{finding.problem.level}: {finding}", err=True)
    return contents


def _fill(contents: "Contents", mesh_file: str) -> "Engine":
    """An engine that holds all objects, the mesh config and the settings of the environment."""
    from mizzen import settings
    from mizzen.incremental import Engine
    from mizzen.model import mesh

    read, warnings = settings.load(os.environ)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    engine = Engine()
    for key, value in contents.objects.items():
        engine.set(key, value)
    engine.set(mesh.MESH, _mesh_config(contents, mesh_file, read))
    engine.set(
        mesh.CONTROL_PLANE,
        mesh.ControlPlane(
            cluster_id=read.instance.cluster,
            dual_stack=read.features.dual_stack,
            http10=read.features.http10,
            trace_sampling=read.features.trace_sampling,
        ),
    )
    return engine


def _statuses(engine: "Engine") -> dict[str, Any]:
    """The statuses of all objects of the Gateway API, by `Kind/namespace/name`."""
    from mizzen.api.kinds import kind_named
    from mizzen.model.convert.status.objects import statuses

    return {
        f"{kind_named(key.kind).kind}/{key.namespace}/{key.name}": msgspec.to_builtins(found)
        for key, found in statuses(engine)
    }


def _mesh_config(contents: "Contents", mesh_file: str, read: "settings.Settings") -> "MeshConfig":
    """The file's mesh config; without a file that of the ConfigMap among the objects, as the control plane takes it."""
    from mizzen.control import mesh
    from mizzen.sources.origins import Origin

    try:
        found = mesh.MeshSettings(mesh_file)
    except SourceError as bad:
        # The control plane names its own flag.
        raise SourceError(str(bad).replace("--meshConfig: ", "--mesh: ")) from bad
    key = mesh.config_map_key(read.instance.namespace, read.instance.revision)
    config_map: Any = contents.objects.get(key)
    if not mesh_file and config_map is not None:
        found.follow(config_map, contents.origins.get(key, Origin(str(key))))
    for finding in found.findings:
        click.echo(f"{finding.problem.level}: {finding}", err=True)
    return found.config


def _find_proxy(contents: "Contents", *, node_file: str, pod: str) -> "Proxy":
    from mizzen.model import proxy

    if pod:
        return proxy.parse_node(_pod_node(contents, pod))
    try:
        node = json.loads(targets.read_file(node_file))
    except ValueError as bad:
        raise DecodeError(f"{node_file} is not JSON: {bad}") from bad
    if not isinstance(node, dict):
        raise DecodeError(f"{node_file} is not an xDS Node")
    return proxy.parse_node(node)


def _pod_node(contents: "Contents", reference: str) -> dict[str, Any]:
    """The node of the Pod; a name that is not there is answered with those like it."""
    from mizzen.api.meta import Key
    from mizzen.diagnose import nodes

    name, _, namespace = reference.rpartition(".")
    found: Any = contents.objects.get(Key("Pod", namespace, name))
    if found is not None:
        return nodes.build_node(found)
    known = [f"{key.name}.{key.namespace}" for key in contents.objects if key.kind == "Pod"]
    near = difflib.get_close_matches(reference, known, n=3, cutoff=0.3)
    hint = f"; there are {', '.join(near)}" if near else "; there is no Pod at all" if not known else ""
    raise MizzenError(f"there is no Pod {reference}{hint}")
