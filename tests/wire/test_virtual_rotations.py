"""Days of a mesh in seconds: an authority and its workloads' agents in virtual time, leaf after leaf, root after root.

Agents are the real keepers of certificates, the authority is the real one, and roots reach agents as they are pushed.
After every step each workload must believe each other's certificate, by the bundle that its own Envoy has.
"""

import asyncio
import datetime
import itertools
import pathlib
from collections.abc import Sequence

import virtual_loop
from certificate_requests import verify_chain
from cryptography import x509
from plugged_authority import make_node

from mizzen import protos, settings
from mizzen.agent.identity import certificates as agent_certificates
from mizzen.agent.identity import sds
from mizzen.ca import certificates
from mizzen.ca.authority import Authority, State

START = 1_700_000_000.0
LIFE = 600.0
ROOT_LIFE = 2 * 3600.0
STEP = 60.0
CONFIG = settings.Authority(root_ttl=ROOT_LIFE, default_ttl=LIFE, max_ttl=LIFE)


def clock() -> float:
    return START + virtual_loop.now()


class LoopClock(agent_certificates.Clock):
    """The loop's time."""

    def now(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(clock(), datetime.UTC)


class Workload:
    """One agent's certificates, and what its Envoy has been handed."""

    def __init__(self, name: str, folder: pathlib.Path, authority: Authority) -> None:
        self.spiffe_id = f"spiffe://cluster.local/ns/shop/sa/{name}"
        self._authority = authority
        self._secrets = sds.Secrets()
        self.leaves: list[int] = []
        self.agent = agent_certificates.Certificates(
            spiffe_id=self.spiffe_id,
            ask=self._ask,
            options=settings.Agent(),
            places=agent_certificates.Places(mesh_roots=folder / "none.pem", kept=folder / name),
            secrets=self._secrets,
            file_interval=600.0,
            clock=LoopClock(),
        )

    async def _ask(self, request: bytes) -> Sequence[str]:
        return self._authority.issue(request.decode(), (self.spiffe_id,), LIFE)

    def take_pushed(self) -> None:
        """The roots that the authority trusts now, as the control plane pushes them."""
        kind = protos.message_class("istio.mesh.v1alpha1.ProxyConfig")
        roots = [certificates.encode(root).decode() for root in self._authority.state.roots]
        self.agent.take_pushed([protos.encode(kind(ca_certificates_pem=roots))])

    def _read(self, name: str) -> object:
        found = self._secrets.get(name)
        return found and protos.unpack(protos.message_class("google.protobuf.Any").FromString(found[1]))

    @property
    def is_served(self) -> bool:
        return self._secrets.get(agent_certificates.WORKLOAD) is not None

    @property
    def chain(self) -> list[x509.Certificate]:
        pem = self._read(agent_certificates.WORKLOAD).tls_certificate.certificate_chain.inline_bytes  # type: ignore[union-attr]
        found = x509.load_pem_x509_certificates(pem)
        if not self.leaves or self.leaves[-1] != found[0].serial_number:
            self.leaves.append(found[0].serial_number)
        return found

    @property
    def roots(self) -> list[x509.Certificate]:
        pem = self._read(agent_certificates.ROOTS).validation_context.trusted_ca.inline_bytes  # type: ignore[union-attr]
        return x509.load_pem_x509_certificates(pem)


class Mesh:
    """An authority and a few workloads that start one after the other."""

    def __init__(self, folder: pathlib.Path, authority: Authority) -> None:
        self.authority = authority
        self.workloads = [Workload(name, folder, authority) for name in ("cart", "front", "rates")]
        self.signers: dict[x509.Certificate, None] = {}
        self.most_roots = 0
        authority.on_change(lambda _: self._push())

    def _push(self) -> None:
        for workload in self.workloads:
            if workload.is_served:
                workload.take_pushed()

    async def live(self, seconds: float) -> None:
        """Let time pass, step by step, and hold everybody against everybody after each."""
        async with asyncio.TaskGroup() as tasks:
            running = []
            for workload in self.workloads:
                running.append(tasks.create_task(workload.agent.run()))
                await asyncio.sleep(45.0)
            end = clock() + seconds
            while clock() < end:
                if self.authority.wants_successor:
                    self.authority.adopt(self.authority.build_successor())
                self.authority.advance()
                self._check()
                await asyncio.sleep(STEP)
            await asyncio.sleep(STEP)
            for task in running:
                task.cancel()

    def _check(self) -> None:
        self.signers.setdefault(self.authority.state.current.certificate)
        for one, other in itertools.permutations(self.workloads, 2):
            assert verify_chain(other.chain, one.roots, clock()) == [other.spiffe_id]
        self.most_roots = max(self.most_roots, *(len(workload.roots) for workload in self.workloads))


def test_three_rotations_of_leaf_and_root_cost_no_trust(tmp_path: pathlib.Path) -> None:
    async def live() -> Mesh:
        root = certificates.build_root("cluster.local", ROOT_LIFE, 2048, clock())
        authority = Authority(State(current=root), CONFIG, clock, self_signed_for="cluster.local", fresh=True)
        mesh = Mesh(tmp_path, authority)
        await mesh.live(2.8 * ROOT_LIFE)
        return mesh

    mesh = virtual_loop.run(live())
    assert len(mesh.signers) == 4
    assert mesh.most_roots == 2
    for workload in mesh.workloads:
        assert len(set(workload.leaves)) > 50
        assert workload.roots == list(mesh.authority.state.roots) == list(mesh.authority.state.current.roots)


def test_three_authorities_plugged_in_one_after_the_other_cost_no_trust(tmp_path: pathlib.Path) -> None:
    async def live() -> Mesh:
        first = make_node("first", START)
        authority = Authority(_signed_by(first), CONFIG, clock, fresh=True)
        mesh = Mesh(tmp_path, authority)
        async with asyncio.TaskGroup() as tasks:
            living = tasks.create_task(mesh.live(2.25 * 3600))
            for name in ("second", "third", "fourth"):
                await asyncio.sleep(1800)
                root = make_node(name, clock())
                issuing = make_node(f"{name} intermediate", clock(), root)
                authority.plug_in(
                    certificates.build_signer(
                        issuing.certificate, issuing.key, (issuing.certificate,), (root.certificate,)
                    )
                )
            await living
        return mesh

    mesh = virtual_loop.run(live())
    assert len(mesh.signers) == 4
    for workload in mesh.workloads:
        assert workload.roots == list(mesh.authority.state.current.roots)
        assert len(workload.chain) == 2


def _signed_by(node: object) -> State:
    return State(current=certificates.build_signer(node.certificate, node.key, (), (node.certificate,)))  # type: ignore[attr-defined]
