"""`mizzen migrate`: from other gateways to this mesh.

`ingress` reads Ingresses with the annotations of ingress-nginx. In: manifests. Out: the manifests that take their place
on stdout, and on stderr what became of every annotation; with `-o report` that as JSON, and no manifests.
Manifests that cannot be read in full give exit code 1 and nothing on stdout.
"""

from typing import TYPE_CHECKING, Any

import click

from mizzen.cli import offline, options, render
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup

if TYPE_CHECKING:
    from mizzen.migrate.ingress import Migration


@click.group("migrate", cls=AliasGroup)
def migrate() -> None:
    """Turn the configuration of other gateways into this mesh's."""


@click.command("ingress", cls=Command)
@options.manifests_option(required=True)
@click.option(
    "--gateway", default="ingress.istio-ingress", show_default=True, metavar="NAME.NAMESPACE", help="The new Gateway."
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    default=("nginx",),
    show_default=True,
    help="Class of nginx's Ingresses; repeatable.",
)
@click.option("--domain", default="cluster.local", show_default=True, help="Domain of the cluster's Services.")
@options.output_option("yaml", "json", "report", default="yaml")
def ingress(paths: tuple[str, ...], gateway: str, classes: tuple[str, ...], domain: str, output: str) -> None:
    """Turn Ingresses of ingress-nginx into objects of the Gateway API and of Istio.

    Services, Secrets and ConfigMaps among the manifests are looked up where an Ingress names them. Each annotation is
    told as exact, approximated (and how) or impossible.
    """
    from mizzen.migrate.ingress import Options
    from mizzen.migrate.ingress import migrate as migrate_ingresses
    from mizzen.migrate.writing.documents import Target

    name, _, namespace = gateway.partition(".")
    if not name or not namespace:
        raise click.UsageError(f"{gateway!r} is not NAME.NAMESPACE", click.get_current_context())
    target = Target(name=name, namespace=namespace, domain=domain)
    done = migrate_ingresses(offline.load_whole(paths).objects, Options(target=target, classes=classes))
    if output == "report":
        click.echo(render.render_json(_report(done), indent=2), nl=False)
        return
    _tell(done)
    click.echo(render.render_documents(output, done.documents), nl=False)


migrate.add(ingress)


def _report(done: "Migration") -> dict[str, Any]:
    from mizzen.migrate.ingress import DIFFERENCES

    return {
        "findings": [
            {
                "ingress": f"{found.ingress.namespace}/{found.ingress.name}",
                "subject": found.subject,
                "value": found.value,
                "verdict": found.verdict,
                "how": found.how,
            }
            for found in done.findings
        ],
        "mesh": done.mesh,
        "differences": DIFFERENCES,
        "skipped": [f"{key.namespace}/{key.name}" for key in done.skipped],
    }


def _tell(done: "Migration") -> None:
    from mizzen.diagnose.table import Table
    from mizzen.migrate.ingress import DIFFERENCES

    for key in done.skipped:
        click.echo(f"Ingress {key.namespace}/{key.name} is of another class", err=True)
    rows = tuple(
        (f"{f.ingress.namespace}/{f.ingress.name}", f.subject, f.verdict, f.how or "-") for f in done.findings
    )  # fmt: skip
    if rows:
        table = Table(columns=("INGRESS", "ANNOTATION", "VERDICT", "HOW"), rows=rows, padding=2)
        click.echo(render.render_table(table), nl=False, err=True)
    if done.mesh:
        click.echo("\nAdd to the mesh config:\n" + render.render_yaml(done.mesh), nl=False, err=True)
    if done.documents:
        click.echo("\nDifferent for every host:\n" + "".join(f"- {text}\n" for text in DIFFERENCES), nl=False, err=True)
