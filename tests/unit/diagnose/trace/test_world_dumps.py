"""Worlds made of dumps: the same walker, without any object."""

import json
from typing import Any

from traced_mesh import SHOP, ask, world_of

from mizzen.diagnose import dump
from mizzen.diagnose.trace import world_dumps
from mizzen.diagnose.trace.world import Holdings, Workload, World

_ADMIN = "type.googleapis.com/envoy.admin.v3."


def dumped(world: World, pod: Workload) -> dump.Dump:
    """What a control plane's dump of the pod's proxy would be."""
    held = world.holdings(pod)
    node = {
        "id": f"{pod.proxy}~{pod.addresses[0]}~{pod.reference}~{pod.namespace}.svc.cluster.local",
        "metadata": {
            "NAME": pod.name,
            "NAMESPACE": pod.namespace,
            "INSTANCE_IPS": pod.addresses[0],
            "SERVICE_ACCOUNT": pod.account,
            "LABELS": dict(pod.labels),
            "POD_PORTS": json.dumps([{"name": f"p{port}", "containerPort": port} for port in pod.ports]),
        },
    }
    return dump.Dump(
        (
            {"@type": f"{_ADMIN}BootstrapConfigDump", "bootstrap": {"node": node}},
            section("Clusters", "dynamicActiveClusters", [{"cluster": c} for c in held.clusters.values()]),
            section("Endpoints", "dynamicEndpointConfigs", [{"endpointConfig": e} for e in held.endpoints.values()]),
            section(
                "Listeners", "dynamicListeners", [{"activeState": {"listener": x}} for x in held.listeners.values()]
            ),
            section("Routes", "dynamicRouteConfigs", [{"routeConfig": r} for r in held.routes.values()]),
        )
    )


def section(kind: str, field: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"@type": f"{_ADMIN}{kind}ConfigDump", field: entries}


def test_dumps_come_to_the_same_as_objects():
    objects = world_of(SHOP)
    dumps = world_dumps.of_dumps([dumped(objects, pod) for pod in objects.pods])
    address = objects.db is not None and ask(objects, "http://server/")
    assert address
    (vip,) = (dict(s.facts).get("by") and s.title.rpartition(" ")[2] for s in address.steps if s.link == "name")
    found = ask(dumps, "http://server/", address=str(vip))
    assert (found.outcome, found.status, found.certain) == ("delivered", 200, True)
    assert [s.title for s in found.steps if s.link != "name"] == [s.title for s in address.steps if s.link != "name"]


def test_names_are_not_needed_for_http():
    objects = world_of(SHOP)
    found = ask(world_dumps.of_dumps([dumped(objects, pod) for pod in objects.pods]), "http://server/")
    assert (found.outcome, found.status, found.certain) == ("delivered", 200, True)


def test_who_a_proxy_is_stands_in_its_bootstrap():
    objects = world_of(SHOP)
    pod = objects.find("client.web")
    read = world_dumps.read_workload(dumped(objects, pod))
    assert (read.reference, read.addresses, read.account, read.proxy) == (
        "client.web",
        pod.addresses,
        "client",
        "sidecar",
    )
    assert set(read.ports) == set(pod.ports)


def test_differences_name_resources():
    held = world_of(SHOP)
    told = held.holdings(held.find("client.web"))
    assert world_dumps.differences(told, told) == ()
    name = next(iter(told.clusters))
    without = Holdings(
        clusters={k: v for k, v in told.clusters.items() if k != name},
        listeners=told.listeners,
        routes=told.routes,
        endpoints=told.endpoints,
    )
    assert world_dumps.differences(told, without) == (f"cluster {name} is not in the proxy",)
    changed = {**told.clusters, name: {**told.clusters[name], "connectTimeout": "1s"}}
    other = Holdings(clusters=changed, listeners=told.listeners, routes=told.routes, endpoints=told.endpoints)
    assert world_dumps.differences(told, other) == (f"cluster {name} is not what the control plane says",)
