"""Grants: whether a ReferenceGrant of the target's namespace lets an object refer to another.

In: ReferenceGrants. Out: yes or no for one reference, so that a changed grant reruns only who asked and got another
answer. All grants of a namespace add up; references within a namespace need none.
Golden cases: gateway-api/reference-grants, gateway-api/tls-listeners.
"""

from typing import NamedTuple

from mizzen.api.gateway_api.policies import ReferenceGrant
from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.incremental import Engine, query
from mizzen.model import objects


class Target(NamedTuple):
    """What a reference leads to."""

    group: str
    kind: str
    namespace: str
    name: str


def is_permitted(db: Engine, kind: str, namespace: str, target: Target) -> bool:
    """Whether an object of this kind of the Gateway API, in this namespace, may refer to the target."""
    return namespace == target.namespace or _is_granted(db, kind, namespace, target)


@query
def _is_granted(db: Engine, kind: str, namespace: str, target: Target) -> bool:
    for key in objects.in_namespace(db, "ReferenceGrant", target.namespace):
        grant: ReferenceGrant = db.input(key)
        if any((f.group, f.kind, f.namespace) == (GATEWAY_GROUP, kind, namespace) for f in grant.spec.from_) and any(
            (t.group, t.kind) == (target.group, target.kind) and t.name in ("", target.name) for t in grant.spec.to
        ):
            return True
    return False
