"""A proxy on demand is not said to lack what it would ask for."""

from typing import Any

import msgspec
import pytest
from traced_mesh import SHOP, ask, world_of

from mizzen.compile import resource, snapshot
from mizzen.diagnose.snapshot import print_set
from mizzen.diagnose.trace import world_dumps, world_objects
from mizzen.diagnose.trace.world import Holdings, World
from mizzen.model.proxy import parse_node

NODE = {
    "id": "sidecar~10.0.0.1~client.web~web.svc.cluster.local",
    "metadata": {
        "NAMESPACE": "web",
        "MIZZEN_DIALECT": "envoy",
        "MIZZEN_ON_DEMAND": "true",
        "SERVICE_ACCOUNT": "client",
    },
    "userAgentBuildVersion": {"version": {"majorNumber": 1, "minorNumber": 40}},
}


@pytest.fixture
def objects() -> World:
    return world_of(SHOP)


def holdings(objects: World, *hosts: str) -> tuple[Holdings, Holdings]:
    """What the client holds that has asked for these hosts, and all that it could."""
    who = msgspec.structs.replace(parse_node(NODE), ip_addresses=objects.find("client.web").addresses)
    told = world_objects.compile_holdings(objects.db, who)

    def printed(kind: str, *names: str) -> dict[str, Any]:
        return dict(print_set(snapshot.resources(objects.db, who, kind, frozenset(names))))

    bare = printed(resource.ROUTE, *told.routes)
    own = list(printed(resource.VIRTUAL_HOST, "80", *hosts).values())
    clusters = printed(resource.CLUSTER, *hosts)
    actual = msgspec.structs.replace(
        told,
        routes={**bare, "80": {**bare["80"], "virtualHosts": own}},
        clusters=clusters,
        endpoints={name: each for name, each in told.endpoints.items() if name in clusters},
    )
    return actual, told


def trace(objects: World, held: Holdings, url: str) -> Any:
    return ask(objects.held_by(lambda pod: held if pod.name == "client" else objects.holdings(pod)), url)


def on_demand(found: Any) -> list[str]:
    return [value for step in found.steps for fact, value in step.facts if fact == "on demand"]


def protocols(found: Any) -> list[str]:
    return [value for step in found.steps for fact, value in step.facts if fact == "protocols"]


def test_a_host_that_is_not_held_would_be_asked_for(objects):
    actual, told = holdings(objects)
    assert not any("server" in name for name in actual.clusters)
    found = trace(objects, world_dumps.complete(actual, told), "http://server/")
    assert (found.outcome, found.status, found.certain) == ("delivered", 200, True)
    assert on_demand(found) == ["not held yet: the request waits until it was asked for"]


@pytest.mark.parametrize("hosts", [(), ("80/server",)])
def test_the_words_of_the_mesh_are_offered_as_by_any_sidecar(objects, hosts):
    actual, told = holdings(objects, *hosts)
    found = trace(objects, world_dumps.complete(actual, told), "http://server/")
    assert protocols(found) == protocols(ask(objects, "http://server/"))
    assert "istio-http/1.1, istio, http/1.1" in protocols(found)


def test_a_host_that_is_held_is_said_to_be(objects):
    actual, told = holdings(objects, "80/server")
    found = trace(objects, world_dumps.complete(actual, told), "http://server/")
    assert (found.status, on_demand(found)) == (200, ["held"])


def test_from_a_dump_alone_the_verdict_hangs_on_the_control_plane(objects):
    found = trace(objects, holdings(objects)[0], "http://server/")
    assert not found.certain
    assert any("control plane answers" in each for each in found.depends_on)


def test_what_is_not_held_is_no_difference(objects):
    actual, told = holdings(objects)
    assert world_dumps.differences(told, actual) != ()
    assert world_dumps.differences(told, world_dumps.complete(actual, told)) == ()


def test_other_proxies_are_as_they_are(objects):
    held = objects.holdings(objects.find("client.web"))
    assert world_dumps.complete(held, held) is held
