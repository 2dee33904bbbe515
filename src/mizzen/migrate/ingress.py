"""The entry: Ingresses of ingress-nginx, and what takes their place.

In: all objects at hand, since ports by name, Secrets and ConfigMaps are looked up among them. Out: `Migration`: the
documents, what became of every annotation, what the mesh's config has to have, and what differs for every host.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mizzen.api.kube.ingress import Ingress, IngressClass
from mizzen.api.meta import Key, Object
from mizzen.migrate.findings import Finding, Notes
from mizzen.migrate.reading.ingress import read_settings
from mizzen.migrate.servers import Source, build_servers
from mizzen.migrate.writing.authorization import extension_providers
from mizzen.migrate.writing.documents import Document, Target
from mizzen.migrate.writing.servers import Writer

CONTROLLER = "k8s.io/ingress-nginx"
_CLASS = "kubernetes.io/ingress.class"

DIFFERENCES = (
    "nginx compares paths after it has decoded them and merged slashes, Envoy as they were sent; the mesh's "
    "pathNormalization can bring them closer.",
    "A host without a certificate is not served on port 443, where nginx shows a certificate of its own.",
    "Backends get X-Forwarded-For, X-Forwarded-Proto and X-Request-Id, but none of nginx's X-Real-IP, "
    "X-Forwarded-Host, X-Forwarded-Port, X-Forwarded-Scheme, X-Scheme and X-Original-URI.",
    "No Strict-Transport-Security is added to answers over TLS.",
    "A request that nginx redirects before it looks at the client's address is refused here first.",
    "nginx waits 60 seconds for each part of an answer and tries failed requests with other endpoints up to three "
    "times; without annotations the mesh's own defaults hold.",
    "Bodies of errors are Envoy's.",
)
"""What differs for every host, annotations or not."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Choices for a migration."""

    target: Target = Target(name="ingress", namespace="istio-ingress")
    classes: tuple[str, ...] = ("nginx",)
    """Classes that are nginx's beside those whose IngressClass names its controller."""


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """What takes the place of some Ingresses."""

    documents: tuple[Document, ...]
    findings: tuple[Finding, ...]
    mesh: Mapping[str, Any] = {}
    """What has to be added to the mesh's config."""
    skipped: tuple[Key, ...] = ()
    """Ingresses of other classes."""


def migrate(objects: Mapping[Key, Object], options: Options | None = None) -> Migration:
    """All Ingresses of nginx among the objects."""
    options = options or Options()
    notes = Notes()
    ours = dict(_ingresses(objects))
    chosen = {key: found for key, found in ours.items() if _is_nginx(found, objects, options)}
    sources = [
        Source(key, found, read_settings(key, found, objects, notes)) for key, found in sorted(chosen.items())
    ]  # fmt: skip
    servers = build_servers(sources, objects, notes)
    documents = Writer(options.target, servers, objects, notes).write() if servers else ()
    providers = extension_providers(servers)
    return Migration(
        documents=documents,
        findings=notes.findings,
        mesh={"extensionProviders": providers} if providers else {},
        skipped=tuple(sorted(ours.keys() - chosen.keys())),
    )


def _ingresses(objects: Mapping[Key, Object]) -> Iterator[tuple[Key, Ingress]]:
    return ((key, found) for key, found in objects.items() if isinstance(found, Ingress))


def _is_nginx(ingress: Ingress, objects: Mapping[Key, Object], options: Options) -> bool:
    """By the old annotation if it is there, else by class; an Ingress of no class is nginx's."""
    name = ingress.metadata.annotations.get(_CLASS) or ingress.spec.ingress_class_name
    if not name:
        return True
    found = objects.get(Key("IngressClass", "", name))
    if isinstance(found, IngressClass):
        return found.spec.controller == CONTROLLER
    return name in options.classes
