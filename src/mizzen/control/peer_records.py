"""Which workload a certificate is issued to, for the metrics of those to whom it is shown.

In: a caller of the certificate service, who has proved its identity, and the mesh as it is known now. Out: the record
of its workload (`compile.filters.peers`), or none. Nothing here comes from the caller: its token says the pod, or else
it is the workload at its address that has this identity. A pod that runs already may not have reached us yet; so a
certificate waits for it, a little.
"""

import asyncio
import urllib.parse
from collections.abc import Callable

from mizzen.ca.identity import Call, Caller
from mizzen.compile.filters import peers
from mizzen.incremental import Engine
from mizzen.model import mesh, workloads
from mizzen.model.spiffe import Identity, parse_spiffe
from mizzen.model.workloads import Workload

_PATIENCE = 2.0
"""Seconds that a certificate waits for the pod that its caller's token names."""
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
        found = await self._find_pod(identity, caller.pod) if caller.pod else self._at(identity, call.peer)
        if found is None:
            return ""
        return peers.build_record(found, mesh.control_plane(self._db).cluster_id)

    async def _find_pod(self, identity: Identity, pod: str) -> Workload | None:
        looks = 1 + round(self._patience / _LOOK_EVERY)
        for look in range(looks):
            if look:
                await asyncio.sleep(_LOOK_EVERY)
            found = workloads.pod_workload(self._db, identity.namespace, pod) if self._is_ready() else None
            if found is not None:
                return _if_it_is(found, identity)
        return None

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
