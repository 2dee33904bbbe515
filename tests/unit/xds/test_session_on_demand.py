"""A session with a client on demand: clusters follow its virtual hosts, and those its routes.

In this mesh every virtual host `PORT/HOST` needs the cluster `HOST`, whose endpoints have its name too.
"""

from collections import deque

import pytest
from ads_model import Said, resource, say_due
from hypothesis import given
from hypothesis import strategies as st

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST, ResourceSet
from mizzen.xds.delta import DeltaSession
from mizzen.xds.requests import Rejection, Request
from mizzen.xds.responses import Responses
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


def test_a_host_that_is_rejected_takes_no_other_along(session, mesh):
    settle(session, mesh)
    ask(session, VIRTUAL_HOST, "80/base")
    (bad,) = say_due(session, mesh)
    session.receive(Request(type_url=VIRTUAL_HOST, nonce=bad.nonce, rejection=Rejection(code=13, message="no")))
    mesh.clusters["80/good"] = "base"
    ask(session, VIRTUAL_HOST, "80/good")
    assert accept_all(session, mesh) == ["vhds 80/good"]
    assert session.watches[VIRTUAL_HOST].rejection is not None


def test_others_are_asked_for_everything():
    plain = DeltaSession(Responses(), TYPES, "t/")
    ask(plain, CLUSTER)
    ask(plain, ROUTE, "80")
    assert plain.watches[CLUSTER].asks == (None,)


# -- any order of events ----------------------------------------------------------------------------------------------


class Envoy:
    """A client as Envoy is: it acknowledges new clusters once their endpoints came, and never routes into the void."""

    def __init__(self, mesh: Hosts) -> None:
        self.mesh = mesh
        self.held: dict[str, dict[str, str]] = {type_url: {} for type_url in TYPES}
        self.asked: set[str] = set()
        self.assigned: set[str] = set()
        self.working: set[str] = set()
        self.connect()

    def connect(self) -> None:
        """A new stream: what was under way is lost."""
        self.session = DeltaSession(Responses(), TYPES, "t/", on_demand=True)
        self.to_server: deque[Request] = deque()
        self.to_client: deque[Said] = deque()
        self.unready: list[tuple[str, set[str]]] = []
        endpoints = set(self.held[CLUSTER])
        for type_url, names in ((CLUSTER, set()), (ENDPOINT, endpoints), (LISTENER, set()), (ROUTE, {"80"})):
            self.send(type_url, *names, initial_versions=self.versions(type_url))
        star = {"*"} if self.asked else set()
        self.send(VIRTUAL_HOST, *star, *self.asked, initial_versions=self.versions(VIRTUAL_HOST))

    def versions(self, type_url: str) -> dict[str, str]:
        held = self.held[type_url].items()
        return {name: resource(type_url, name, text).version for name, text in held}

    def send(self, type_url: str, *names: str, **more) -> None:
        self.to_server.append(Request(type_url=type_url, names=tuple(names), **more))

    def ask(self, host: str) -> None:
        self.asked.add(host)
        self.send(VIRTUAL_HOST, host)

    def serve(self) -> None:
        self.to_client.extend(say_due(self.session, self.mesh))

    def take(self) -> None:
        """One response."""
        if not self.to_client:
            return
        said = self.to_client.popleft()
        held = self.held[said.type_url]
        new = said.contents.keys() - held.keys()
        held.update(said.contents)
        for name in said.removed:
            held.pop(name, None)
        if said.type_url == CLUSTER:
            self.assigned -= said.contents.keys()
            self.working -= set(said.removed)
            if new or said.removed:
                self.to_server.append(Request(type_url=ENDPOINT, names=tuple(new), unsubscribe=tuple(said.removed)))
            self.unready.append((said.nonce, set(said.contents)))
        elif said.type_url == ENDPOINT:
            self.assigned |= said.contents.keys()
            self.working |= said.contents.keys() & self.held[CLUSTER].keys()
            self.send(ENDPOINT, nonce=said.nonce)
        else:
            self.send(said.type_url, nonce=said.nonce)
        while self.unready and self.unready[0][1] & self.held[CLUSTER].keys() <= self.assigned:
            self.send(CLUSTER, nonce=self.unready.pop(0)[0])
        missing = {text for name, text in self.held[VIRTUAL_HOST].items() if name != "80/_"} - self.working
        assert not missing, f"routes lead to {missing}"

    def settle(self) -> None:
        while self.to_server or self.to_client or self.session.due or self.session.ready:
            self.hear()
            self.serve()
            self.take()

    def hear(self) -> None:
        if self.to_server:
            self.session.receive(self.to_server.popleft())


HOSTS = ("80/a", "80/b", "80/c")
EVENTS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(HOSTS)),
    st.tuples(st.just("move"), st.sampled_from(HOSTS), st.sampled_from("abcd")),
    *(st.tuples(st.just(each)) for each in ("hear", "serve", "take", "settle", "connect")),
)


@given(st.lists(EVENTS, max_size=40))
def test_no_route_ever_leads_to_a_cluster_that_is_not_there(events):
    mesh = Hosts()
    envoy = Envoy(mesh)
    for event, *arguments in events:
        if event == "move":
            mesh.clusters[arguments[0]] = arguments[1]
            envoy.session.mark((CLUSTER, VIRTUAL_HOST))
        else:
            getattr(envoy, event)(*arguments)
    envoy.settle()
    routed = {name: mesh.cluster(name) for name in envoy.asked}
    assert envoy.held[VIRTUAL_HOST] == {"80/_": "0", **routed}
    assert envoy.held[CLUSTER].keys() == {"base", *routed.values()}
