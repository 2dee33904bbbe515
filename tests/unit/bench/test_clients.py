"""What simulated sidecars understand of responses, and what they share."""

import pytest

from bench.clients import CLUSTER, ENDPOINT, LISTENER, ROUTE, Held, Reader, Sidecar
from mizzen import protos

_discovery_v3 = protos.package("envoy.service.discovery.v3")
_cluster_v3 = protos.package("envoy.config.cluster.v3")


def a_cluster(name: str, service_name: str = ""):
    return _cluster_v3.Cluster(name=name, type="EDS", eds_cluster_config={"service_name": service_name})


def a_response(nonce: str, *clusters, removed=(), version: str = "1", nonce_last: bool = False) -> bytes:
    """Servers may put the nonce anywhere; protobuf allows any order of fields."""
    response = _discovery_v3.DeltaDiscoveryResponse(type_url=CLUSTER, removed_resources=removed)
    for cluster in clusters:
        response.resources.add(name=cluster.name, version=version).resource.CopyFrom(protos.pack(cluster))
    if nonce_last:
        return response.SerializeToString() + protos.length_delimited(5, nonce.encode())
    response.nonce = nonce
    return response.SerializeToString()


@pytest.mark.parametrize("nonce_last", [False, True])
def test_responses_that_differ_in_their_nonce_alone_are_looked_into_once(nonce_last):
    reader = Reader()
    first, nonce = reader.read(a_response("n-1", a_cluster("a"), removed=["b"], nonce_last=nonce_last))
    assert (first.resources, first.removed, nonce) == ({"a": ("1", frozenset({"a"}))}, ("b",), "n-1")
    for nonce in ("n-2", "n-3", "n-4"):
        again, found = reader.read(a_response(nonce, a_cluster("a"), removed=["b"], nonce_last=nonce_last))
        assert (again, found) == (first, nonce)
    longer, nonce = reader.read(a_response("n-10", a_cluster("a"), removed=["b"], nonce_last=nonce_last))
    assert (longer.resources, nonce) == (first.resources, "n-10")


def test_responses_of_one_length_are_told_apart():
    reader = Reader()
    one, _ = reader.read(a_response("n-1", a_cluster("a")))
    other, nonce = reader.read(a_response("n-2", a_cluster("b")))
    assert (set(other.resources), nonce) == ({"b"}, "n-2")
    removed, _ = reader.read(a_response("n-3", a_cluster("a"), version="2"))
    assert removed.resources["a"][0] == "2"
    assert reader.read(a_response("n-4", a_cluster("a")))[0] is one


def test_equal_histories_are_one_and_ask_for_the_same():
    reader = Reader()
    first, _ = reader.read(a_response("1", a_cluster("a"), a_cluster("b", "c")))
    second, _ = reader.read(a_response("2", a_cluster("a", "d"), removed=["b"]))
    held = reader.nothing.after(first)
    assert held.asked == {"a", "c"}
    assert held is reader.nothing.after(first)
    assert held.after(second) is held.after(second)
    assert held.after(second).asked == {"d"}
    assert held.after(second).versions == {"a": "1"}
    assert held.without(frozenset({"a"})).versions == {"b": "1"}
    assert held.versions == {"a": "1", "b": "1"}, "what is held is never changed"


def test_versions_are_told_as_a_request_has_them():
    request = _discovery_v3.DeltaDiscoveryRequest.FromString(Held({"a": ("7", frozenset())}).encode_versions())
    assert dict(request.initial_resource_versions) == {"a": "7"}


class Call:
    """A stream that takes whatever is written."""

    async def write(self, _: bytes) -> None:
        pass


async def test_what_comes_after_nobody_asks_for_it_any_more_is_let_go():
    sidecar = Sidecar("nowhere", b"", Reader())
    sidecar._call = Call()
    sidecar.asked[ENDPOINT] = frozenset({"a"})
    response = _discovery_v3.DeltaDiscoveryResponse(type_url=ENDPOINT, nonce="1")
    for name in ("a", "b"):
        response.resources.add(name=name, version="1")
    await sidecar._take(response.SerializeToString())
    assert sidecar.held[ENDPOINT].versions == {"a": "1"}


def test_listeners_ask_for_the_routes_of_every_chain():
    hcm = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
    listener_v3 = protos.package("envoy.config.listener.v3")

    def chain(route: str):
        config = protos.pack(hcm.HttpConnectionManager(rds={"route_config_name": route}))
        return {"filters": [{"name": "http", "typed_config": config}]}

    listener = listener_v3.Listener(name="l", filter_chains=[chain("80"), {}], default_filter_chain=chain("90"))
    response = _discovery_v3.DeltaDiscoveryResponse(type_url=LISTENER, nonce="1")
    response.resources.add(name="l", version="1").resource.CopyFrom(protos.pack(listener))
    response.resources.add(name="m", version="1").resource.CopyFrom(protos.pack(listener_v3.Listener(name="m")))
    contents, _ = Reader().read(response.SerializeToString())
    assert contents.resources == {"l": ("1", frozenset({"80", "90"})), "m": ("1", frozenset())}
    routes = _discovery_v3.DeltaDiscoveryResponse(type_url=ROUTE, nonce="1")
    routes.resources.add(name="80", version="1")
    assert Reader().read(routes.SerializeToString())[0].resources == {"80": ("1", frozenset())}
