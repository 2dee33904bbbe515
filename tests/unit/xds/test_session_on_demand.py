"""A session with a client on demand: clusters follow its virtual hosts, and those its routes.

In this mesh every virtual host `PORT/HOST` needs the cluster `HOST`, whose endpoints have its name too.
"""

import pytest
from ads_model import Said, resource, say_due

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST, ResourceSet
from mizzen.xds.requests import Request
from mizzen.xds.responses import Responses
from mizzen.xds.session import DeltaSession
from mizzen.xds.watch import Watch

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST)


class Hosts:
    """A mesh that has every host that is asked for; `clusters` says to which one it routes now."""

    def __init__(self) -> None:
        self.clusters: dict[str, str] = {}

    def answer(self, watch: Watch) -> ResourceSet:
        asked = {name for names in watch.asks for name in names or ()}
        found = {name: "0" for name in asked}
        if watch.type_url == LISTENER:
            found = {"listener": "0"}
        elif watch.type_url == CLUSTER:
            used = {self.cluster(name) for name in asked if "/" in name} | {name for name in asked if "/" not in name}
            found = dict.fromkeys(used, "0") | {"base": "0"}
        elif watch.type_url == VIRTUAL_HOST:
            found = {f"{name}/_": "0" for name in asked if "/" not in name}
            found |= {name: self.cluster(name) for name in asked if "/" in name}
        return ResourceSet(watch.type_url, [resource(watch.type_url, name, text) for name, text in found.items()])

    def cluster(self, host: str) -> str:
        return self.clusters.get(host, host.partition("/")[2])


@pytest.fixture
def mesh():
    return Hosts()


@pytest.fixture
def session():
    return DeltaSession(Responses(), TYPES, "t/", on_demand=True)


def ask(session: DeltaSession, type_url: str, *names: str, **more) -> None:
    session.receive(Request(type_url=type_url, names=names, **more))


def ack(session: DeltaSession, said: Said) -> None:
    session.receive(Request(type_url=said.type_url, nonce=said.nonce))


def say(session: DeltaSession, mesh: Hosts) -> list[str]:
    return [said.short for said in say_due(session, mesh)]


def accept_all(session: DeltaSession, mesh: Hosts) -> list[str]:
    """Say what is due and accept it, until nothing is left to say."""
    told = []
    while said := say_due(session, mesh):
        for each in said:
            told.append(each.short)
            ack(session, each)
    return told


def settle(session: DeltaSession, mesh: Hosts) -> None:
    """An Envoy with one port, of which it knows no host yet."""
    ask(session, CLUSTER)
    accept_all(session, mesh)
    ask(session, ENDPOINT, "base")
    ask(session, LISTENER)
    accept_all(session, mesh)
    ask(session, ROUTE, "80")
    assert accept_all(session, mesh) == ["rds 80"]
    ask(session, VIRTUAL_HOST)
    assert accept_all(session, mesh) == ["vhds 80/_"]


def test_a_host_is_answered_once_its_cluster_is_at_work(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/cart")
    (clusters,) = say_due(session, mesh)
    assert clusters.short == "cds cart"
    ask(session, ENDPOINT, "cart")
    assert say(session, mesh) == ["eds cart"]
    ack(session, clusters)
    assert say(session, mesh) == ["vhds 80/cart"]


def test_a_host_whose_cluster_is_there_is_answered_at_once(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/base")
    assert say(session, mesh) == ["vhds 80/base"]


def test_a_host_that_is_asked_for_again_is_answered_again(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/cart")
    accept_all(session, mesh)
    ask(session, VIRTUAL_HOST, "80/cart")
    assert accept_all(session, mesh) == ["vhds 80/cart"]


def test_the_wait_for_a_cluster_is_bounded(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/cart")
    assert say(session, mesh) == ["cds cart"]
    assert session.waiting
    session.stop_waiting()
    assert say(session, mesh) == ["vhds 80/cart"]


def test_a_host_that_moves_has_its_new_cluster_first_and_loses_the_old_one_last(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/cart")
    accept_all(session, mesh)
    mesh.clusters["80/cart"] = "other"
    session.mark((CLUSTER, VIRTUAL_HOST))
    assert accept_all(session, mesh) == ["cds other", "vhds 80/cart", "cds -cart"]


def test_a_new_route_is_followed_by_a_first_host(session, mesh):
    settle(session, mesh)
    ask(session, ROUTE, "8080")
    assert accept_all(session, mesh) == ["rds 8080", "vhds 8080/_"]


def test_a_route_that_is_sent_again_is_followed_by_all_its_hosts(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/cart")
    accept_all(session, mesh)
    ask(session, ROUTE, "80")
    assert accept_all(session, mesh) == ["rds 80", "vhds 80/_ 80/cart"]


def test_who_comes_back_keeps_its_clusters_until_it_has_named_its_hosts(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/cart", "80/gone")
    accept_all(session, mesh)
    versions = {
        type_url: {each.name: each.version for each in session.watches[type_url].sent}
        for type_url in (CLUSTER, VIRTUAL_HOST)
    }
    again = DeltaSession(Responses(), TYPES, "u/", on_demand=True)
    ask(again, CLUSTER, initial_versions=versions[CLUSTER])
    assert accept_all(again, mesh) == []
    ask(again, ROUTE, "80")
    ask(again, VIRTUAL_HOST, "*", "80/cart", initial_versions=versions[VIRTUAL_HOST])
    assert accept_all(again, mesh) == ["rds 80", "vhds 80/_ 80/cart -80/gone", "cds -gone"]


def test_others_are_asked_for_everything():
    plain = DeltaSession(Responses(), TYPES, "t/")
    ask(plain, CLUSTER)
    ask(plain, ROUTE, "80")
    assert plain.watches[CLUSTER].asks == (None,)
