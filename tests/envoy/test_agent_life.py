"""The agent and a real Envoy: start, configuration, outages of the control plane, and the end of both."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator

import agent_runs
import aiohttp
import dns.asyncquery
import dns.message
import envoy_resources
import pytest
import tiny_control

from mizzen import protos

pytestmark = pytest.mark.envoy

CLUSTER = "envoy.config.cluster.v3.Cluster"
LISTENER = "envoy.config.listener.v3.Listener"
NAME_TABLE = "istio.networking.nds.v1.NameTable"
PORT = 8000
HOST = "cart.shop.svc.cluster.local"


@pytest.fixture
async def control():
    control = tiny_control.TinyControl()
    await control.start()
    yield control
    await control.stop()


async def configure(control: tiny_control.TinyControl, run: agent_runs.AgentRun, body: str = "first") -> None:
    await control.set(envoy_resources.build_cluster("outbound|80||cart"))
    await control.set(envoy_resources.build_endpoints("outbound|80||cart", "127.0.0.1", 9))
    await control.set(envoy_resources.build_listener("inbound", run.address, PORT, body, traffic_direction="INBOUND"))


async def body_is(run: agent_runs.AgentRun, body: str) -> None:
    async def check() -> bool:
        return (await run.get(PORT)) == (200, body)

    await run.until(check, f"{body!r} on port {PORT}")


@contextlib.asynccontextmanager
async def traffic(run: agent_runs.AgentRun):
    """Requests one after the other all the while; yields the list of what was not 200."""
    failures: list[object] = []
    sent = 0

    async def send() -> None:
        nonlocal sent
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"http://{run.address}:{PORT}/") as answer:
                        if answer.status != 200:
                            failures.append(answer.status)
                except aiohttp.ClientError as failed:
                    failures.append(failed)
                sent += 1
                await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(send())
        yield failures
        task.cancel()
    assert sent > 10


async def test_envoy_becomes_ready_with_the_control_planes_configuration(control, tmp_path) -> None:
    control.silent = True
    async with agent_runs.running(tmp_path, control) as run:
        await run.until(lambda: asyncio.sleep(0, control.requests_of(CLUSTER)), "Envoy's first request")
        status, text = await run.get(15020, "/healthz/ready")
        assert status == 503
        assert "cds updates: 0 successful" in text
        control.silent = False
        await configure(control, run)
        await run.until_ready()
        await body_is(run, "first")
        first = control.requests_of(CLUSTER)[0]
        assert first.node.id == "sidecar~10.1.1.10~front-0.demo~demo.svc.cluster.local"
        assert first.node.metadata["MIZZEN_DIALECT"] == "envoy"
        assert not control.requests_of(NAME_TABLE), "DNS is not captured"
        assert set(control.tokens) == {f"Bearer {tiny_control.TOKEN}"}


async def test_a_change_is_in_force_at_once_and_a_refused_one_leaves_the_old(control, tmp_path) -> None:
    async with agent_runs.running(tmp_path, control) as run:
        await configure(control, run)
        await run.until_ready()
        await configure(control, run, "second")
        await body_is(run, "second")
        bad = envoy_resources.build_listener("inbound", run.address, PORT, "third", traffic_direction="INBOUND")
        bad.filter_chains.append(bad.filter_chains[0])
        await control.set(bad)

        async def refused() -> bool:
            return any(request.HasField("error_detail") for request in control.requests_of(LISTENER))

        await run.until(refused, "a refusal")
        assert "Envoy refused Listener" in run.log
        await body_is(run, "second")


async def test_control_plane_restart_costs_no_request_and_sends_only_differences(control, tmp_path) -> None:
    async with agent_runs.running(tmp_path, control) as run:
        await configure(control, run)
        await run.until_ready()
        async with traffic(run) as failures:
            await control.stop()
            await asyncio.sleep(1.0)
            control.requests.clear()
            await control.set(envoy_resources.build_listener("more", run.address, PORT + 1, "more"))
            await control.start()

            async def more() -> bool:
                return (await run.get(PORT + 1))[0] == 200

            await run.until(more, "the listener that came during the outage")
        assert failures == []
        clusters, listeners = control.requests_of(CLUSTER)[0], control.requests_of(LISTENER)[0]
        assert set(clusters.initial_resource_versions) == {"outbound|80||cart"}
        assert set(listeners.initial_resource_versions) == {"inbound"}
        assert await run.stat("listener_manager.listener_modified") == 0
        assert await run.stat("listener_manager.total_listeners_draining") == 0
        assert await run.stat("listener_manager.listener_removed") == 0
        assert await run.stat("cluster_manager.cluster_modified") == 0


async def test_envoy_starts_from_the_last_good_configuration_and_goes_on_with_the_control_plane(
    control, tmp_path
) -> None:
    environ = {"ISTIO_META_DNS_CAPTURE": "true"}
    run = agent_runs.AgentRun(tmp_path, control, environ)
    table = protos.package("istio.networking.nds.v1").NameTable(table={HOST: {"ips": ["10.96.2.1"]}})
    run.environ["DNS_PROXY_ADDR"] = f"{run.address}:15053"
    await control.set(table, NAME_TABLE)
    await configure(control, run)
    await run.start()
    try:
        await run.until_ready()
        await control.stop()
        assert await run.stop(signal.SIGKILL) == -signal.SIGKILL
        await run.until_gone()

        await run.start()
        await run.until_ready()
        await body_is(run, "first")
        assert "last good configuration" in run.log
        answer = await dns.asyncquery.udp(dns.message.make_query(HOST, "A"), run.address, port=15053, timeout=60)
        assert [str(record) for record in answer.answer[0]] == ["10.96.2.1"]

        control.requests.clear()
        await configure(control, run, "second")
        await control.start()
        await body_is(run, "second")
        assert await run.stat("cluster_manager.cluster_modified") == 0
        assert await run.stat("listener_manager.listener_removed") == 0
    finally:
        await run.stop(signal.SIGKILL)


async def test_first_start_without_control_plane_waits_for_it(control, tmp_path) -> None:
    run = agent_runs.AgentRun(tmp_path, control)
    await control.stop()
    await run.start()
    try:

        async def waiting() -> bool:
            status, _ = await run.get(15020, "/healthz/ready")
            assert status in (0, 503)
            return status == 503 and "no control plane" in run.log

        await run.until(waiting, "that it waits")
        await configure(control, run)
        await control.start()
        await run.until_ready()
    finally:
        await run.stop(signal.SIGKILL)


async def test_control_plane_that_refuses_at_first_is_asked_again(control, tmp_path) -> None:
    control.refuse_streams = True
    async with agent_runs.running(tmp_path, control) as run:
        await configure(control, run)

        async def refused() -> bool:
            return "not ready" in run.log

        await run.until(refused, "a refusal")
        control.refuse_streams = False
        await run.until_ready()


async def test_order_to_stop_drains_inbound_connections_first(control, tmp_path) -> None:
    environ = {"PROXY_CONFIG": f"discoveryAddress: {control.address}\nterminationDrainDuration: 8s\nconcurrency: 1\n"}
    async with agent_runs.running(tmp_path, control, environ) as run:
        await configure(control, run)
        await run.until_ready()
        assert run.process is not None
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{run.address}:{PORT}/") as answer:
                assert "connection" not in answer.headers
            run.process.send_signal(signal.SIGTERM)

            async def draining() -> bool:
                async with session.get(f"http://{run.address}:{PORT}/") as answer:
                    assert answer.status == 200
                    return answer.headers.get("connection") == "close"

            await run.until(draining, "connections that are ended")
        assert await asyncio.wait_for(run.process.wait(), 60) == 0
        await run.until_gone()


async def test_quit_order_from_the_pod_ends_both_at_once(control, tmp_path) -> None:
    environ = {"PROXY_CONFIG": f"discoveryAddress: {control.address}\nterminationDrainDuration: 600s\nconcurrency: 1\n"}
    async with agent_runs.running(tmp_path, control, environ) as run:
        await configure(control, run)
        await run.until_ready()
        assert run.process is not None
        assert (await run.get(15020, "/quitquitquit"))[0] == 405
        await run.get(15020, "/quitquitquit", method="POST")
        assert await asyncio.wait_for(run.process.wait(), 60) == 0


async def test_agent_fails_when_envoy_ends_by_itself(control, tmp_path) -> None:
    async with agent_runs.running(tmp_path, control) as run:
        await configure(control, run)
        await run.until_ready()
        assert run.process is not None
        await run.get(15000, "/quitquitquit", method="POST")
        assert await asyncio.wait_for(run.process.wait(), 60) == 1
        assert "Envoy ended by itself" in run.log


@pytest.fixture
def open_folder() -> Iterator[agent_runs.Path]:
    """A folder that other users may enter; pytest's are closed to them, again with every run that begins."""
    with tempfile.TemporaryDirectory(prefix="mizzen-pod-") as name:
        folder = agent_runs.Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process another user")
async def test_envoy_gives_up_root_and_still_reaches_its_sockets(control, open_folder) -> None:
    folder = open_folder
    async with agent_runs.running(folder, control, {"MIZZEN_PROXY_UID": "1337", **readable_envoy(folder)}) as run:
        await configure(control, run)
        await run.until_ready()
        assert run.process is not None
        children = (agent_runs.Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children")).read_text().split()
        status = agent_runs.Path(f"/proc/{children[0]}/status").read_text()
        assert "Uid:\t1337\t1337\t1337\t1337" in status
        assert "Groups:\t \n" in status
        assert (folder / "etc/istio/proxy/XDS").stat().st_uid == 1337
        assert (folder / "etc/istio/proxy/XDS").stat().st_mode & 0o777 == 0o600


def readable_envoy(folder: agent_runs.Path) -> dict[str, str]:
    """A link to Envoy's binary where everybody may run it; the checkout may lie in somebody's own folder."""
    from mizzen.agent.binaries import find_envoy

    link = folder / "envoy"
    os.link(find_envoy("", ""), link)
    return {"ENVOY_PATH": str(link)}
