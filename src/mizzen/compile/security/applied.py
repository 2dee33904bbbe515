"""All policies that apply to one workload, as filters in their places.

In: a workload's namespace and labels. Out: `Applied`, the keys of its policies, and by it the filters of its chains;
workloads with equal keys share them. Golden cases: security/authz-custom-http, security/authz-gateway-root.
"""

import msgspec

from mizzen.api.meta import Key
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.filters.http import HttpPolicies
from mizzen.compile.security import authorization, tokens
from mizzen.incremental import Engine, query
from mizzen.model import mesh, policies
from mizzen.model.policies import Targets
from mizzen.model.proxy import Labels


class Applied(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The keys of the policies that apply to a workload."""

    authorization: tuple[Key, ...] = ()
    tokens: tuple[Key, ...] = ()
    """Those of the root namespace first, the oldest first."""


@query
def applied_policies(db: Engine, namespace: str, labels: Labels, targets: Targets) -> Applied:
    """The policies of a workload; `targets` are what a managed gateway stands for, by group, kind and name."""
    root = mesh.root_namespace(db)
    asked = policies.authorization_policies(db, namespace, labels, targets)
    accepted = sorted(
        policies.request_authentications(db, namespace, labels, targets),
        key=lambda p: (p.metadata.namespace != root, p.metadata.age_order),
    )
    return Applied(
        authorization=tuple(Key("AuthorizationPolicy", p.metadata.namespace, p.metadata.name) for p in asked),
        tokens=tuple(Key("RequestAuthentication", p.metadata.namespace, p.metadata.name) for p in accepted),
    )


@query
def http_policies(db: Engine, applied: Applied, dialect: Dialect, router: bool) -> HttpPolicies:
    """The HTTP filters of a workload's policies."""
    return HttpPolicies(
        custom=authorization.custom_http_filters(db, applied.authorization, dialect),
        jwt=tokens.http_filters(db, applied.tokens, router),
        authorization=authorization.http_filters(db, applied.authorization, dialect),
    )


@query
def network_policies(db: Engine, applied: Applied, dialect: Dialect) -> tuple[bytes, ...]:
    """The network filters of a workload's policies; tokens mean nothing to TCP."""
    return authorization.network_filters(db, applied.authorization, dialect)
