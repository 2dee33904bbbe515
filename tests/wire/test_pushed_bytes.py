"""The bytes that `mizzen diff` foretells are those that a client of the control plane receives."""

from typing import Any

import golden
import meshes
import pytest
from ads_server import serve_generator
from adsclient import Client

from mizzen.api.decode import decode_object
from mizzen.cli import diff_run
from mizzen.compile import snapshot
from mizzen.compile.resource import CLUSTER, ENDPOINT, EXTENSION, LISTENER, NAME_TABLE, ROUTE, SECRET
from mizzen.diagnose.change import classes, told
from mizzen.incremental import Engine
from mizzen.xds.generator import EngineGenerator

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, EXTENSION, NAME_TABLE)

BEFORE = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.1.0.1, selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints: [{addresses: [10.2.0.1], conditions: {ready: true}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web], http: [{timeout: 1s, route: [{destination: {host: web}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web, trafficPolicy: {loadBalancer: {simple: RANDOM}}, subsets: [{name: one, labels: {app: web}}]}
"""

STEPS = {
    "route": ("timeout: 1s", "timeout: 2s"),
    "cluster, whose endpoints follow": ("simple: RANDOM", "simple: ROUND_ROBIN"),
    "endpoints": ("10.2.0.1]", "10.2.0.2]"),
    "subset gone": ("subsets: [{name: one, labels: {app: web}}]", "subsets: []"),
    "all at once": (
        "timeout: 1s, route: [{destination: {host: web}}]",
        "route: [{destination: {host: web}}], retries: {attempts: 5}",
    ),
}


@pytest.mark.parametrize("step", STEPS)
async def test_bytes_are_those_that_are_received(step: str) -> None:
    after = BEFORE.replace(*STEPS[step])
    assert after != BEFORE
    case = golden.load_case("base")
    who, node = golden.proxy_of(case, case.look_from[0]), golden.node_of(case.proxies[case.look_from[0]])
    db = _engine(case, BEFORE)
    old = _told(*told.follow(db, told.Reader(), who))
    async with (
        serve_generator(db, EngineGenerator(db, snapshot.resources, TYPES)) as serving,
        Client(serving.target, node=node) as client,
    ):
        for url in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
            names = sorted(old.asked.get(url, ()))
            await client.subscribe(url, *names)
            await client.read_acked()
        for document in meshes.documents(after):
            decoded = decode_object(document)
            serving.discovery.pusher.feed(decoded.key, decoded.object)
        foretold, received = _foretell(case, after, old), 0
        while received < foretold:
            answer = await client.read_acked()
            received += answer.size - len(answer.nonce) - 2
            if answer.type_url == CLUSTER and answer.removed:
                await client.subscribe(ENDPOINT, unsubscribe=set(answer.removed) & old.asked[ENDPOINT])
        await client.read_nothing(1.0)
        assert received == foretold > 0


def _engine(case: golden.Case, text: str) -> Engine:
    db = golden.engine_of(case)
    for document in meshes.documents(text):
        golden.set_object(db, document)
    return db


def _foretell(case: golden.Case, text: str, old: told.Told) -> int:
    """The bytes from that state to the one of this text."""
    db, who = _engine(case, text), golden.proxy_of(case, case.look_from[0])
    sets, asked = told.follow(db, told.Reader(), who)
    new = _told(sets, asked, told.linger(db, who, asked, old.asked))
    return classes.pushed_bytes(old, new, diff_run.measure())


def _told(sets: Any, asked: Any, lingering: Any = None) -> told.Told:
    return told.Told(
        reference="a.b",
        namespace="b",
        workload="a",
        kind="sidecar",
        incarnation=1,
        sets=sets,
        asked=asked,
        lingering=lingering or {},
    )
