"""Which workload a certificate is issued to, for the metrics of those to whom it is shown.

In: a caller of the certificate service, who has proved its identity, and the mesh as it is known now. Out: the record
of its workload (`compile.filters.peers`), or none. Nothing here comes from the caller: its token says the pod, or else
it is the workload at its address that has this identity. A pod that runs already may not have reached us yet, and a
machine outside Kubernetes registers while it asks for its first certificate; so a certificate waits for them, a little.
"""

import asyncio
import urllib.parse
from collections.abc import Callable, Iterator

from mizzen.api.networking.workload_group import WorkloadGroup
from mizzen.ca.identity import Call, Caller
from mizzen.compile.filters import peers
from mizzen.incremental import Engine
from mizzen.model import mesh, workloads
from mizzen.model.spiffe import Identity, parse_spiffe
from mizzen.model.workloads import Workload

_PATIENCE = 2.0
"""Seconds that a certificate waits for its caller's workload to be known."""
_LOOK_EVERY = 0.1


class PeerRecords:
    """Answers who a caller is."""

    def __init__(self, db: Engine, is_ready: Callable[[], bool], patience: float = _PATIENCE) -> None:
        self._db = db
        self._is_ready = is_ready
        self._patience = patience

    async def describe(self, caller: Caller, call: Call) -> str:
        """The record for the caller's certificate; empty where its workload is not known."""
        identity = parse_spiffe(caller.identities[0])
        if identity is None:
            return ""
        found = await self._find_pod(identity, caller.pod) if caller.pod else await self._find_at(identity, call.peer)
        if found is None:
            return ""
        return peers.build_record(found, mesh.control_plane(self._db).cluster_id)

    async def _find_pod(self, identity: Identity, pod: str) -> Workload | None:
        found = await self._wait_for(
            lambda: workloads.pod_workload(self._db, identity.namespace, pod) if self._is_ready() else None
        )
        return _if_it_is(found, identity)

    async def _find_at(self, identity: Identity, peer: str) -> Workload | None:
        found = self._at(identity, peer)
        if found is None and self._may_register(identity):
            found = await self._wait_for(lambda: self._at(identity, peer))
        return found

    async def _wait_for(self, look: Callable[[], Workload | None]) -> Workload | None:
        for further in range(round(self._patience / _LOOK_EVERY), -1, -1):
            found = look()
            if found is not None or not further:
                return found
            await asyncio.sleep(_LOOK_EVERY)
        return None

    def _may_register(self, identity: Identity) -> bool:
        """Whether machines of this identity have a group by which they are registered."""
        groups: Iterator[WorkloadGroup] = map(self._db.peek, self._db.keys("WorkloadGroup"))
        return any(
            group.metadata.namespace == identity.namespace
            and group.spec.template is not None
            and group.spec.template.service_account == identity.service_account
            for group in groups
        )

    def _at(self, identity: Identity, peer: str) -> Workload | None:
        address = read_address(peer)
        if not address or not self._is_ready():
            return None
        return _if_it_is(workloads.workload_at(self._db, identity.namespace, (address,)), identity)


def _if_it_is(workload: Workload | None, identity: Identity) -> Workload | None:
    own = workload is not None and (workload.namespace, workload.service_account) == identity[1:]
    return workload if own else None


def read_address(peer: str) -> str:
    """The address in gRPC's name of a peer, `ipv4:10.0.0.1:5` or `ipv6:%5B::1%5D:5`; empty for others."""
    kind, _, rest = urllib.parse.unquote(peer).partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    address = rest.rpartition(":")[0].strip("[]")
    return address.removeprefix("::ffff:")
