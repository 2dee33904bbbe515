"""The server over saved resources: each subscription is answered once, and nothing leaves Envoy waiting."""

from mizzen import protos
from mizzen.agent.relay.saved import CLUSTER, LISTENER, SavedResources

ENDPOINT = protos.TYPE_PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment"
VIRTUAL_HOST = protos.TYPE_PREFIX + "envoy.config.route.v3.VirtualHost"

_discovery = protos.package("envoy.service.discovery.v3")


def saved(**types):
    def load(type_url: str):
        names = types.get(type_url.rpartition(".")[2], ())
        return {
            name: protos.encode(_discovery.Resource(name=name, version=f"v-{name}", resource={"type_url": type_url}))
            for name in names
        }

    return SavedResources(load)


def ask(server: SavedResources, type_url: str, *names: str, **fields):
    request = _discovery.DeltaDiscoveryRequest(type_url=type_url, resource_names_subscribe=names, **fields)
    answer = server.answer(request)
    return answer and _discovery.DeltaDiscoveryResponse.FromString(answer)


def test_wildcard_is_answered_with_all_resources_of_its_type() -> None:
    server = saved(Cluster=["b", "a"])
    answer = ask(server, CLUSTER)
    assert [(resource.name, resource.version) for resource in answer.resources] == [("a", "v-a"), ("b", "v-b")]
    assert (answer.type_url, answer.nonce != "") == (CLUSTER, True)
    assert ask(server, CLUSTER, response_nonce=answer.nonce) is None


def test_virtual_hosts_are_all_told_to_who_knows_none_yet() -> None:
    answer = ask(saved(VirtualHost=["80/_", "80/cart"]), VIRTUAL_HOST)
    assert [resource.name for resource in answer.resources] == ["80/_", "80/cart"]


def test_wildcard_without_resources_is_answered_so_that_envoy_goes_on() -> None:
    answer = ask(saved(), LISTENER)
    assert list(answer.resources) == []


def test_names_are_answered_with_theirs_and_unknown_ones_as_removed() -> None:
    server = saved(ClusterLoadAssignment=["a", "b"])
    answer = ask(server, ENDPOINT, "a", "gone")
    assert [resource.name for resource in answer.resources] == ["a"]
    assert list(answer.removed_resources) == ["gone"]
    assert [resource.name for resource in ask(server, ENDPOINT, "b").resources] == ["b"]


def test_explicit_wildcard_may_come_with_names() -> None:
    answer = ask(saved(Cluster=["a"]), CLUSTER, "*", "on-demand")
    assert [resource.name for resource in answer.resources] == ["a"]
    assert list(answer.removed_resources) == ["on-demand"]


def test_nothing_asked_is_nothing_answered() -> None:
    assert ask(saved(ClusterLoadAssignment=["a"]), ENDPOINT) is None
    assert ask(saved(ClusterLoadAssignment=["a"]), ENDPOINT, resource_names_unsubscribe=["a"]) is None
