"""A real Envoy on a real ADS stream: what a simulated client could get wrong."""

import ads_envoy
import pytest
from ads_envoy import Mesh, envoy, is_synced, upstream
from ads_server import serve
from claims import own_port
from eventually import eventually

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER
from mizzen.xds.watch import State

pytestmark = pytest.mark.envoy
both = pytest.mark.parametrize("delta", [True, False], ids=["delta", "sotw"])


@both
async def test_a_cluster_that_changes_alone_does_not_wait_for_endpoints(tmp_path, delta):
    async with upstream() as port, serve() as serving:
        mesh = Mesh(port)
        mesh.everything(serving)
        async with envoy(tmp_path, mesh, serving.port, delta=delta) as proxy:
            await is_synced(serving)
            await eventually_ok(proxy)
            for seconds in (2, 3):
                mesh.cluster(serving, "a", seconds=seconds)
                await proxy.until(cluster_manager__cluster_modified=seconds - 1, cluster_manager__warming_clusters=0)
            await is_synced(serving)
            assert await proxy.get() == 200


@both
async def test_what_envoy_rejects_is_known_and_traffic_goes_on(tmp_path, delta):
    async with upstream() as port, serve() as serving:
        mesh = Mesh(port)
        mesh.everything(serving)
        async with envoy(tmp_path, mesh, serving.port, delta=delta) as proxy:
            await is_synced(serving)
            await eventually_ok(proxy)
            mesh.listener(serving, chains=2)
            [connection] = serving.discovery.connections
            await eventually(lambda: connection.types()[2].state is State.ERROR)
            status = connection.types()[2]
            assert (status.type_url, status.culprits) == (LISTENER, ("l",))
            assert "has the same matching rules defined" in status.error
            assert await proxy.get() == 200
            mesh.listener(serving)
            await is_synced(serving)


@both
@pytest.mark.usefixtures("patient")
async def test_a_route_moves_to_another_cluster_and_the_first_leaves_without_a_failed_request(tmp_path, delta):
    async with upstream() as port, serve() as serving:
        mesh = Mesh(port)
        mesh.everything(serving)
        async with envoy(tmp_path, mesh, serving.port, delta=delta) as proxy:
            await is_synced(serving)
            await eventually_ok(proxy)
            async with proxy.traffic() as statuses:
                mesh.cluster(serving, "b", seconds=1)
                mesh.endpoints(serving, "b")
                await proxy.until(cluster_manager__active_clusters=3)
                mesh.route(serving, "b")
                serving.remove(CLUSTER, "a")
                serving.remove(ENDPOINT, "a")
                await proxy.until(cluster_manager__active_clusters=2)
                await is_synced(serving)
                await eventually(lambda: len(statuses) > 100)
            assert set(statuses) == {200}


@both
@pytest.mark.usefixtures("patient")
async def test_a_route_to_a_new_cluster_fails_no_request(tmp_path, delta):
    async with upstream() as port, serve() as serving:
        mesh = Mesh(port)
        mesh.everything(serving)
        async with envoy(tmp_path, mesh, serving.port, delta=delta) as proxy:
            await is_synced(serving)
            await eventually_ok(proxy)
            async with proxy.traffic() as statuses:
                for number in range(10):
                    before = await proxy.stats()
                    mesh.cluster(serving, f"new-{number}", seconds=1)
                    mesh.endpoints(serving, f"new-{number}")
                    mesh.route(serving, f"new-{number}")
                    await proxy.until(http__in__rds__r__update_success=before["http.in.rds.r.update_success"] + 1)
            assert set(statuses) == {200}


@pytest.mark.usefixtures("patient")
async def test_a_control_plane_that_comes_back_sends_only_what_differs(tmp_path):
    async with upstream() as port:
        mesh = Mesh(port)
        async with serve(port=own_port()) as serving:
            mesh.everything(serving)
            proxy_life = envoy(tmp_path, mesh, serving.port, delta=True)
            proxy = await proxy_life.__aenter__()
            await is_synced(serving)
            await eventually_ok(proxy)
            before = await proxy.stats()
        try:
            async with proxy.traffic() as statuses:
                await proxy.until(control_plane__connected_state=0)
                async with serve(port=serving.port, opened=False) as again:
                    mesh.everything(again)
                    mesh.cluster(again, "b", seconds=1)
                    mesh.endpoints(again, "b")
                    again.discovery.pusher.open()
                    await is_synced(again)
                    after = await proxy.until(control_plane__connected_state=1, cluster_manager__active_clusters=3)
                    assert await proxy.get() == 200
            assert set(statuses) == {200}
            assert after["listener_manager.lds.update_success"] == before["listener_manager.lds.update_success"]
            assert after["cluster_manager.cluster_modified"] == 0
            assert after["listener_manager.total_listeners_draining"] == 0
            assert after["listener_manager.total_filter_chains_draining"] == 0
        finally:
            await proxy_life.__aexit__(None, None, None)


async def eventually_ok(proxy: ads_envoy.Envoy) -> None:
    """Wait for the first request to succeed."""
    await proxy.until(listener_manager__workers_started=1, listener_manager__total_listeners_active=1)
    assert await proxy.get() == 200
