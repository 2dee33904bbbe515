"""Parents of the mesh: which hosts a Service or ServiceEntry stands for, and whom a route for it concerns.

Golden case: gateway-api/mesh-routes.
"""

from mizzen.api.meta import Key
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names


@query
def parent_hosts(db: Engine, parent: Key) -> tuple[str, ...]:
    """The hosts of a Service or ServiceEntry; none where it does not exist."""
    if parent.kind == "Service":
        return (names.service_host(parent.name, parent.namespace, mesh.domain(db)),)
    found: ServiceEntry | None = db.input(parent)
    return tuple(h.lower() for h in found.spec.hosts) if found is not None else ()


def is_private(parent: Key, namespace: str) -> bool:
    """Whether a route of this namespace counts only for clients there: those of the parent's own count for all."""
    return parent.namespace != namespace
