"""Policies: which mutual TLS mode holds for a workload and its ports, and which authorization and token rules apply.

In: PeerAuthentications, AuthorizationPolicies, RequestAuthentications. Out: `PeerModes`, and the policies that select
a workload, those of the root namespace first. What they become in Envoy is `compile.security`.
Golden cases: security/pa-mesh-ns-workload, security/pa-oldest-wins, security/pa-port-level.
"""

from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec

from mizzen.api.networking.selectors import PolicyTargetReference
from mizzen.api.policy import AuthorizationPolicy, MutualTLS, PeerAuthentication, RequestAuthentication
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names, objects, workloads
from mizzen.model.proxy import Labels

Mode = Literal["DISABLE", "PERMISSIVE", "STRICT"]
Targets = tuple[tuple[str, str, str], ...]
Policy = TypeVar("Policy", AuthorizationPolicy, RequestAuthentication)


class PeerModes(msgspec.Struct, frozen=True):
    """The mode of a workload, and of those of its ports that say otherwise."""

    default: Mode = "PERMISSIVE"
    by_port: tuple[tuple[int, Mode], ...] = ()

    def of(self, port: int) -> Mode:
        """The mode of a workload port."""
        return dict(self.by_port).get(port, self.default)


# -- peer authentication ------------------------------------------------------------------------------------------


@query
def peer_modes(db: Engine, namespace: str, labels: Labels) -> PeerModes:
    """The modes of a workload: its own policy, else its namespace's, else the mesh's, else PERMISSIVE.

    The oldest policy of a level is the level's; what it leaves UNSET is inherited from the level above.
    """
    inherited = namespace_mode(db, namespace)
    policy = _workload_policy(db, namespace, labels)
    if policy is None:
        return PeerModes(inherited)
    default = _mode(policy.spec.mtls) or inherited
    ports = ((port, _mode(mtls) or default) for port, mtls in sorted(policy.spec.port_level_mtls.items()))
    return PeerModes(default, tuple(ports))


@query
def namespace_mode(db: Engine, namespace: str) -> Mode:
    """The mode of a namespace's workloads that no policy selects."""
    root = mesh.root_namespace(db)
    levels = dict.fromkeys((namespace, root))
    for level in levels:
        policy = general(db, level)
        mode = _mode(policy.spec.mtls) if policy is not None else None
        if mode is not None:
            return mode
    return "PERMISSIVE"


@query
def deciding_peer(db: Engine, namespace: str, labels: Labels, port: int) -> PeerAuthentication | None:
    """The policy that gives a workload's port its mode; None where nobody says anything and PERMISSIVE stands."""
    own = _workload_policy(db, namespace, labels)
    if own is not None and (_mode(own.spec.port_level_mtls.get(port)) or _mode(own.spec.mtls)):
        return own
    levels = (general(db, level) for level in dict.fromkeys((namespace, mesh.root_namespace(db))))
    return next((policy for policy in levels if policy is not None and _mode(policy.spec.mtls)), None)


@query
def general(db: Engine, namespace: str) -> PeerAuthentication | None:
    """The policy of a whole namespace: the oldest that selects nothing."""
    return next((p for p in _peers(db, namespace) if is_general(p)), None)


@query
def mesh_mode(db: Engine) -> Mode:
    """The mode of the whole mesh."""
    return namespace_mode(db, mesh.root_namespace(db))


def _workload_policy(db: Engine, namespace: str, labels: Labels) -> PeerAuthentication | None:
    if namespace == mesh.root_namespace(db):
        return None
    selecting = (p for p in _peers(db, namespace) if (s := _selector(p)) and workloads.selects(s, labels))
    return next(selecting, None)


@query
def _peers(db: Engine, namespace: str) -> tuple[PeerAuthentication, ...]:
    """The policies of a namespace, oldest first."""
    found = (db.input(key) for key in objects.in_namespace(db, "PeerAuthentication", namespace))
    return tuple(sorted(found, key=lambda p: p.metadata.age_order))


def is_general(policy: PeerAuthentication) -> bool:
    """Whether a policy is for all workloads of its namespace."""
    return not _selector(policy)


def _selector(policy: PeerAuthentication) -> Labels:
    return workloads.freeze(policy.spec.selector.match_labels) if policy.spec.selector is not None else ()


def _mode(mtls: MutualTLS | None) -> Mode | None:
    return None if mtls is None or mtls.mode == "UNSET" else mtls.mode


# -- authorization and tokens -------------------------------------------------------------------------------------


def authorization_policies(
    db: Engine, namespace: str, labels: Labels, targets: Targets = ()
) -> tuple[AuthorizationPolicy, ...]:
    """The policies that apply to a workload, root namespace first, then by name.

    `targets` are the (group, kind, name) of what the workload implements, such as a managed gateway's Gateway, by
    its label; a policy with target references applies through these only.
    """
    return tuple(_applying(db, "AuthorizationPolicy", namespace, labels, targets))


def request_authentications(
    db: Engine, namespace: str, labels: Labels, targets: Targets = ()
) -> tuple[RequestAuthentication, ...]:
    """The token rules that apply to a workload, root namespace first, then by name."""
    return tuple(_applying(db, "RequestAuthentication", namespace, labels, targets))


def _applying(db: Engine, kind: str, namespace: str, labels: Labels, targets: Targets) -> Iterable[Policy]:
    for level in dict.fromkeys((mesh.root_namespace(db), namespace)):
        for key in objects.in_namespace(db, kind, level):
            policy: Policy = db.input(key)
            if _applies(policy, level == namespace, labels, targets):
                yield policy


def _applies(policy: Policy, own_namespace: bool, labels: Labels, targets: Targets) -> bool:
    references = _references(policy)
    if references:
        return own_namespace and any((r.group, r.kind, names.label_value(r.name)) in targets for r in references)
    selector = policy.spec.selector
    return selector is None or workloads.selects(workloads.freeze(selector.match_labels), labels)


def _references(policy: Policy) -> tuple[PolicyTargetReference, ...]:
    single = policy.spec.target_ref
    return tuple(policy.spec.target_refs) or ((single,) if single is not None else ())
