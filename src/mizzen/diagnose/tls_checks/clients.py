"""The client's side: what speaks to a Service's port from a pod, and the rule by which it does.

In: a trace's steps, and the DestinationRules that apply to the client. Out: `Client`. The steps say what the proxy
does; the rule says why: a `tls` block of a DestinationRule, or auto-mTLS where there is none.
"""

from typing import Literal

import msgspec

from mizzen.api.meta import Key
from mizzen.diagnose.trace.causes.security import sets_tls
from mizzen.diagnose.trace.verdict import Cause, Step, Trace
from mizzen.diagnose.trace.world import Workload, World
from mizzen.model import destination_rules, mesh, names, services, workloads

Speaks = Literal["mutual TLS", "TLS", "the program's TLS", "plain text"]


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client towards one port."""

    speaks: Speaks
    mode: str
    """Why: `DISABLE`, `SIMPLE`, `MUTUAL` or `ISTIO_MUTUAL` of a rule; without one `auto mTLS`, or `no rule` for what is
    outside the mesh; or that no proxy has a say: `no sidecar`, `not captured`."""
    rule: Cause | None = None
    """The DestinationRule whose `tls` decides."""


def read_client(
    world: World, pod: Workload, service: services.Service, port: services.Port, found: Trace, side: str = ""
) -> Client:
    """What the pod's side spoke in this trace, and why; or would have, in the place of the `side` that was traced."""
    own = [step for step in found.steps if step.side == (side or pod.reference)]
    captured = any(step.link == "capture" and step.title.startswith("captured") for step in own)
    if not captured:
        return Client(speaks=program_speaks(port), mode="no sidecar" if pod.proxy != "sidecar" else "not captured")
    mode, rule = _rule(world, pod, service, port.number, _subset(own))
    return Client(speaks=_spoken(own, program_speaks(port)), mode=mode, rule=rule)


def program_speaks(port: services.Port) -> Speaks:
    """What a program sends to a port of that protocol."""
    return "the program's TLS" if port.protocol.is_tls else "plain text"


def _spoken(own: list[Step], otherwise: Speaks) -> Speaks:
    for step in own:
        if step.link == "tls" and step.title.startswith("to "):
            if step.title.endswith("TLS passes through"):
                return "the program's TLS"
            if step.title.endswith("plain text"):
                return "plain text"
            return "mutual TLS" if dict(step.facts).get("certificate") else "TLS"
    return otherwise


def _subset(own: list[Step]) -> str:
    """The subset of the cluster that was chosen."""
    for step in own:
        key = names.parse_subset_key(step.title.removeprefix("cluster ")) if step.link == "cluster" else None
        if key is not None and key.direction == names.OUTBOUND:
            return key.subset
    return ""


def _rule(world: World, pod: Workload, service: services.Service, port: int, subset: str) -> tuple[str, Cause | None]:
    assert world.db is not None
    labels = destination_rules.selector_labels(world.db, pod.namespace, workloads.freeze(pod.labels))
    rule = destination_rules.destination_rule(world.db, pod.namespace, service.host, service.namespace, labels)
    settings = destination_rules.effective_policy(rule, port, subset).tls
    if rule is None or settings is None:
        if service.external:
            return "no rule", None
        return "auto mTLS" if mesh.mesh_config(world.db).enable_auto_mtls else "auto mTLS is off", None
    return settings.mode, world.cause(_with_tls(world, rule.keys))


def _with_tls(world: World, keys: tuple[Key, ...]) -> Key:
    """Of rules that were merged into one, the first that says anything of TLS."""
    return next((key for key in keys if sets_tls(world.object(key))), keys[0])
