"""Metrics under Istio's names tell what is so: a mesh with exactly so many of each, and a stream with exactly so many."""

import asyncio
import pathlib
from collections.abc import Mapping

import adsclient
import pytest
from control_planes import Plane, control_plane
from eventually import eventually

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE

SERVICE = """
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop, creationTimestamp: "2026-01-0{day}T00:00:00Z"}}
spec: {{clusterIP: 10.9.0.{day}, selector: {{app: {app}}}, ports: [{{name: {port}, port: {number}, targetPort: 8080}}]}}
---
"""
TCP_ENTRY = """
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: {name}, namespace: shop, creationTimestamp: "2026-01-0{day}T00:00:00Z"}}
spec:
  hosts: [{name}.example]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{{name: tcp, number: 9000, protocol: TCP}}]
  endpoints: [{{address: 192.0.2.{day}}}]
---
"""
MESH = (
    SERVICE.format(name="web", day=1, app="cart", port="http", number=80)
    + SERVICE.format(name="raw", day=2, app="cart", port="tcp", number=81)
    + SERVICE.format(name="empty", day=3, app="nobody", port="http", number=80)
    + TCP_ENTRY.format(name="old", day=1)
    + TCP_ENTRY.format(name="young", day=2)
    + """
apiVersion: v1
kind: Pod
metadata: {name: cart-0, namespace: shop, labels: {app: cart}}
spec: {containers: [{name: app}]}
status: {phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.0.0.1], conditions: {ready: true}, targetRef: {kind: Pod, name: cart-0, namespace: shop}}
- {addresses: [10.0.0.2], conditions: {ready: false}, targetRef: {kind: Pod, name: cart-1, namespace: shop}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: names, namespace: shop}
spec:
  hosts: [names.example]
  resolution: DNS
  ports: [{name: http, number: 80, protocol: HTTP}]
  endpoints: [{address: one.names.example, labels: {version: one}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: names, namespace: shop}
spec: {host: names.example, subsets: [{name: two, labels: {version: two}}, {name: one, labels: {version: one}}]}
---
"""
    + "---".join(
        f"""
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: {name}, namespace: shop}}
spec: {{hosts: [{hosts}], http: [{{route: [{{destination: {{host: web}}}}]}}]}}
"""
        for name, hosts in (
            ("one", "web"),
            ("two", "web, nowhere.example"),
            ("three", "nowhere.example, lonely.example"),
        )
    )
)
STATE = {
    "pilot_services": 6,
    "pilot_virt_services": 3,
    "pilot_destrule_subsets": 2,
    "pilot_conflict_inbound_listener": 1,
    "pilot_conflict_outbound_listener_tcp_over_current_tcp": 1,
    "pilot_vservice_dup_domain": 2,
    "pilot_dns_cluster_without_endpoints": 1,
    "pilot_eds_no_instances": 2,
    "pilot_no_ip": 1,
    "pilot_endpoint_not_ready": 1,
    "endpoint_no_pod": 1,
    "pilot_k8s_endpoints_pending_pod": 1,
    'istiod_managed_clusters{cluster_type="local"}': 0,
    'istiod_managed_clusters{cluster_type="remote"}': 0,
}


async def read(plane: Plane) -> Mapping[str, float]:
    """The metrics as Prometheus reads them."""
    _, text = await plane.get("/metrics")
    pairs = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


async def until(plane: Plane, wanted: Mapping[str, float]) -> None:
    """Wait until they tell this."""
    found: dict[str, float | None] = {}
    for _ in range(1200):
        told = await read(plane)
        found = {name: told.get(name) for name in wanted}
        if found == wanted:
            return
        await asyncio.sleep(0.05)
    assert found == wanted


def delta(before: Mapping[str, float], after: Mapping[str, float], *names: str) -> dict[str, float]:
    """How much each has grown."""
    return {name: after.get(name, 0.0) - before.get(name, 0.0) for name in names}


def sidecar(plane: Plane, name: str, ip: str, **labels: str) -> adsclient.Client:
    node = adsclient.node(name, "shop", ip=ip, CLUSTER_ID="Kubernetes", LABELS=labels, INTERCEPTION_MODE="REDIRECT")
    return adsclient.Client(plane.target("--grpcAddr"), node=node)


async def converse(client: adsclient.Client) -> None:
    """Subscribe as an Envoy does."""
    await client.subscribe(CLUSTER)
    clusters = await client.read_acked()
    eds = [name for name in clusters.names if name.startswith("outbound") and "example" not in name]
    await client.subscribe(ENDPOINT, *eds)
    await client.read_acked()
    await client.subscribe(LISTENER)
    await client.read_acked()
    await client.subscribe(ROUTE, "80")
    await client.read_acked()


async def test_the_state_of_the_mesh_is_counted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mesh.yaml").write_text(MESH)
    async with control_plane(tmp_path) as plane:
        assert plane.control_plane.inputs.findings == ()
        none = await read(plane)
        assert {name: none[name] for name in STATE if "conflict" in name or "instances" in name} == {
            "pilot_conflict_inbound_listener": 0,
            "pilot_conflict_outbound_listener_tcp_over_current_tcp": 0,
            "pilot_eds_no_instances": 0,
        }
        async with (
            sidecar(plane, "cart-0", "10.0.0.1", app="cart") as cart,
            sidecar(plane, "alone-0", "10.0.0.7") as alone,
        ):
            await converse(cart)
            await converse(alone)
            await until(plane, STATE)
            (tmp_path / "config" / "mesh.yaml").write_text(
                SERVICE.format(name="web", day=1, app="x", port="http", number=80)
            )
            wanted = {name: 0.0 for name in STATE} | {
                "pilot_services": 1,
                "pilot_eds_no_instances": 1,
                "pilot_no_ip": 2,
            }
            await until(plane, wanted)


@pytest.mark.parametrize("kind", ["Service", "VirtualService"])
async def test_events_are_counted_apart_for_registry_and_configuration(tmp_path: pathlib.Path, kind: str) -> None:
    (tmp_path / "config").mkdir()
    metric, label, update = {
        "Service": ("pilot_k8s_reg_events", "Services", "svc"),
        "VirtualService": ("pilot_k8s_cfg_events", "VirtualService", "config"),
    }[kind]
    spec = {
        "Service": "{ports: [{name: http, port: %d}]}",
        "VirtualService": "{hosts: [a], http: [{timeout: %ds, route: [{destination: {host: a}}]}]}",
    }[kind]
    api = "v1" if kind == "Service" else "networking.istio.io/v1"
    names = [f'{metric}{{event="{event}",type="{label}"}}' for event in ("add", "update", "delete")]
    updates = [f'pilot_inbound_updates{{type="{word}"}}' for word in ("svc", "svcdelete", "config", "eds")]
    file = tmp_path / "config" / "a.yaml"
    async with control_plane(tmp_path) as plane:
        before = await read(plane)
        for number in (80, 81):
            count = plane.control_plane.discovery.pusher.count
            spec_text = spec % number
            file.write_text(
                f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a, namespace: b}}\nspec: {spec_text}\n"
            )
            await eventually(lambda count=count: plane.control_plane.discovery.pusher.count > count)
        count = plane.control_plane.discovery.pusher.count
        file.unlink()
        await eventually(lambda: plane.control_plane.discovery.pusher.count > count)
        after = await read(plane)
    assert list(delta(before, after, *names).values()) == [1, 1, 1]
    gone = "svcdelete" if kind == "Service" else "config"
    counted = {word: 0.0 for word in ("svc", "svcdelete", "config", "eds")}
    counted[update] += 2
    counted[gone] += 1
    assert dict(zip(counted, delta(before, after, *updates).values(), strict=True)) == counted


async def test_a_stream_is_counted_push_by_push(tmp_path: pathlib.Path) -> None:
    (tmp_path / "config").mkdir()
    mesh = tmp_path / "config" / "mesh.yaml"
    mesh.write_text(MESH)
    async with control_plane(tmp_path) as plane, sidecar(plane, "cart-0", "10.0.0.1", app="cart") as client:
        sent, of_routes = "pilot_xds_send_time_count", 'pilot_xds_pushes{type="rds"}'
        start = await read(plane)
        await converse(client)
        # A response is counted when it was handed over, which a client may see first.
        await until(plane, {sent: start.get(sent, 0) + 4, of_routes: start.get(of_routes, 0) + 1})
        before = await read(plane)
        mesh.write_text(MESH.replace("hosts: [web], http: [{route:", "hosts: [web], http: [{timeout: 3s, route:"))
        answer = await client.read()
        assert answer.type_url == ROUTE
        await client.nack(answer, "no")
        rejects = 'pilot_total_xds_rejects{type="rds"}'
        await eventually(lambda: plane.control_plane.discovery.pusher.history.costs.total.pushes == 1)

        await until(plane, {rejects: before.get(rejects, 0) + 1})
        after = await read(plane)
    names = (
        'pilot_xds_pushes{type="rds"}',
        'pilot_xds_pushes{type="cds"}',
        'pilot_push_triggers{type="config"}',
        "pilot_proxy_convergence_time_count",
        "pilot_proxy_queue_time_count",
        "pilot_debounce_time_count",
        "pilot_xds_send_time_count",
        'pilot_xds_push_time_count{type="rds"}',
        'pilot_xds_config_size_bytes_sum{type="rds"}',
        'pilot_xds_config_size_bytes_count{type="rds"}',
        rejects,
        'mizzen_caused_pushes{change="updated",kind="VirtualService",proxy="sidecar"}',
        'mizzen_caused_bytes{change="updated",kind="VirtualService",proxy="sidecar"}',
        'xds_cache_reads{type="miss"}',
    )
    assert list(delta(before, after, *names).values()) == [1, 0, 1, 1, 1, 1, 1, 1, answer.size, 1, 1, 1, answer.size, 1]
    assert after['pilot_xds{version="1.32.0"}'] == 1
    assert after['pilot_xds_rds_reject{err="Internal",node="sidecar~10.0.0.1~cart-0.shop~shop.svc.cluster.local"}'] == 1
