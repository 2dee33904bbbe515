"""Metrics of a real Envoy through the agent: names and labels, the merged answer, probes of the application."""

import contextlib
import json

import agent_runs
import envoy_resources
import pytest
import tiny_control
from aiohttp import web

from mizzen import protos

pytestmark = pytest.mark.envoy

PORT = 8000
CART = "outbound|80|v1|cart.shop.svc.cluster.local"


@pytest.fixture
async def control():
    control = tiny_control.TinyControl()
    await control.start()
    yield control
    await control.stop()


@contextlib.asynccontextmanager
async def application(address: str, routes: dict[str, web.StreamResponse | str]):
    """An application that answers by path; yields its port and the requests that came."""
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        text = routes.get(request.path)
        return web.Response(status=404) if text is None else web.Response(text=text)

    server = web.Application()
    server.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(server, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, address, 0)
    await site.start()
    try:
        yield site._server.sockets[0].getsockname()[1], seen
    finally:
        await runner.cleanup()


def build_counting_listener(address: str):
    """An inbound listener whose route goes to the cart, with the logger that counts requests."""
    listener = envoy_resources.build_listener(f"{address}_{PORT}", address, PORT, "", traffic_direction="INBOUND")
    packed = listener.filter_chains[0].filters[0].typed_config
    manager = protos.unpack(packed)
    manager.stat_prefix = f"inbound_0.0.0.0_{PORT};"
    del manager.route_config.virtual_hosts[0].routes[:]
    manager.route_config.virtual_hosts[0].routes.add(match={"prefix": "/"}, route={"cluster": CART})
    tags = [("reporter", "destination"), ("mz_destination", "%ENVIRONMENT(MZ_PEER)%")]
    tags += [("source_workload", "%ENVIRONMENT(MZ_UNKNOWN)%"), ("mz_service", "%METADATA(CLUSTER:mizzen:service)%")]
    stat = {"name": "istio_requests_total", "tags": [{"name": name, "value_format": form} for name, form in tags]}
    logger = protos.package("envoy.extensions.access_loggers.stats.v3").Config(
        stats_scope={"prefix": "wasmcustom", "sharing_name": "istio"},
        counters=[{"stat": stat, "value_fixed": {"value": 1}}],
    )
    manager.access_log.add(name="metrics", typed_config=protos.pack(logger))
    packed.CopyFrom(protos.pack(manager))
    return listener


async def serve(control: tiny_control.TinyControl, run: agent_runs.AgentRun, port: int) -> None:
    cluster = envoy_resources.build_cluster(CART)
    await control.set(cluster)
    await control.set(envoy_resources.build_endpoints(CART, run.address, port))
    await control.set(build_counting_listener(run.address))
    await run.until_ready()


async def test_names_are_istios_and_dotted_names_become_labels(control, tmp_path) -> None:
    config = {
        "discoveryAddress": control.address,
        "concurrency": 1,
        "proxyStatsMatcher": {"inclusionRegexps": [".*"]},
    }
    environ = {
        "PROXY_CONFIG": json.dumps(config),
        "ISTIO_META_WORKLOAD_NAME": "front-v1",
        "ISTIO_METAJSON_LABELS": '{"version": "v1"}',
    }
    async with (
        agent_runs.running(tmp_path, control, environ) as run,
        application(run.address, {"/": "cart"}) as (port, _),
    ):
        await serve(control, run, port)
        assert await run.get(PORT) == (200, "cart")

        async def counted() -> bool:
            return "istio_requests_total" in (await run.get(15020, "/stats/prometheus"))[1]

        await run.until(counted, "istio_requests_total")
        _, text = await run.get(15090, "/stats/prometheus")
        lines = set(text.splitlines())
        labels = (
            'reporter="destination",source_workload="unknown",destination_workload="front-v1",'
            'destination_workload_namespace="demo",destination_app="front-v1",destination_version="v1",'
            'destination_canonical_service="unknown",destination_canonical_revision="latest",'
            'destination_service_name="unknown",destination_service_namespace="demo",destination_cluster="Kubernetes"'
        )
        assert f"istio_requests_total{{{labels}}} 1" in lines
        merged = set((await run.get(15020, "/stats/prometheus"))[1].splitlines())
        assert f"istio_requests_total{{{labels}}} 1" in merged
        assert not [line for line in lines | merged if "mz_" in line]
        assert f'envoy_cluster_upstream_cx_total{{cluster_name="{CART}"}} 1' in lines
        assert f'envoy_cluster_upstream_rq{{response_code="200",cluster_name="{CART}"}} 1' in lines
        manager = f'http_conn_manager_prefix="inbound_0.0.0.0_{PORT}"'
        assert f'envoy_http_downstream_rq{{response_code_class="2xx",{manager}}} 1' in lines
        assert f'envoy_listener_downstream_cx_total{{listener_address="{run.address}_{PORT}"}} 1' in lines
        # How often depends on the machine.
        assert [line for line in lines if line.startswith('envoy_server_watchdog_miss{thread_name="main_thread"} ')]
        assert not [line for line in lines if ";" in line]


async def test_default_inclusion_keeps_what_operators_need_and_no_more(control, tmp_path) -> None:
    async with agent_runs.running(tmp_path, control) as run, application(run.address, {"/": "cart"}) as (port, _):
        await serve(control, run, port)
        assert await run.get(PORT) == (200, "cart")
        _, text = await run.get(15090, "/stats/prometheus")
        assert 'envoy_cluster_upstream_cx_active{cluster_name="xds-grpc"} 1' in text
        assert "envoy_cluster_manager_cds_update_success" in text
        assert "envoy_server_live" in text
        assert CART not in text
        assert "envoy_http_" not in text


async def test_merged_answer_holds_agent_envoy_and_application(control, tmp_path) -> None:
    run = agent_runs.AgentRun(tmp_path, control)
    async with application(run.address, {"/stats": "orders 7\n# EOF\n", "/": ""}) as (port, seen):
        targets = {"scrape": "true", "port": str(port), "path": "/stats"}
        run.environ["ISTIO_PROMETHEUS_ANNOTATIONS"] = json.dumps(targets)
        await run.start()
        try:
            await serve(control, run, port)
            status, text = await run.get(15020, "/stats/prometheus", headers={"Accept": "text/plain"})
            assert status == 200
            assert (
                text.index("istio_agent_xds_proxy_requests") < text.index("envoy_server_live") < text.index("orders 7")
            )
            assert "# EOF" not in text
            assert [request.headers["Accept"] for request in seen if request.path == "/stats"] == ["text/plain"]
            assert "istio_agent_cert_expiry_seconds" in text
        finally:
            await run.stop(9)


async def test_failed_scrape_of_the_application_leaves_the_rest(control, tmp_path) -> None:
    targets = {"scrape": "true", "targets": [{"port": 9, "path": "/metrics"}]}
    environ = {"ISTIO_PROMETHEUS_ANNOTATIONS": json.dumps(targets)}
    async with agent_runs.running(tmp_path, control, environ) as run:
        await serve(control, run, 9)
        status, text = await run.get(15020, "/stats/prometheus")
        assert status == 200
        assert "envoy_server_live" in text
        _, own = await run.get(15020, "/metrics")
        assert 'istio_agent_scrape_failures_total{type="application"} 1' in own
        assert "envoy_server_live" not in own
