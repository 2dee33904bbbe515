"""Webhook configurations, as far as whoever keeps them right must know them.

In: MutatingWebhookConfigurations and ValidatingWebhookConfigurations of an API server. Out: Structs that the mirror of
`sources.kube` fills, and which entries of them are the mesh's.
"""

from typing import ClassVar

from mizzen.api.kinds import Kind
from mizzen.api.message import Message, names
from mizzen.api.meta import LabelSelector, Object
from mizzen.sources.kube.served import Resource

INJECTION = "sidecar-injector.istio.io"
"""What the names of entries end with that inject."""
VALIDATION = "validation.istio.io"
"""And of those that validate."""

REVISION = "istio.io/rev"
FAIL, IGNORE = "Fail", "Ignore"

_GROUP = "admissionregistration.k8s.io"


class ClientConfig(Message, frozen=True, kw_only=True):
    """Where an entry is called, and whose certificates are believed there."""

    ca_bundle: str = ""
    """PEM in base64."""

    unread: ClassVar[frozenset[str]] = names("service url")


class Rule(Message, frozen=True, kw_only=True):
    """What an entry is called for."""

    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    unread: ClassVar[frozenset[str]] = names("apiVersions operations scope")


class Entry(Message, frozen=True, kw_only=True):
    """One webhook."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()
    failure_policy: str = FAIL
    rules: tuple[Rule, ...] = ()
    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()


class Configuration(Object, frozen=True, kw_only=True):
    """Either kind."""

    webhooks: tuple[Entry, ...] = ()

    @property
    def revision(self) -> str:
        """Whose it is, empty if nobody's."""
        return self.metadata.labels.get(REVISION, "")

    def entries(self, suffix: str) -> list[tuple[int, Entry]]:
        """The mesh's entries with their positions."""
        return [(at, entry) for at, entry in enumerate(self.webhooks) if is_named(entry.name, suffix)]


def is_named(name: str, suffix: str) -> bool:
    """Whether an entry's name is the suffix, or one below it."""
    return name == suffix or name.endswith(f".{suffix}")


def _resource(kind: str, plural: str) -> Resource:
    described = Kind(
        kind=kind, group=_GROUP, versions=("v1",), plural=plural, type=Configuration, namespaced=False, key_name=kind
    )
    return Resource(described, "v1")


MUTATING = _resource("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
VALIDATING = _resource("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
