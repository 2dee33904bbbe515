"""`mizzen compile`: what a proxy would be told, offline from manifests.

In: files, folders or stdin with objects, the mesh config, and the proxy: its xDS Node, or a Pod of those objects. Out:
all its resources as JSON, YAML or a summary on stdout, problems on stderr. With `-o status` no proxy is asked for: the
statuses of the Gateway API's objects are printed. The exit code is 0 unless an input cannot be read or the proxy is
unknown: bad objects are problems, and their neighbours are compiled.
"""

import difflib
import json
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from mizzen.cli import offline, options, render
from mizzen.cli.flags import Command
from mizzen.errors import DecodeError, MizzenError

if TYPE_CHECKING:
    from mizzen.diagnose.snapshot import Snapshot
    from mizzen.incremental import Engine
    from mizzen.model.proxy import Proxy
    from mizzen.sources.files import Contents


@click.command("compile", cls=Command)
@options.manifests_option(required=True)
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
        with offline.collector_off():
            printed = _statuses(offline.fill(offline.load(paths), mesh_file))
        click.echo(render.render_json(printed, indent=2), nl=False)
        return
    if bool(node_file) == bool(pod):
        raise click.UsageError("give either --node or --proxy", click.get_current_context())
    with offline.collector_off():
        contents = offline.load(paths)
        engine = offline.fill(contents, mesh_file)
        proxy = _find_proxy(contents, node_file=node_file, pod=pod)
        if dialect:
            proxy = msgspec.structs.replace(proxy, dialect=dialect)
        taken = snapshot.take_snapshot(engine, proxy)
        _tell_left_out(contents, engine, proxy, taken)
    if output == "summary":
        click.echo(render.render_table(snapshot.summarize(taken)), nl=False)
        return
    click.echo(render.render_as(output, taken.printed, indent=2), nl=False)


def _tell_left_out(contents: "Contents", engine: "Engine", proxy: "Proxy", taken: "Snapshot") -> None:
    """Say on stderr what of the objects is not in what was compiled, unless reading them has said so."""
    from mizzen.compile import problems, snapshot
    from mizzen.sources.origins import untold

    for type_url, names in taken.subscriptions:
        engine.root(snapshot.resources, proxy, type_url, names)
    for problem in untold(problems.gather(engine), contents.findings):
        offline.tell(problem, contents)


def _statuses(engine: "Engine") -> dict[str, Any]:
    """The statuses of all objects of the Gateway API, by `Kind/namespace/name`."""
    from mizzen.api.kinds import kind_named
    from mizzen.model.convert.status.objects import statuses

    return {
        f"{kind_named(key.kind).kind}/{key.namespace}/{key.name}": msgspec.to_builtins(found)
        for key, found in statuses(engine)
    }


def _find_proxy(contents: "Contents", *, node_file: str, pod: str) -> "Proxy":
    from mizzen.model import proxy

    if pod:
        return proxy.parse_node(_pod_node(contents, pod))
    from mizzen.cli import targets

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
    none = "; there is no Pod at all, and none is made from a Deployment: add a Pod, or describe the proxy with --node"
    hint = f"; there are {', '.join(near)}" if near else none if not known else ""
    raise MizzenError(f"there is no Pod {reference}{hint}")
