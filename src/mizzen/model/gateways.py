"""Gateways: which Gateway objects a gateway proxy serves.

In: Gateways and the proxy's labels. Out: the Gateways that select it, oldest first. How their servers become
listeners, and how servers of one port are merged, is `compile.listeners`.
Golden cases: gateway/merge-one-port, gateway/topology.
"""

from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway
from mizzen.incremental import Engine, Index, query
from mizzen.model import workloads
from mizzen.model.proxy import Labels

_all = Index("Gateway", "all", lambda _key, _gateway: ((),))


@query
def selected_gateways(db: Engine, labels: Labels) -> tuple[Gateway, ...]:
    """The Gateways whose selector matches these labels, in any namespace; an empty selector matches every gateway."""
    found = (db.input(Key(*key)) for key in db.lookup(_all, ()))
    selecting = (g for g in found if workloads.selects(workloads.freeze(g.spec.selector), labels))
    return tuple(sorted(selecting, key=lambda g: g.metadata.age_order))


def qualified_name(gateway: Gateway) -> str:
    """The name by which VirtualServices mean it: `namespace/name`."""
    return f"{gateway.metadata.namespace}/{gateway.metadata.name}"
