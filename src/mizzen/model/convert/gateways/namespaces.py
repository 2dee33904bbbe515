"""Namespaces: which of them a listener or a Gateway lets in by their labels.

In: Namespaces. Out: label selectors answered. A namespace that holds a route exists, whether or not its object was
given: it then has no label but its name. Golden cases: gateway-api/allowed-routes, gateway-api/listener-sets.
"""

from mizzen.api import selectors
from mizzen.api.kube.cluster import Namespace
from mizzen.api.meta import Key, LabelSelector
from mizzen.incremental import Engine, query
from mizzen.model import objects

_NAME_LABEL = "kubernetes.io/metadata.name"

_ROUTES = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute")


@query
def _known(db: Engine) -> tuple[str, ...]:
    """The namespaces that exist, sorted."""
    found = {key[2] for key in objects.of_kind(db, "Namespace")}
    for kind in _ROUTES:
        found.update(key[1] for key in objects.of_kind(db, kind))
    return tuple(sorted(found))


def matching(db: Engine, selector: LabelSelector) -> tuple[str, ...]:
    """The namespaces that a selector selects, sorted."""
    return tuple(name for name in _known(db) if selects(db, selector, name))


def selects(db: Engine, selector: LabelSelector, name: str) -> bool:
    """Whether a selector selects the namespace of that name; one with an unknown operator selects nothing."""
    found: Namespace | None = db.input(Key("Namespace", "", name))
    labels = {**(found.metadata.labels if found is not None else {}), _NAME_LABEL: name}
    return selectors.selects(selector, labels)
