"""`mizzen uninstall`: takes out of a cluster what installations of a revision, or all of them, put in.

In: a revision, or the file of values that names one, or `--purge`; an API server. Out: a line for each object that is
removed. Webhook configurations go first, so that nothing asks a control plane that is gone; accounts and rights last.
The definitions of kinds, and with them every object of the mesh, go with `--purge` alone, and only where no other
control plane is left to read them. Namespaces, Secrets and ConfigMaps of the authority stay: a later installation goes
on with the same root.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mizzen.cli import clusters, install_values
from mizzen.cli.flags import Command
from mizzen.cli.install import ask
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.sources.kube.access import Access
    from mizzen.sources.kube.objects import Metadata, Name, Objects

_NOTHING_ASKED = (
    "at least one of the --revision (or --set revision=<revision>), --filename or --purge flags must be set"
)
_FIRST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_LAST = ("RoleBinding", "ClusterRoleBinding", "Role", "ClusterRole", "ServiceAccount", "CustomResourceDefinition")


@click.command("uninstall", cls=Command)
@install_values.values_options
@clusters.cluster_options
@click.option("--purge", is_flag=True, help="Every revision, and the definitions of kinds with all their objects.")
@click.option("-y", "--skip-confirmation", is_flag=True, help="Do not ask.")
@click.option("--dry-run/--no-dry-run", "dry_run", default=False, help="Say what would be removed.")
def uninstall(
    kubeconfig: str, context: str, purge: bool, skip_confirmation: bool, dry_run: bool, **chosen: Any
) -> None:
    """Remove a control plane from a cluster, or all of them."""
    import asyncio

    values = install_values.read_values(**chosen)
    asked = bool(chosen["revision"] or chosen["files"]) or "revision" in " ".join(chosen["assignments"])
    if not (purge or asked):
        raise MizzenError(_NOTHING_ASKED)
    access = clusters.open_cluster(kubeconfig, context)
    revision = "" if purge else values.identity.revision_label
    asyncio.run(_uninstall(access, revision, is_sure=skip_confirmation or dry_run, dry_run=dry_run))


class _Found(NamedTuple):
    """What there is to remove, in order."""

    names: list["Name"]
    tags: frozenset[str]
    """Tags that go too."""
    spared: str = ""
    """Why definitions stay, empty if they do not."""


async def _uninstall(access: "Access", revision: str, *, is_sure: bool, dry_run: bool) -> None:
    from mizzen.cli.install_run import MANAGER
    from mizzen.sources.kube.client import Client
    from mizzen.sources.kube.objects import Objects

    async with Client(access) as client:
        objects = Objects(client, MANAGER, dry_run=dry_run)
        found = await _find(objects, revision)
        if not found.names:
            click.echo(f"Nothing of Mizzen{f' revision {revision}' if revision else ''} is installed.")
            return
        if not is_sure and not ask(await _question(objects, revision, found)):
            click.echo("Cancelled.")
            return
        for name in found.names:
            if await objects.remove(name):
                click.echo(f"  Removed {name}{' (dry run)' if dry_run else ''}.")
    if found.spared:
        click.echo(found.spared)
    click.echo("Dry run complete" if dry_run else "✔ Uninstall complete")


async def _find(objects: "Objects", revision: str) -> _Found:
    """Everything of a revision; of all, and the definitions, where it is empty."""
    from mizzen.cli.install_run import HELM, MANAGED_BY
    from mizzen.install.identity import MIZZEN, PART_OF, REVISION_LABEL, TAG_LABEL
    from mizzen.sources.kube.objects import PLACES

    kinds = [kind for kind in PLACES if kind not in ("CustomResourceDefinition", "Namespace")]
    selector = f"{PART_OF}={MIZZEN}" + (f",{REVISION_LABEL}={revision}" if revision else "")
    ours = await objects.find(selector, kinds)
    releases = sorted({metadata.annotations[HELM] for _, metadata in ours if HELM in metadata.annotations})
    if releases:
        raise MizzenError(f"this belongs to the Helm release {releases[0]}; remove it with `helm uninstall`")
    names, spared = [name for name, _ in ours], ""
    tags = frozenset(metadata.labels[TAG_LABEL] for _, metadata in ours if TAG_LABEL in metadata.labels)
    if not revision:
        definitions = await objects.find(f"{MANAGED_BY}={MIZZEN}", ["CustomResourceDefinition"])
        others = await _other_control_planes(objects)
        if others and definitions:
            spared = f"The definitions (CRDs) stay, since other control planes read them: {', '.join(others)}."
        else:
            names += [name for name, _ in definitions]
    return _Found(sorted(names, key=lambda name: (_rank(name.kind), name)), tags, spared)


async def _other_control_planes(objects: "Objects") -> list[str]:
    from mizzen.install.identity import MIZZEN, PART_OF

    found: Iterable[tuple[Name, Metadata]] = await objects.find("app=istiod", ["Deployment"])
    return [str(name) for name, metadata in found if metadata.labels.get(PART_OF) != MIZZEN]


def _rank(kind: str) -> int:
    if kind in _FIRST:
        return 0
    return 2 + _LAST.index(kind) if kind in _LAST else 1


async def _question(objects: "Objects", revision: str, found: _Found) -> str:
    """The prompt, and who still counts on what is to go."""
    names = found.names
    definitions = sum(name.kind == "CustomResourceDefinition" for name in names)
    lines = [f"{len(names)} objects will be removed from the cluster."]
    if not revision:
        lines = [f"All {len(names)} objects of Mizzen will be removed from the cluster."]
    if definitions:
        lines.append(f"Among them are {definitions} definitions (CRDs): every object of these kinds goes with them.")
    if users := await _namespaces_of(objects, revision, found.tags):
        lines.append(f"Namespaces that still select it, whose pods keep their sidecars: {', '.join(users)}.")
    return "\n".join([*lines, "Proceed? (y/N) "])


async def _namespaces_of(objects: "Objects", revision: str, tags: frozenset[str]) -> list[str]:
    """Namespaces whose labels select the revision, itself or by a tag that goes too; or any, for all revisions."""
    from mizzen.install.identity import DEFAULT_REVISION, REVISION_LABEL

    selecting = {revision, *tags}

    def selects(metadata: "Metadata") -> bool:
        by_revision, injected = metadata.labels.get(REVISION_LABEL), metadata.labels.get("istio-injection")
        if not revision:
            return bool(by_revision) or injected == "enabled"
        return by_revision in selecting or (DEFAULT_REVISION in selecting and injected == "enabled")

    return [name.name for name, metadata in await objects.find("", ["Namespace"]) if selects(metadata)]
