"""The status of any object of the Gateway API by its key, and those of all: what `compile -o status` prints.

In: keys. Out: statuses, None for what has none. Golden cases: all that have a status.json.
"""

from collections.abc import Callable, Iterator, Mapping

from mizzen.api.gateway_api.statuses import Status
from mizzen.api.meta import Key
from mizzen.incremental import Engine, attempt, query
from mizzen.model import objects
from mizzen.model.convert.routes.heads import KINDS
from mizzen.model.convert.status.conditions import is_pending
from mizzen.model.convert.status.gateways import gateway_class_status, gateway_status, listener_set_status
from mizzen.model.convert.status.policies import policy_status
from mizzen.model.convert.status.routes import route_status

STATUSES: Mapping[str, Callable[[Engine, Key], Status | None]] = {
    "GatewayClass": gateway_class_status,
    "KubernetesGateway": gateway_status,
    "ListenerSet": listener_set_status,
    **dict.fromkeys(KINDS, route_status),
    "BackendTLSPolicy": policy_status,
}
"""The query of each kind that has a status."""


def status(db: Engine, key: Key) -> Status | None:
    """The status of one object; None where its kind has none, or it does not exist."""
    found = STATUSES.get(key.kind)
    return attempt(found, db, key) if found is not None else None


def statuses(db: Engine) -> Iterator[tuple[Key, Status]]:
    """The statuses of all objects there are, by kind, namespace and name; for those outside queries."""
    for kind in STATUSES:
        for key in sorted(Key(*key) for key in db.keys(kind)):
            found = status(db, key)
            if found is not None:
                yield key, found


@query
def status_keys(db: Engine) -> tuple[Key, ...]:
    """The objects that may have a status, by kind, namespace and name."""
    return tuple(key for kind in STATUSES for key in objects.of_kind(db, kind))


@query
def own_status(db: Engine, key: Key) -> Status | None:
    """The status that is ours to write; None for an object of another controller."""
    found = STATUSES[key.kind](db, key)
    conditions = getattr(found, "conditions", None)
    return None if conditions is not None and is_pending(conditions) else found
