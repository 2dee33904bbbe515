"""Tags of revisions at an API server: looked up, judged, applied, removed.

    the revision's injector and Service ─> the tag's documents ─> conflicts with other injectors ─> apply

In: an `Access`, what is asked for. Out: lines on stdout; MizzenError for what istioctl refuses, in its words. Nothing
is written before everything is checked and the operator has agreed.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from mizzen.analysis import cluster
from mizzen.analysis.rules.webhooks import check_injectors
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key, ObjectMeta
from mizzen.cli.analysis_output import Placed, render_log
from mizzen.errors import MizzenError
from mizzen.incremental import Engine
from mizzen.install.identity import DEFAULT_REVISION, REVISION_LABEL, TAG_LABEL, Identity
from mizzen.install.tags import DEFAULT_VALIDATOR, Tag, deactivate, own_entry, tag_documents
from mizzen.sources.kube.access import Access
from mizzen.sources.kube.client import Client
from mizzen.sources.kube.objects import Document, Name, Objects

MANAGER = "mizzen-tag"

_MUTATING, _VALIDATING, _SERVICE = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Service"

Confirm = Callable[[str], bool]


class Wish(NamedTuple):
    """What the command line asks for."""

    tag: str
    revision: str
    system: str
    overwrite: bool = False
    skip_confirmation: bool = False
    webhook_name: str = ""
    auto_inject_namespaces: bool = False
    generates: bool = False
    """Whether the documents are printed rather than applied; who prints may look at any name."""


class Listed(NamedTuple):
    """A tag that there is; a revision without one has an empty name."""

    tag: str
    revision: str
    namespaces: list[str]


async def set_tag(access: Access, wish: Wish, confirm: Confirm) -> None:
    """Apply the tag, unless it conflicts and nobody agrees to that."""
    async with Client(access) as client:
        objects = Objects(client, MANAGER)
        documents = await _build(objects, wish)
        conflicts = await _find_conflicts(objects, documents)
        if conflicts and not wish.skip_confirmation:
            click.echo(conflicts, err=True)
            if not confirm("Apply anyways? [y/N]"):
                return
        for document in documents:
            await objects.apply(document)
    click.echo(
        f'Revision tag "{wish.tag}" created, referencing control plane revision "{wish.revision}". '
        "To enable injection using this\n"
        f"revision tag, use 'kubectl label namespace <NAMESPACE> {REVISION_LABEL}={wish.tag}'"
    )


async def generate_tag(access: Access, wish: Wish) -> list[dict[str, Any]]:
    """The documents of the tag; conflicts are told on stderr."""
    async with Client(access) as client:
        objects = Objects(client, MANAGER)
        documents = await _build(objects, wish)
        conflicts = await _find_conflicts(objects, documents)
    if conflicts and not wish.skip_confirmation:
        click.echo(conflicts, err=True)
    return documents


async def list_tags(access: Access, system: str) -> list[Listed]:
    """All tags, and the revisions that have none, by revision and tag."""
    async with Client(access) as client:
        objects = Objects(client, MANAGER)
        found = await objects.find(REVISION_LABEL, [_MUTATING])
        found += [each for each in await objects.find(REVISION_LABEL, [_SERVICE]) if each[0].namespace == system]
        pairs = {(each.labels[REVISION_LABEL], each.labels.get(TAG_LABEL, "")) for _, each in found}
        tagged = {revision for revision, tag in pairs if tag}
        spaces = await objects.find(REVISION_LABEL, ["Namespace"])
    return [
        Listed(tag, revision, [name.name for name, each in spaces if each.labels[REVISION_LABEL] == tag])
        for revision, tag in sorted(pairs)
        if tag or revision not in tagged
    ]


async def remove_tag(access: Access, tag: str, system: str, confirm: Confirm) -> None:
    """Remove whatever makes the tag, unless namespaces select it and nobody agrees."""
    async with Client(access) as client:
        objects = Objects(client, MANAGER)
        found = [name for name, _ in await objects.find(f"{TAG_LABEL}={tag}", [_MUTATING, _VALIDATING, _SERVICE])]
        found = [name for name in found if name.kind != _SERVICE or name.namespace == system]
        if all(name.kind == _VALIDATING for name in found):
            raise MizzenError(f'cannot remove tag "{tag}": cannot find {_MUTATING} or Service for tag')
        spaces = [name.name for name, _ in await objects.find(f"{REVISION_LABEL}={tag}", ["Namespace"])]
        if spaces:
            caution = f'Caution, found {len(spaces)} namespace(s) still injected by tag "{tag}": {" ".join(spaces)}'
            if not confirm(f"{caution}\nProceed with operation? [y/N]"):
                click.echo("Aborting operation.")
                return
        for name in found:
            await objects.remove(name)
    click.echo(f"Revision tag {tag} removed")


# -- what makes a tag --------------------------------------------------------------------------------------------------


async def _build(objects: Objects, wish: Wish) -> list[dict[str, Any]]:
    """The documents to apply, in order. Raises MizzenError where there must be no such tag."""
    is_free = wish.generates or wish.overwrite or wish.tag == DEFAULT_REVISION
    if not is_free and any(await _find_revision(objects, wish.tag, wish.system)):
        raise MizzenError(
            f'cannot create revision tag "{wish.tag}": found existing control plane revision with same name'
        )
    injector, service = await _find_canonical(objects, wish)
    if not wish.overwrite and await _is_there(objects, wish):
        raise MizzenError(f'revision tag "{wish.tag}" already exists, and --overwrite is false')
    if own_entry(injector) is None:
        name = injector["metadata"]["name"]
        raise MizzenError(
            "failed to create tag webhook config: "
            f'could not find sidecar-injector webhook in canonical webhook "{name}"'
        )
    tag = Tag(
        name=wish.tag,
        identity=Identity(namespace=wish.system, revision=wish.revision),
        injector=injector,
        service=service,
        configuration=wish.webhook_name,
        injects_by_default=wish.auto_inject_namespaces,
    )
    if not tag.is_default:
        return tag_documents(tag)
    validator = await objects.read(Name(_VALIDATING, "", DEFAULT_VALIDATOR))
    older = [] if wish.generates else await _deactivations(objects, wish.system)
    return [*older, *tag_documents(tag, validator)]


async def _find_revision(objects: Objects, revision: str, system: str) -> tuple[list[Name], list[Name]]:
    """The injectors and the Services of a revision itself."""
    own = f"{REVISION_LABEL}={revision},!{TAG_LABEL}"
    injectors = [name for name, _ in await objects.find(own, [_MUTATING])]
    services = [name for name, _ in await objects.find(f"{own},app=istiod", [_SERVICE]) if name.namespace == system]
    return injectors, services


async def _find_canonical(objects: Objects, wish: Wish) -> tuple[Document, Document | None]:
    """The one injector of the revision, and its Service if that is in the cluster."""
    injectors, services = await _find_revision(objects, wish.revision, wish.system)
    which = f'revision "{wish.revision}"'
    if len(services) > 1:
        raise MizzenError(
            f'cannot modify tag: found multiple canonical services with {which} in namespace "{wish.system}"'
        )
    if len(injectors) > 1:
        raise MizzenError(f"cannot modify tag: found multiple canonical webhooks or services with {which}")
    injector = await objects.read(injectors[0]) if injectors else None
    if injector is None:
        raise MizzenError(f"cannot modify tag: cannot find {_MUTATING} or Service with {which}")
    return injector, await objects.read(services[0]) if services else None


async def _is_there(objects: Objects, wish: Wish) -> bool:
    found = await objects.find(f"{TAG_LABEL}={wish.tag}", [_MUTATING, _SERVICE])
    return any(name.kind == _MUTATING or name.namespace == wish.system for name, _ in found)


async def _deactivations(objects: Objects, system: str) -> list[dict[str, Any]]:
    """The injector of the revision `default`, which is the default no more."""
    injectors, _ = await _find_revision(objects, DEFAULT_REVISION, system)
    if len(injectors) > 1:
        raise MizzenError(
            "failed deactivating existing default revision: expected a single webhook for default revision"
        )
    found = [await objects.read(name) for name in injectors]
    return [deactivate(each) for each in found if each is not None]


# -- conflicts ---------------------------------------------------------------------------------------------------------


async def _find_conflicts(objects: Objects, documents: list[dict[str, Any]]) -> str:
    """What an analysis has against the tag's injector beside those of the cluster; empty for nothing."""
    db = Engine()
    planned = {each["metadata"]["name"]: each for each in documents if each["kind"] == _MUTATING}
    for name, _ in await objects.find("", [_MUTATING]):
        there = await objects.read(name)
        if there is not None:
            planned[name.name] = _overlay(there, planned.get(name.name))
    for document in planned.values():
        decoded = cluster.decode_cluster_object(document)
        if decoded is not None:
            db.set(*decoded)
    for name, _ in await objects.find("", [_SERVICE]):
        metadata = ObjectMeta(name=name.name, namespace=name.namespace)
        db.set(Key(_SERVICE, name.namespace, name.name), Service(metadata=metadata))
    tagged = [each["metadata"]["name"] for each in documents if _is_of_tag(each)]
    found = [each for name in tagged for each in check_injectors(db, Key(_MUTATING, "", name))]
    errors = [Placed(each, "") for each in found if each.level == "Error"]
    if not errors:
        return ""
    told = "creating tag would conflict, pass --skip-confirmation to proceed:\n"
    return told + render_log(errors, colour=False).rstrip("\n")


def _is_of_tag(document: Document) -> bool:
    return document["kind"] == _MUTATING and TAG_LABEL in document["metadata"].get("labels", {})


def _overlay(found: Document, planned: Document | None) -> dict[str, Any]:
    """What an injector will be: as it is, as planned, or with the selectors that are planned for its entries."""
    if planned is None or "labels" in planned["metadata"]:
        return dict(planned or found)
    changes: Mapping[str, Any] = {each["name"]: each for each in planned["webhooks"]}
    return {**found, "webhooks": [{**each, **changes.get(each["name"], {})} for each in found["webhooks"]]}
