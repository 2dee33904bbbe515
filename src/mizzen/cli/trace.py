"""`mizzen trace`: what one request will meet, link by link, and why.

In: the source, a URL, and the world: manifests (`-f`), dumps of both sides (`--file`), or a local mesh that runs. Out:
a tree or JSON on stdout. The exit code is 0 where the request is delivered, redirected or answered as configured, and 1
where it fails or is denied, so that scripts can tell, and where manifests cannot be read in full.
"""

from typing import TYPE_CHECKING, Any, Literal

import click

from mizzen.cli import options
from mizzen.cli.flags import Command
from mizzen.errors import DecodeError

if TYPE_CHECKING:
    from mizzen.diagnose.trace.request import Request
    from mizzen.diagnose.trace.world import World

_OPTIONS = {"method": "request", "address": "connect-to", "client": "client-ip", "headers": "header"}
"""Of fields of a request, where the option has another name."""
_GOOD = ("delivered", "redirected", "responded")


@click.command("trace", cls=Command)
@click.argument("url", metavar="URL|HOST:PORT", required=False, default="")
@click.option("--from", "source", default="", metavar="POD[.NS]|gateway/NAME|outside", help="Where it starts.")
@click.option("--from-log", "log", default="", metavar="FILE", help="Explain an access log instead; `-` is stdin.")
@click.option("-X", "--request", "method", default="GET", show_default=True, metavar="METHOD", help="HTTP method.")
@click.option("-H", "--header", "headers", multiple=True, metavar="K:V", help="A header; repeatable.")
@click.option("--principal", default="", metavar="URI", help="The identity that the source's certificate has.")
@click.option("--cert", "certificate_file", default="", metavar="FILE", help="The source's own certificate (PEM).")
@click.option("--jwt", "token_file", default="", metavar="FILE", help="A token to send as bearer.")
@click.option("--takes", default=0.0, metavar="SECONDS", help="How long the program needs to answer.")
@click.option("--answers", default=200, metavar="STATUS", help="What the program answers; 0: it closes.")
@click.option("--authorizer", default=0, metavar="STATUS", help="What an authorizer answers that is asked.")
@click.option("--client-ip", "client", default="", metavar="IP", help="The address of a source outside.")
@click.option("--gives-up", default=0.0, metavar="SECONDS", help="When the source no longer waits.")
@click.option("--at-once", default=1, metavar="NUMBER", help="How many such requests there are at the same time.")
@click.option("--earlier", default=0, metavar="NUMBER", help="How many such requests came just before.")
@click.option("--connect-to", "address", default="", metavar="IP", help="Connect here, whatever the host resolves to.")
@options.world_options
@click.option("--file", "dumps", multiple=True, metavar="FILE", help="Config dumps of the proxies; repeatable.")
@options.output_option("tree", "json", default="tree")
def trace(
    url: str,
    source: str,
    log: str,
    paths: tuple[str, ...],
    dumps: tuple[str, ...],
    mesh: str,
    dialect: Literal["istio", "envoy"],
    output: str,
    **asked: Any,
) -> int:
    """Tell what a request will meet: the chain on both sides, the verdict, and the object behind it."""
    if log:
        from mizzen.cli import trace_logs

        return trace_logs.explain(log, paths, mesh, dialect, output)
    if not url or not source:
        raise click.UsageError("give a URL and --from, or --from-log", click.get_current_context())
    from mizzen.cli import render
    from mizzen.diagnose.trace import tree, verdict, walk

    request = _request(url, source, **asked)
    found = walk.trace(_world(paths, dumps, mesh, dialect), request)
    if output == "json":
        click.echo(render.render_json(verdict.to_json(found), indent=2), nl=False)
    else:
        click.echo(tree.render(found), nl=False)
    return 0 if found.outcome in _GOOD else 1


def _request(
    url: str,
    source: str,
    *,
    method: str,
    headers: tuple[str, ...],
    principal: str,
    certificate_file: str,
    token_file: str,
    takes: float,
    answers: int,
    authorizer: int,
    client: str,
    gives_up: float,
    at_once: int,
    earlier: int,
    address: str,
) -> "Request":
    from mizzen.cli import targets
    from mizzen.diagnose.trace import request

    scheme, host, port, path = request.parse_target(url)
    sent = request.parse_headers(headers)
    if token_file:
        token = targets.read_file(token_file).decode(errors="replace").strip()
        sent = (*sent, ("authorization", f"Bearer {token}"))
    asked = request.Request(
        source=source,
        scheme=scheme,
        host=host,
        port=port,
        path=path or "/",
        method=method,
        headers=sent,
        principal=principal,
        address=address,
        takes=takes,
        answers=answers,
        authorizer=authorizer,
        client=client,
        gives_up=gives_up,
        certificate=targets.read_file(certificate_file) if certificate_file else b"",
        at_once=at_once,
        earlier=earlier,
    )
    try:
        return request.check(asked)
    except DecodeError as wrong:
        option = _OPTIONS.get(wrong.path, wrong.path.replace("_", "-"))
        raise click.UsageError(f"--{option}: {wrong.message}", click.get_current_context()) from wrong


def _world(paths: tuple[str, ...], dumps: tuple[str, ...], mesh: str, dialect: Literal["istio", "envoy"]) -> "World":
    from mizzen.cli import trace_worlds

    if paths and dumps:
        raise click.UsageError("give either -f or --file", click.get_current_context())
    return trace_worlds.of_dumps(dumps) if dumps else trace_worlds.find_world(paths, mesh, dialect)
