"""Backends: where rules forward to, with the faults that leave a share of requests without a destination.

In: backend references of a route, grants, Services. Out: Istio destinations with their weights. A backend that is
refused, unknown or of no supported kind keeps its share, with a destination that answers errors (a soft fault); what
cannot mean anything (no port, a host name for a Service) is a hard one, and its route emits nothing.
Golden cases: gateway-api/invalid-references, gateway-api/reference-grants, gateway-api/http-matches.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination, PortSelector
from mizzen.incremental import Engine
from mizzen.model import mesh, names
from mizzen.model.convert import grants
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.routes.heads import HOSTNAME
from mizzen.model.services import services_of_host

NOWHERE = Destination(host="internal.cluster.local", subset="zero-weight", port=PortSelector(number=65535))
"""Where connections go that no backend takes: a cluster that never exists."""

_SERVICES = (("", "Service"), ("multicluster.x-k8s.io", "ServiceImport"))
"""Without multi-cluster hosts, which are off by default, an imported service is the Service of its name."""


class Reference(Protocol):
    """Any reference to a backend: of a rule, or of a mirror."""

    @property
    def group(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def port(self) -> int | None: ...


class Weighed(Reference, Protocol):
    """A backend with its share."""

    @property
    def weight(self) -> int: ...


W = TypeVar("W", bound=Weighed)


class Route(NamedTuple):
    """The route that forwards, as references are judged by it."""

    key: Key
    is_mesh: bool
    """For a parent of the mesh no grant is needed."""


class Resolved(NamedTuple):
    """A destination; one without a host answers errors."""

    destination: Destination
    fault: Fault | None = None


class HardFault(Exception):
    """A rule that cannot be converted at all, which takes its route with it; carries the fault to report."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def resolve_backend(db: Engine, reference: Reference, route: Route) -> Resolved:
    """The destination of one reference; raises HardFault for one that cannot mean anything."""
    own = route.key.namespace
    namespace = reference.namespace or own
    target = grants.Target(reference.group, reference.kind, namespace, reference.name)
    if not route.is_mesh and not grants.is_permitted(db, route.key.kind, own, target):
        message = (
            f"backendRef {reference.name}/{namespace} not accessible to a {route.key.kind} "
            f'in namespace "{own}" (missing a ReferenceGrant?)'
        )
        return Resolved(Destination(), Fault("RefNotPermitted", message))
    kind = (reference.group, reference.kind)
    if kind in _SERVICES:
        host, is_known = _service(db, reference, namespace)
    elif kind == HOSTNAME:
        host, is_known = _hostname(db, reference, own)
    else:
        message = f'referencing unsupported backendRef: group "{reference.group}" kind "{reference.kind}"'
        return Resolved(Destination(), Fault("InvalidKind", message))
    if not reference.port:
        raise HardFault(Fault("InvalidDestination", "port is required in backendRef"))
    destination = Destination(host=host, port=PortSelector(number=reference.port))
    return Resolved(destination, None if is_known else Fault("BackendNotFound", f"backend({host}) not found"))


def _service(db: Engine, reference: Reference, namespace: str) -> tuple[str, bool]:
    if "." in reference.name:
        message = "service name invalid; the name of the Service must be used, not the hostname."
        raise HardFault(Fault("InvalidDestination", message))
    host = names.service_host(reference.name, namespace, mesh.domain(db))
    return host, any(s.is_kubernetes for s in services_of_host(db, host))


def _hostname(db: Engine, reference: Reference, own: str) -> tuple[str, bool]:
    """A host as it is; it is known only if a service of the route's own namespace has it, as the reference says."""
    if reference.namespace:
        raise HardFault(Fault("InvalidDestination", "namespace may not be set with Hostname type"))
    return reference.name, any(s.namespace == own for s in services_of_host(db, reference.name))


def effective(references: Iterable[W]) -> list[tuple[W, int]]:
    """The backends that get a share, each with its weight; a single one has none to say (0)."""
    sharing = [(r, r.weight) for r in references if r.weight]
    return [(sharing[0][0], 0)] if len(sharing) == 1 else sharing
