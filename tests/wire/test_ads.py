"""ADS on the wire: changes of resources in, a real gRPC stream out, in both variants."""

import asyncio
import gc

import faults
import pytest
from ads_server import QUIET, serve
from adsclient import Client, node
from eventually import eventually

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, Resource
from mizzen.errors import MizzenError
from mizzen.observe import REGISTRY
from mizzen.settings import Push, Settings, Xds
from mizzen.xds import kinds, metrics
from mizzen.xds.server import Server
from mizzen.xds.watch import State

MESH = [
    (CLUSTER, "a", "1"),
    (CLUSTER, "b", "1"),
    (ENDPOINT, "a", "1"),
    (ENDPOINT, "b", "1"),
    (LISTENER, "l", "1"),
    (ROUTE, "r", "1"),
    (SECRET, "s", "1"),
]

both = pytest.mark.parametrize("delta", [True, False], ids=["delta", "sotw"])


async def converse(client: Client) -> None:
    """Subscribe as an Envoy does."""
    for type_url, names in ((CLUSTER, ()), (ENDPOINT, ("a", "b")), (LISTENER, ()), (ROUTE, ("r",))):
        await client.subscribe(type_url, *names)
        await client.read_acked()


# -- what is said -----------------------------------------------------------------------------------------------------


@both
async def test_a_client_gets_everything_and_then_what_changes(delta):
    async with serve(MESH) as serving, Client(serving.target, delta=delta) as client:
        await converse(client)
        assert {t.rsplit(".", 1)[1]: sorted(held) for t, held in client.held.items()} == {
            "Cluster": ["a", "b"],
            "ClusterLoadAssignment": ["a", "b"],
            "Listener": ["l"],
            "RouteConfiguration": ["r"],
        }
        serving.set(ENDPOINT, "b", "2")
        assert (await client.read_acked()).names == ["b"]
        await client.read_nothing()


@both
async def test_a_change_of_everything_comes_in_order(delta):
    async with serve(MESH) as serving, Client(serving.target, delta=delta) as client:
        await converse(client)
        for type_url, name in ((ROUTE, "r"), (LISTENER, "l"), (ENDPOINT, "a"), (CLUSTER, "a")):
            serving.set(type_url, name, "2")
        assert [(await client.read_acked()).type_url for _ in range(4)] == [CLUSTER, ENDPOINT, LISTENER, ROUTE]
        await client.read_nothing()


@both
async def test_endpoints_follow_a_changed_cluster_unasked_and_before_its_ack(delta):
    async with serve(MESH) as serving, Client(serving.target, delta=delta) as client:
        await converse(client)
        serving.set(CLUSTER, "a", "2")
        clusters, endpoints = await client.read(), await client.read()
        assert (clusters.type_url, endpoints.type_url, endpoints.names) == (CLUSTER, ENDPOINT, ["a"])


@both
@pytest.mark.usefixtures("patient")
async def test_routes_wait_for_new_clusters(delta):
    async with serve(MESH) as serving, Client(serving.target, delta=delta) as client:
        await converse(client)
        serving.set(CLUSTER, "new", "1")
        serving.set(ROUTE, "r", "to new")
        clusters = await client.read()
        assert clusters.type_url == CLUSTER
        await client.read_nothing(0.3)
        await client.ack(clusters)
        assert (await client.read_acked()).type_url == ROUTE


@both
async def test_routes_do_not_wait_for_ever_for_new_clusters(delta):
    async with serve(MESH) as serving, Client(serving.target, delta=delta) as client:
        await converse(client)
        serving.set(CLUSTER, "new", "1")
        serving.set(ROUTE, "r", "to new")
        assert (await client.read()).type_url == CLUSTER
        assert (await client.read_acked()).type_url == ROUTE


async def test_a_removed_cluster_leaves_after_the_route_that_used_it():
    async with serve(MESH) as serving, Client(serving.target) as client:
        await converse(client)
        serving.remove(CLUSTER, "b")
        serving.set(ROUTE, "r", "2")
        route, clusters = await client.read_acked(), await client.read_acked()
        assert (route.type_url, clusters.type_url, clusters.removed) == (ROUTE, CLUSTER, ("b",))
        assert sorted(client.held[CLUSTER]) == ["a"]


@both
async def test_a_first_configuration_does_not_wait_for_quiet(delta):
    async with serve(MESH, push=Push(debounce_after=600, debounce_max=600)) as serving:
        serving.set(CLUSTER, "c", "1")
        async with Client(serving.target, delta=delta) as client:
            await client.subscribe(CLUSTER)
            assert (await client.read()).names == ["a", "b"]


async def test_reconnecting_sends_only_what_differs():
    async with serve(MESH) as serving:
        async with Client(serving.target) as client:
            await converse(client)
        serving.set(LISTENER, "l2", "1")
        serving.remove(CLUSTER, "b")
        async with Client(serving.target, held=client.held, versions=client.versions) as again:
            await eventually(lambda: serving.discovery.pusher.count == 1)
            await again.resume(CLUSTER)
            clusters = await again.read_acked()
            assert (clusters.names, clusters.removed) == ([], ("b",))
            await again.resume(LISTENER)
            assert (await again.read_acked()).names == ["l2"]
            await again.resume(ENDPOINT, "a")
            assert (await again.read_acked()).names == ["a"], "an Envoy may have forgotten what it names"
    async with (
        serve([(LISTENER, "l", "1"), (LISTENER, "l2", "1")]) as restarted,
        Client(restarted.target, held=again.held, versions=again.versions) as third,
    ):
        await third.resume(LISTENER)
        connections = restarted.discovery.connections
        await eventually(lambda: [status.state for one in connections for status in one.types()] == [State.SYNCED])
        await third.read_nothing()


@both
async def test_a_rejection_is_known_and_keeps_nobody_else_waiting(delta):
    async with (
        serve(MESH) as serving,
        Client(serving.target, delta=delta) as bad,
        Client(serving.target, delta=delta, node=node("good")) as good,
    ):
        rejects = metrics.REJECTS.value("lds")
        for client in (bad, good):
            await client.subscribe(LISTENER)
            await client.read_acked()
        serving.set(LISTENER, "l", "2")
        await bad.nack(await bad.read(), "listener 'l' config rejected: no")
        await good.read_acked()
        front = serving.discovery.connections.find("app-0")
        await eventually(lambda: front.types()[0].state is State.ERROR)
        status = front.types()[0]
        assert (status.error, status.culprits) == ("Internal:listener 'l' config rejected: no", ("l",))
        assert status.sent_version != status.accepted_version
        other = serving.discovery.connections.find("good")
        await eventually(lambda: other.types()[0].state is State.SYNCED)
        assert metrics.REJECTS.value("lds") == rejects + 1
        series = {"node": front.proxy.id, "err": "Internal"}
        assert REGISTRY.get_sample_value("pilot_xds_lds_reject", series) == 1
        await bad.read_nothing()
        serving.set(LISTENER, "l", "3")
        await bad.read_acked()
        await eventually(lambda: front.types()[0].state is State.SYNCED)
    await eventually(lambda: REGISTRY.get_sample_value("pilot_xds_lds_reject", series) is None)


async def test_a_rejection_stays_known_while_another_stream_of_the_same_proxy_has_it_too():
    async with serve(MESH) as serving, Client(serving.target) as one:
        async with Client(serving.target) as other:
            for client in (one, other):
                await client.subscribe(LISTENER)
                await client.read_acked()
            serving.set(LISTENER, "l", "2")
            for client in (one, other):
                await client.nack(await client.read(), "no")
            series = {"node": serving.discovery.connections.find("app-0").proxy.id, "err": "Internal"}
            await eventually(lambda: REGISTRY.get_sample_value("pilot_xds_lds_reject", series) == 2)
        await eventually(lambda: REGISTRY.get_sample_value("pilot_xds_lds_reject", series) != 2)
        assert REGISTRY.get_sample_value("pilot_xds_lds_reject", series) == 1
    await eventually(lambda: REGISTRY.get_sample_value("pilot_xds_lds_reject", series) is None)


async def test_a_mesh_that_cannot_be_compiled_for_some_still_serves_the_others():
    async with (
        serve([*MESH, (CLUSTER, "ns/shop/x", "1")]) as serving,
        Client(serving.target) as here,
        Client(serving.target, node=node(namespace="shop")) as there,
    ):
        for client in (here, there):
            await client.subscribe(CLUSTER)
            await client.read_acked()
        serving.set(CLUSTER, "ns/shop/x", "broken")
        serving.set(CLUSTER, "a", "2")
        assert (await here.read_acked()).names == ["a"]
        await there.read_nothing()
        serving.set(CLUSTER, "ns/shop/x", "2")
        assert (await there.read_acked()).names == ["a", "ns/shop/x"]


# -- many -------------------------------------------------------------------------------------------------------------


async def test_a_change_that_two_hundred_share_is_compiled_compared_and_encoded_once():
    async with serve(MESH) as serving:
        clients = [Client(serving.target, node=node(f"app-{n}")) for n in range(200)]
        for client in clients:
            await client.__aenter__()
            await client.subscribe(CLUSTER)
        for client in clients:
            await client.read_acked()
        responses, engine = serving.discovery.responses, serving.engine
        assert responses.encoded == 1
        encoded, runs = responses.encoded, engine.runs_by_query["visible"]
        serving.set(CLUSTER, "a", "2")
        answers = [await client.read_acked() for client in clients]
        assert {tuple(answer.names) for answer in answers} == {("a",)}
        assert responses.encoded == encoded + 1
        assert engine.runs_by_query["visible"] == runs + 1
        assert len({answer.nonce for answer in answers}) == 200
        for client in clients:
            await client.__aexit__()


async def test_a_client_that_does_not_read_holds_up_nobody():
    large = [(CLUSTER, f"c{n}", "x" * 50_000) for n in range(40)]
    push = Push(debounce_after=QUIET, throttle=1)
    window = (("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0))
    async with serve(large, push=push) as serving:
        stuck = Client(serving.target, reads=False)
        stuck.options = (*stuck.options, *window)
        async with stuck, Client(serving.target, node=node("quick")) as quick:
            await stuck.subscribe(CLUSTER)
            await eventually(lambda: serving.sent(CLUSTER))
            await quick.subscribe(CLUSTER)
            assert len((await quick.read_acked()).names) == 40
            for content in "yz":
                serving.set(CLUSTER, "c0", content)
                assert (await quick.read_acked()).names == ["c0"]
            connection = serving.discovery.connections.find("app-0")
            assert len(connection.session.watches[CLUSTER].in_flight) == 1, "what it missed is merged"
            stuck.start_reading()
            assert len((await stuck.read_acked()).names) == 40
            assert (await stuck.read_acked()).names == ["c0"]
            await stuck.read_nothing()
            assert stuck.held[CLUSTER] == quick.held[CLUSTER]


async def test_a_client_that_goes_away_in_the_middle_of_a_response_leaves_nothing_behind(caplog):
    large = [(CLUSTER, f"c{n}", "x" * 50_000) for n in range(40)]
    async with serve(large) as serving:
        for number in range(5):
            async with Client(serving.target, node=node(f"app-{number}"), reads=False) as client:
                await client.subscribe(CLUSTER)
                await eventually(lambda: serving.sent(CLUSTER))
                pushes = serving.discovery.pusher.count
                serving.set(CLUSTER, "c0", str(number))
                await eventually(lambda pushes=pushes: serving.discovery.pusher.count > pushes)
            await eventually(lambda: len(serving.discovery.connections) == 0)
    assert faults.logged(caplog) == []


async def test_what_departed_clients_followed_is_let_go():
    async with serve(MESH) as serving:
        for _ in range(3):
            async with Client(serving.target) as client:
                await converse(client)
        await eventually(lambda: len(serving.discovery.connections) == 0)
        serving.set(CLUSTER, "z", "1")
        await eventually(lambda: serving.discovery.pusher.count == 1)
        await eventually(lambda: len(serving.engine) == 0)


def contents_in_memory() -> list[bytes]:
    return [each.data for each in gc.get_objects() if type(each) is Resource]


async def test_what_departed_clients_held_goes_without_a_collector_of_cycles():
    """Streams end in cycles of frames and exceptions; what they knew of the mesh must not wait for somebody to find them."""
    async with serve([(CLUSTER, "a", "first")]) as serving:
        gc.collect()
        gc.disable()
        try:
            for number in range(5):
                async with Client(serving.target, node=node(f"app-{number}")) as client:
                    await client.subscribe(CLUSTER)
                    await client.read_acked()
                    serving.set(CLUSTER, "a", f"state-{number}")
                    assert (await client.read_acked()).names == ["a"]
                await eventually(lambda: len(serving.discovery.connections) == 0)
            serving.discovery.responses.clear()
            # Only what is in force. A stream's frames end a moment after its connection is known no more.
            await eventually(lambda: sum(b"state-" in data for data in contents_in_memory()) <= 1)
        finally:
            gc.enable()


# -- who is let in ----------------------------------------------------------------------------------------------------


async def refused(client: Client) -> str:
    """How the stream ended, without any response."""
    with pytest.raises(ConnectionError) as failed:
        await client.read()
    return str(failed.value)


async def ended(client: Client) -> str:
    """How the stream ended, after as many responses as there were."""
    try:
        while True:
            await client.read()
    except ConnectionError as failed:
        return str(failed)


@both
async def test_nobody_is_served_before_the_mesh_is_complete(delta):
    async with serve(MESH, opened=False) as serving:
        async with Client(serving.target, delta=delta) as client:
            await client.subscribe(CLUSTER)
            assert await refused(client) == "UNAVAILABLE: server is not ready to serve discovery information"
        serving.discovery.pusher.open()
        async with Client(serving.target, delta=delta) as client:
            await client.subscribe(CLUSTER)
            assert (await client.read()).names == ["a", "b"]


@pytest.mark.parametrize(
    ("claim", "ending"),
    [
        ({}, "INVALID_ARGUMENT: missing node information"),
        ({"id": "x"}, "INVALID_ARGUMENT: node id 'x' is not type~ip~name.namespace~domain"),
        ({"id": "sidecar~no~a.b~c"}, "INVALID_ARGUMENT: node 'sidecar~no~a.b~c': neither INSTANCE_IPS nor"),
    ],
)
async def test_a_node_that_is_none_is_refused(claim, ending):
    async with serve(MESH) as serving, Client(serving.target, node=claim) as client:
        await client.subscribe(CLUSTER)
        assert (await refused(client)).startswith(ending)
        assert len(serving.discovery.connections) == 0


async def test_garbage_ends_the_stream():
    async with serve(MESH) as serving, Client(serving.target) as client:
        await client.subscribe(CLUSTER)
        await client.read_acked()
        await client.call.write(b"\xff\xff\xff")
        assert (await refused(client)).startswith("INVALID_ARGUMENT: not a discovery request")


async def test_health_reports_are_passed_over_even_before_the_first_request(caplog):
    async with serve(MESH) as serving, Client(serving.target) as client:
        await client.subscribe(kinds.HEALTH)
        client._first = True
        await client.subscribe(CLUSTER)
        assert (await client.read()).names == ["a", "b"]
        await client.subscribe(kinds.HEALTH)
        await client.subscribe(LISTENER)
        assert (await client.read()).names == ["l"]
    assert "not served" not in caplog.text


async def test_an_unknown_type_is_passed_over_and_said_once(caplog):
    async with serve(MESH) as serving, Client(serving.target) as client:
        for _ in range(2):
            await client.subscribe("type.googleapis.com/nope")
        await client.subscribe(CLUSTER)
        assert (await client.read()).names == ["a", "b"]
    said = [record.getMessage() for record in caplog.records if "not served" in record.getMessage()]
    assert said == ["ADS: app-0.default-1 asks for type.googleapis.com/nope, which is not served here"]


async def test_too_many_new_streams_are_sent_away():
    xds = Xds(max_requests_per_second=0.1, stop_grace=0.1)
    async with serve(MESH, xds=xds) as serving, Client(serving.target) as first:
        await first.subscribe(CLUSTER)
        await first.read()
        async with Client(serving.target) as late:
            await late.subscribe(CLUSTER)
            assert (await refused(late)).startswith("RESOURCE_EXHAUSTED: request rate limit exceeded")


async def test_a_request_that_is_too_large_ends_the_stream():
    xds = Xds(max_receive_bytes=10_000, stop_grace=0.1)
    async with serve(MESH, xds=xds) as serving, Client(serving.target) as client:
        await client.subscribe(ENDPOINT, *(f"name-{n}" for n in range(2000)))
        assert (await refused(client)).startswith("RESOURCE_EXHAUSTED")


# -- connections ------------------------------------------------------------------------------------------------------


def connected() -> float:
    return REGISTRY.get_sample_value("pilot_xds", {"version": "1.32.0"}) or 0.0


async def test_connections_are_known_while_they_last():
    events = []
    async with serve(MESH) as serving:
        serving.discovery.connections.listen(lambda event, connection: events.append((event.value, connection.id)))
        before = connected()
        async with Client(serving.target) as client:
            await client.subscribe(CLUSTER)
            await client.read()
            [connection] = serving.discovery.connections
            assert connection.id == "app-0.default-1"
            assert connection.address.startswith("127.0.0.1:")
            assert (connection.delta, connection.identity, connection.version) == (True, None, "1.32.0")
            assert connected() == before + 1
        await eventually(lambda: len(serving.discovery.connections) == 0)
        assert connected() == before
    assert events == [("connected", "app-0.default-1"), ("disconnected", "app-0.default-1")]


async def test_a_stream_can_be_closed_from_here():
    async with serve(MESH) as serving, Client(serving.target) as client:
        await client.subscribe(CLUSTER)
        await client.read()
        serving.discovery.connections.find("app-0").stream.close()
        assert await refused(client) == "OK: "


async def test_stopping_ends_streams_at_once():
    async with asyncio.timeout(60), serve(MESH, xds=Xds(stop_grace=600)) as serving:
        client = Client(serving.target)
        await client.__aenter__()
        await client.subscribe(CLUSTER)
        await client.read()
    assert (await refused(client)).partition(":")[0] in ("OK", "UNAVAILABLE")
    await client.__aexit__()


async def test_a_stream_that_is_ended_in_the_middle_of_its_first_response_ends_after_it(caplog):
    big = [(LISTENER, f"l-{number}", "x" * 100_000) for number in range(200)]
    async with serve(big) as serving:
        slow = Client(serving.target, reads=False)
        await slow.__aenter__()
        await slow.subscribe(LISTENER)
        await eventually(lambda: serving.sent(LISTENER))
        serving.discovery.connections.close()
        await eventually(lambda: not len(serving.discovery.connections))
        slow.start_reading()
        assert len((await slow.read()).names) == len(big)
        assert await refused(slow) == "OK: "
        await slow.__aexit__()
    assert not [record for record in caplog.records if record.name.startswith("grpc")]


async def test_an_old_connection_is_ended_so_that_proxies_spread_again():
    xds = Xds(max_connection_age=0.5, connection_age_grace=0.2, stop_grace=0.1)
    async with serve(MESH, xds=xds) as serving, Client(serving.target) as client:
        await client.subscribe(CLUSTER)
        assert await ended(client) != "OK: "
        await eventually(lambda: len(serving.discovery.connections) == 0)


async def test_a_port_in_use_is_said_by_name(capfd):
    async with serve(MESH) as serving:
        with pytest.raises(MizzenError, match=f"cannot listen on {serving.target}"):
            Server([], Settings().xds).listen(serving.target)
    capfd.readouterr()


async def test_pushes_are_counted_under_the_names_that_operators_know():
    async with serve(MESH) as serving, Client(serving.target) as client:
        at_first, triggers = metrics.PUSHES.value("cds"), metrics.TRIGGERS.value("config")
        await client.subscribe(CLUSTER)
        await client.read_acked()
        # A response is counted when it was handed over, which a client may see first.
        await eventually(lambda: metrics.PUSHES.value("cds") == at_first + 1)
        pushes = metrics.PUSHES.value("cds")
        converged = REGISTRY.get_sample_value("pilot_proxy_convergence_time_count")
        serving.set(CLUSTER, "a", "2")
        await client.read_acked()
        await eventually(lambda: REGISTRY.get_sample_value("pilot_proxy_convergence_time_count") == converged + 1)
        await eventually(lambda: metrics.PUSHES.value("cds") == pushes + 1)
        assert metrics.TRIGGERS.value("config") == triggers + 1
