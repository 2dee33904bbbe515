"""A proxy's resources as a tree, branch by branch."""

from types import SimpleNamespace
from typing import Any

import pytest
from crowds import member
from meshes import mesh_of, proxy
from ui_mesh import RULES, SERVICES, SUBSET

from mizzen import protos
from mizzen.compile import snapshot
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceSet, encode_resource
from mizzen.control.debug.console import PageError, Query
from mizzen.control.ui import chain
from mizzen.control.ui.chain import Held, build_branch, find, parse_place
from mizzen.control.ui.paging import Window
from mizzen.xds.requests import Rejection

HOST = "cart.shop.svc.cluster.local:8080"
TCP = """
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: 10.96.0.9, ports: [{name: tcp, port: 5432}]}
"""


@pytest.fixture(scope="module")
def held() -> Held:
    db = mesh_of(SERVICES, RULES, TCP)
    who = proxy("shop", "front-0", "10.0.0.1", dialect="envoy")
    sets = {url: snapshot.resources(db, who, url, None) for url in (CLUSTER, LISTENER)}
    sets[ROUTE] = snapshot.resources(db, who, ROUTE, frozenset(("8080",)))
    names = frozenset(name for name in sets[CLUSTER].names if name.startswith("outbound|"))
    sets[ENDPOINT] = snapshot.resources(db, who, ENDPOINT, names)
    return Held(sets=sets, refused={(CLUSTER, SUBSET): "Internal:no"})


def branch(held: Held, *place: str, **window: Any) -> list[dict[str, Any]]:
    """The nodes below a place."""
    nodes: list[dict[str, Any]] = build_branch(held, place, Window(**window))["nodes"]
    return nodes


def facts(node: dict[str, Any]) -> dict[str, str]:
    return dict(node["facts"])


def test_listeners_that_catch_everything_come_first_then_ports(held: Held) -> None:
    titles = [node["title"] for node in branch(held)]
    assert titles == ["virtualOutbound", "virtualInbound", "10.96.0.9_5432", "0.0.0.0_8080"]


def test_way_of_a_request_leads_to_its_endpoint(held: Held) -> None:
    (http, *_) = branch(held, "listener", "0.0.0.0_8080")
    (routes,) = branch(held, *http["place"])
    assert (routes["kind"], routes["title"]) == ("routes", "8080")
    host = next(node for node in branch(held, *routes["place"]) if node["title"] == HOST)
    testers, everybody = branch(held, *host["place"])
    assert testers["title"] == '/*; header x-tester {"stringMatch":{"exact":"yes"}}'
    assert testers["object"] == "VirtualService shop/cart"
    assert facts(everybody)["timeout"] == "5s"
    first, second = branch(held, *everybody["place"])
    assert (facts(first)["weight"], facts(second)["weight"]) == ("90", "10")
    assert second["object"] == "DestinationRule shop/cart"
    assert second["error"] == "Internal:no"
    (cluster,) = branch(held, *testers["place"])
    assert cluster["title"] == SUBSET
    assert "weight" not in facts(cluster)


def test_tcp_leads_straight_to_its_cluster(held: Held) -> None:
    (only,) = branch(held, "listener", "10.96.0.9_5432")
    (cluster,) = branch(held, *only["place"])
    assert cluster["title"] == "outbound|5432||db.shop.svc.cluster.local"


def test_inline_routes_are_walked_like_others(held: Held) -> None:
    http = next(node for node in branch(held, "listener", "virtualInbound") if "HTTP filters" in facts(node))
    (host,) = branch(held, *http["place"])
    (route,) = branch(held, *host["place"])
    assert facts(route)["cluster"] == "InboundPassthroughCluster"
    (cluster,) = branch(held, *route["place"])
    (endpoint,) = branch(held, *cluster["place"])
    assert endpoint["title"] == "the address that was asked for"


def test_every_branch_that_is_offered_can_be_opened(held: Held) -> None:
    waiting, opened = [node["place"] for node in branch(held)], 0
    while waiting:
        waiting += [node["place"] for node in branch(held, *waiting.pop()) if "place" in node]
        opened += 1
    assert opened > 30


def test_routes_and_endpoints_that_were_not_sent_say_so(held: Held) -> None:
    bare = Held(sets={LISTENER: held.sets[LISTENER], CLUSTER: held.sets[CLUSTER]})
    (http, *_) = branch(bare, "listener", "0.0.0.0_8080")
    (routes,) = branch(bare, *http["place"])
    assert "place" not in routes
    assert "not sent" in facts(routes)
    assert branch(bare, "cluster", SUBSET)[0]["title"] == "endpoints were not sent"


def test_cluster_that_is_missing_says_so(held: Held) -> None:
    bare = Held(sets={LISTENER: held.sets[LISTENER]})
    (only,) = branch(bare, "listener", "10.96.0.9_5432")
    (cluster,) = branch(bare, *only["place"])
    assert "missing" in facts(cluster)


def test_endpoints_come_in_windows() -> None:
    endpoint_v3, cluster_v3 = protos.package("envoy.config.endpoint.v3"), protos.package("envoy.config.cluster.v3")
    assignment = endpoint_v3.ClusterLoadAssignment(cluster_name="big")
    group = assignment.endpoints.add()
    for number in range(5000):
        socket = group.lb_endpoints.add().endpoint.address.socket_address
        socket.address, socket.port_value = f"10.1.{number // 250}.{number % 250}", 80
    cluster = cluster_v3.Cluster(name="big", type="EDS", eds_cluster_config={})
    big = Held(
        sets={
            CLUSTER: ResourceSet(CLUSTER, [encode_resource("big", cluster)]),
            ENDPOINT: ResourceSet(ENDPOINT, [encode_resource("big", assignment)]),
        }
    )
    found = build_branch(big, ("cluster", "big"), Window(offset=4990))
    assert (found["total"], len(found["nodes"])) == (5000, 10)
    assert found["nodes"][-1]["title"] == "10.1.19.249:80"
    assert len(branch(big, "cluster", "big")) == 50


def test_filter_keeps_listeners_by_name_and_port(held: Held) -> None:
    assert [node["title"] for node in branch(held, words=("5432",))] == ["10.96.0.9_5432"]


@pytest.mark.parametrize(
    ("place", "status"),
    [
        (("listener", "gone"), 404),
        (("chain", "0.0.0.0_8080", "99"), 404),
        (("chain", "0.0.0.0_8080", "-1"), 404),
        (("host", "rds", "8080", "", "gone"), 404),
        (("host", "inline", "10.96.0.9_5432", "0", "x"), 404),
        (("route", "rds", "8080", "", HOST, "x"), 404),
        (("cluster", "gone"), 404),
        (("secret", "default"), 400),
        (("listener",), 400),
    ],
)
def test_place_that_is_not_there_is_refused(held: Held, place: tuple[str, ...], status: int) -> None:
    with pytest.raises(PageError) as refused:
        branch(held, *place)
    assert refused.value.status == status


@pytest.mark.parametrize(
    "text", ["x", "{}", "[1]", '["a",["b"]]', str(["a"] * 9).replace("'", '"'), f'["{"x" * 1001}"]']
)
def test_place_is_a_short_list_of_names(text: str) -> None:
    with pytest.raises(PageError):
        parse_place(text)


def test_proxy_is_found_by_its_whole_name_before_any_other_that_contains_it() -> None:
    def client(name: str, number: int) -> Any:
        return SimpleNamespace(
            id=f"{name}-{number}", proxy=SimpleNamespace(id=f"sidecar~1~{name}~d", namespace=name.partition(".")[2])
        )

    clients: Any = [client("a-cart.shop", 1), client("cart.shop", 10), client("cart.shop", 1)]

    def found(asked: str, namespace: str = "") -> str:
        return find(clients, Query(page="chain", parameters={"proxyID": asked}, namespace=namespace)).id

    assert found("cart.shop") == "cart.shop-10"
    assert found("cart.shop-1") == "cart.shop-1"
    assert found("a-c") == "a-cart.shop-1"
    with pytest.raises(PageError):
        found("cart.shop", "other")


def test_refusals_are_those_of_the_resources_that_the_proxy_names() -> None:
    refusing = member(0, **{CLUSTER: Rejection(code=13, message="no")})
    refusing.session.watches[CLUSTER].culprits = ("a", "b")
    assert chain.read_held(refusing).refused == {(CLUSTER, "a"): "Internal:no", (CLUSTER, "b"): "Internal:no"}
