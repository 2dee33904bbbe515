"""Weeks of replicas, workloads and an operator: at no moment do two workloads with good certificates distrust each other.

Workloads are the poorest ones that there are: they learn of roots only when they renew their certificate, some time before
it ends, from whichever replica they meet. Replicas restart, are slow, and cannot always reach the API server; the
operator exchanges the authority when it likes.
"""

import functools
import pathlib
import random

import pytest
from certificate_requests import make_request, read_chain
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from plugged_authority import Node, make_node
from secret_server import SecretServer

from mizzen import settings
from mizzen.ca import certificates
from mizzen.control.shared_authority import SharedAuthority, open_shared

START = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0
CART = "spiffe://cluster.local/ns/shop/sa/cart"
REQUEST = make_request(ec.generate_private_key(ec.SECP256R1()))
STEPS, REPLICAS, WORKLOADS = 400, 3, 6


@functools.cache
def is_issued_by(leaf: x509.Certificate, root: x509.Certificate) -> bool:
    return certificates.is_issued_by(leaf, root)


class Workload:
    """A certificate, and the roots that came with it."""

    def __init__(self) -> None:
        self.leaf: x509.Certificate | None = None
        self.roots: list[x509.Certificate] = []
        self.renew_at = 0.0

    def renew(self, shared: SharedAuthority, now: float, life: float, part: float) -> None:
        chain, self.roots = read_chain(shared.authority.issue(REQUEST, [CART], life))
        self.leaf = chain[0]
        self.renew_at = now + (certificates.expiry_of(chain[0]) - now) * part

    def believes(self, other: "Workload", now: float) -> bool:
        assert other.leaf is not None
        return any(is_issued_by(other.leaf, root) and now < certificates.expiry_of(root) for root in self.roots)


class World:
    """All of them, by one source of chance."""

    def __init__(self, folder: pathlib.Path, seed: int, nodes: list[Node]) -> None:
        self.chance, self.now, self.server, self.nodes = random.Random(seed), START, SecretServer(), nodes
        self.config = settings.Authority(directory=str(folder / "none"), root_key_bits=2048, root_ttl=60 * DAY)
        self.replicas: list[SharedAuthority] = []
        self.away: dict[SharedAuthority, float] = {}
        self.workloads = [Workload() for _ in range(WORKLOADS)]
        self.signers: set[x509.Certificate] = set()

    async def start(self) -> SharedAuthority:
        async def organisation() -> str:
            return "cluster.local"

        return await open_shared(self.server, self.config, "istio-system", organisation, lambda: self.now)

    async def step(self) -> None:
        self.now += self.chance.uniform(0.1, 2) * HOUR
        if self.chance.random() < 0.03:
            node = self.chance.choice(self.nodes)
            key = certificates.encode_key(node.key)
            self.server.put("cacerts", {"ca-cert.pem": node.pem, "ca-key.pem": key, "root-cert.pem": node.pem})
        if self.chance.random() < 0.1:
            self.replicas[self.chance.randrange(REPLICAS)] = await self.start()
        if self.chance.random() < 0.1:
            self.away[self.chance.choice(self.replicas)] = self.now + 2 * HOUR
        for each in self.chance.sample(self.replicas, REPLICAS):
            if self.now >= self.away.get(each, 0.0):
                await each.look()
        for workload in self.workloads:
            if self.now >= workload.renew_at:
                met = self.chance.choice(self.replicas)
                # Sooner for one whose pod is replaced, so that they do not all renew together.
                workload.renew(met, self.now, self.chance.choice((0, 6 * HOUR, DAY)), self.chance.uniform(0.1, 0.8))
                self.signers.add(met.authority.state.current.certificate)
                if self.now >= self.away.get(met, 0.0):
                    await met.look()

    def distrusts(self) -> list[tuple[int, int]]:
        numbered = list(enumerate(self.workloads))
        return [(a, b) for a, one in numbered for b, two in numbered if not one.believes(two, self.now)]


@pytest.mark.parametrize("seed", range(3))
async def test_no_two_workloads_ever_distrust_each_other(tmp_path: pathlib.Path, seed: int) -> None:
    world = World(tmp_path, seed, [make_node(f"root {number}", START) for number in range(3)])
    world.replicas = [await world.start() for _ in range(REPLICAS)]
    for number in range(STEPS):
        await world.step()
        assert world.distrusts() == [], f"at step {number}"
    world.away.clear()
    for _ in range(3):
        for each in world.replicas:
            await each.look()
    assert len({each.authority.bundle for each in world.replicas}) == 1
    assert len(world.signers) >= 2, "a change of roots was seen"
