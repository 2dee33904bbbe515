"""`mizzen tag`: names that stand for revisions, by which namespaces follow whichever revision they are given to.

In: an API server, a tag, a revision. Out: the tag's webhook configurations and Service, applied or printed; a table of
the tags that there are. Texts, checks and exit codes are istioctl's.
"""

import json
from typing import TYPE_CHECKING, Any

import click

from mizzen.cli import clusters, options, render
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.errors import MizzenError, UsageError

if TYPE_CHECKING:
    from mizzen.cli.tag_run import Wish

_SYSTEM = "istio-system"


@click.group("tag", cls=AliasGroup)
def tag() -> None:
    """Name revisions of the control plane, so that namespaces can follow the name."""


_system_option = click.option(
    "-i", "--istioNamespace", "system", default=_SYSTEM, show_default=True, help="Namespace of the control plane."
)


def _change_options(function: Any) -> Any:
    return options.compose(
        (
            click.argument("names", nargs=-1, metavar="TAG"),
            click.option("-r", "--revision", default="", help="The revision that the tag stands for."),
            click.option("--overwrite", is_flag=True, help="Give the tag to this revision if another has it."),
            click.option("-y", "--skip-confirmation", is_flag=True, help="Do not ask."),
            click.option("--webhook-name", default="", metavar="NAME", help="Another name for its configuration."),
            click.option("--auto-inject-namespaces", is_flag=True, help="With `default`, inject whoever says nothing."),
            click.option(
                "-d", "--manifests", default="", hidden=True, help="Taken, as istioctl does; there is no need."
            ),
            _system_option,
            clusters.cluster_options,
        )
    )(function)


@click.command("set", cls=Command)
@_change_options
def set_(names: tuple[str, ...], kubeconfig: str, context: str, manifests: str, **chosen: Any) -> None:
    """Give a revision a tag, or a tag to another revision.

    The revision of the tag `default` injects where `istio-injection=enabled` asks for it, and validates the objects
    that name no revision.
    """
    import asyncio

    from mizzen.cli.tag_run import set_tag

    del manifests
    wish = _wish(names, "modification", **chosen)
    asyncio.run(set_tag(clusters.open_cluster(kubeconfig, context), wish, _confirm))


@click.command("generate", cls=Command)
@_change_options
def generate(names: tuple[str, ...], kubeconfig: str, context: str, manifests: str, **chosen: Any) -> None:
    """Print what `set` would apply."""
    import asyncio

    from mizzen.cli.tag_run import generate_tag

    del manifests
    wish = _wish(names, "modification", generates=True, **chosen)
    documents = asyncio.run(generate_tag(clusters.open_cluster(kubeconfig, context), wish))
    click.echo(render.render_documents("yaml", documents), nl=False)


@click.command("list", cls=Command)
@options.output_option("table", "json", "yaml", default="table")
@_system_option
@clusters.cluster_options
def list_(output: str, system: str, kubeconfig: str, context: str) -> None:
    """List the tags that there are, and the namespaces that select them."""
    import asyncio

    from mizzen.cli.tag_run import list_tags
    from mizzen.diagnose.table import Table

    found = asyncio.run(list_tags(clusters.open_cluster(kubeconfig, context), system))
    if not found:
        click.echo("No Istio revision tags found.")
    elif output == "table":
        rows = tuple((each.tag, each.revision, ",".join(each.namespaces)) for each in found)
        table = Table(columns=("TAG", "REVISION", "NAMESPACES"), rows=rows, padding=1)
        click.echo(render.render_table(table), nl=False)
    else:
        plain = [each._asdict() for each in found]
        text = render.render_yaml(plain) if output == "yaml" else json.dumps(plain, indent="\t") + "\n"
        click.echo(text)


@click.command("remove", cls=Command)
@click.argument("names", nargs=-1, metavar="TAG")
@click.option("-y", "--skip-confirmation", is_flag=True, help="Do not ask.")
@_system_option
@clusters.cluster_options
def remove(names: tuple[str, ...], skip_confirmation: bool, system: str, kubeconfig: str, context: str) -> None:
    """Remove a tag; pods of namespaces that select it are injected no more."""
    import asyncio

    from mizzen.cli.tag_run import remove_tag

    name = _only(names, "removal", "removal")
    confirm = (lambda _: True) if skip_confirmation else _confirm
    asyncio.run(remove_tag(clusters.open_cluster(kubeconfig, context), name, system, confirm))


tag.add(set_)
tag.add(generate)
tag.add(list_, "show")
tag.add(remove, "delete")


def _wish(names: tuple[str, ...], what: str, **chosen: Any) -> "Wish":
    from mizzen.cli.tag_run import Wish

    name = _only(names, what, "creation")
    if not chosen["revision"]:
        raise UsageError('required flag(s) "revision" not set')
    return Wish(tag=name, **chosen)


def _only(names: tuple[str, ...], none: str, several: str) -> str:
    if not names:
        raise MizzenError(f"must provide a tag for {none}")
    if len(names) > 1:
        raise MizzenError(f"must provide a single tag for {several}")
    return names[0]


def _confirm(question: str) -> bool:
    from mizzen.cli.install import ask

    return ask(f"{question} ")
