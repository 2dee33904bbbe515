"""AuthorizationPolicies decided a second time, from the objects, beside the compiled rules that Envoy goes by.

In: a hop, what the filters made of the request, and the denial of the compiled rules or None. Out: a step that says in
the objects' own fields which rule decided or came nearest. Should the two ever differ, the verdict is not certain, and
says so.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from mizzen.api.policy import AuthorizationPolicy
from mizzen.compile.security import providers as authorizers
from mizzen.diagnose.authorization import evaluation
from mizzen.diagnose.authorization.decision import Check, Decision
from mizzen.diagnose.authorization.paths import Normalization
from mizzen.diagnose.authorization.request import Request
from mizzen.diagnose.authorization.workload import ProviderKind, Workload
from mizzen.diagnose.trace.hop import Hop
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.verdict import Answer
from mizzen.incremental import Engine
from mizzen.model import mesh, objects

_GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"
_GATEWAY_GROUP = "gateway.networking.k8s.io"


def corroborate(hop: Hop, message: Message | None, claims: Any, denied: Answer | None) -> None:
    """Note what the objects say, where any policy applies here."""
    db = hop.world.db
    if db is None:
        return
    found: list[AuthorizationPolicy] = [db.input(key) for key in objects.of_kind(db, "AuthorizationPolicy")]
    if not found:
        return
    decision = evaluation.decide(found, _workload(hop, db), _request(hop, message, claims))
    if not decision.applied:
        return
    if (decision.outcome == "denied") != (denied is not None):
        hop.journal.hang_on(f"authorization at {hop.side}: its objects and what was compiled of them differ")
        return
    hop.journal.note(
        hop.side,
        "policy",
        f"the policies' objects say {decision.outcome}: {decision.reason.replace('-', ' ')}",
        ("applying", ", ".join(f"{key.namespace}/{key.name}" for key in decision.applied)),
        *_facts(decision),
        state="fails" if denied is not None else "ok",
        origin=hop.world.cause(decision.by.rule.policy) if decision.by is not None else None,
    )


def _workload(hop: Hop, db: Engine) -> Workload:
    config = mesh.mesh_config(db)
    gateway = hop.pod.labels.get(_GATEWAY_NAME)
    return Workload(
        namespace=hop.pod.namespace,
        labels=hop.pod.labels,
        targets=frozenset({(_GATEWAY_GROUP, "Gateway", gateway)}) if gateway else frozenset(),
        root_namespace=mesh.root_namespace(db),
        trust_domains=(hop.world.trust_domain, *config.trust_domain_aliases),
        normalization=Normalization(normalize=False),
        providers=dict(_providers(db)),
        is_edge=hop.pod.proxy == "router",
    )


def _providers(db: Engine) -> Iterator[tuple[str, ProviderKind]]:
    """The authorizers that can be asked."""
    for provider in mesh.mesh_config(db).extension_providers:
        if authorizers.authorizer(db, provider.name) is None:
            continue
        if provider.envoy_ext_authz_http is not None:
            yield provider.name, "http"
        elif provider.envoy_ext_authz_grpc is not None:
            yield provider.name, "grpc"


def _request(hop: Hop, message: Message | None, claims: Any) -> Request:
    peer = hop.peer
    known = Request(
        is_http=message is not None,
        principal=peer.identity if peer.is_mutual else "",
        source_ip=peer.address,
        remote_ip=peer.client,
        destination_ip=peer.destination,
        port=peer.port,
        sni=peer.server_name,
    )
    if message is None:
        return known
    return msgspec.structs.replace(
        known,
        method=message.method,
        host=message.authority,
        path=message.path,
        headers=message.headers,
        claims=claims,
    )


def _facts(decision: Decision) -> Iterator[tuple[str, str]]:
    if decision.by is not None:
        yield "rule", decision.by.rule.name
        for check in decision.by.checks:
            yield "holds", _describe(check)
    if decision.nearest is not None:
        yield "nearest rule", decision.nearest.rule.name
        for check in decision.nearest.failed:
            yield "fails", _describe(check)
        for check in decision.nearest.held:
            yield "holds", _describe(check)
    if decision.question is not None:
        yield "asks", decision.question.provider


def _describe(check: Check) -> str:
    wanted = ", ".join(check.values)
    return f"{check.field}: {'not ' if check.excluded else ''}{wanted}; has {check.actual or 'none'}"
