"""What a session says to what a client says, case by case. The mesh has `a`, `b` and `sentinel` of every type."""

import pytest
from ads_model import SENTINEL, TYPES, Mesh, Said, say_due

from mizzen.compile.resource import CLUSTER, ENDPOINT, EXTENSION, LISTENER, ROUTE
from mizzen.xds.delta import DeltaSession
from mizzen.xds.requests import Rejection, Request
from mizzen.xds.responses import Responses
from mizzen.xds.session import Outcome, Session
from mizzen.xds.sotw import SotwSession
from mizzen.xds.watch import State

NO = Rejection(code=13, message="resource b is bad")


@pytest.fixture
def mesh():
    return Mesh()


@pytest.fixture
def delta():
    return DeltaSession(Responses(), TYPES, "t/")


@pytest.fixture
def sotw():
    return SotwSession(Responses(), TYPES, "t/")


def ask(session: Session, type_url: str, *names: str, **more) -> Outcome:
    return session.receive(Request(type_url=type_url, names=names, **more))


def ack(session: Session, said: Said, *names: str) -> Outcome:
    return ask(session, said.type_url, *names, nonce=said.nonce)


def nack(session: Session, said: Said, *names: str) -> Outcome:
    return ask(session, said.type_url, *names, nonce=said.nonce, rejection=NO)


def shorts(said: list[Said]) -> list[str]:
    return [response.short for response in said]


def change(session: Session, mesh: Mesh, type_url: str, **contents: str | None) -> list[str]:
    """Change resources of one type and say what is due."""
    for name, content in contents.items():
        mesh.set(type_url, name, content)
    session.mark((type_url,))
    return shorts(say_due(session, mesh))


def settled(session: Session, mesh: Mesh) -> None:
    """Subscribe to everything the mesh has, all accepted."""
    for type_url in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
        ask(session, type_url, *(("a", "b", SENTINEL) if type_url in (ENDPOINT, ROUTE) else ()))
    accept_all(session, mesh)


def accept_all(session: Session, mesh: Mesh) -> list[str]:
    """Say what is due and accept it, until nothing is left to say."""
    told = []
    while said := say_due(session, mesh):
        for response in said:
            told.append(response.short)
            watch = session.watches[response.type_url]
            ack(session, response, *(() if session.delta else watch.names))
    return told


# -- subscription -----------------------------------------------------------------------------------------------------


def test_an_empty_first_request_asks_for_all_clusters(mesh, delta):
    assert ask(delta, CLUSTER) is Outcome.SUBSCRIBED
    assert shorts(say_due(delta, mesh)) == ["cds a b sentinel"]


def test_a_first_request_is_answered_even_with_nothing(mesh, delta, sotw):
    mesh.resources[CLUSTER].clear()
    for session in (delta, sotw):
        ask(session, CLUSTER)
        assert shorts(say_due(session, mesh)) == ["cds"]


def test_an_empty_request_for_endpoints_asks_for_none(mesh, delta, sotw):
    ask(delta, ENDPOINT)
    assert say_due(delta, mesh) == []
    assert ask(sotw, ENDPOINT) is Outcome.UNSUBSCRIBED
    assert say_due(sotw, mesh) == []


def test_a_named_resource_that_does_not_exist_is_answered_as_removed(mesh, delta):
    ask(delta, ROUTE, "a", "nope")
    assert shorts(say_due(delta, mesh)) == ["rds a -nope"]


def test_a_name_asked_for_again_is_answered_again(mesh, delta):
    settled(delta, mesh)
    ask(delta, ROUTE, "a")
    assert shorts(say_due(delta, mesh)) == ["rds a"]


def test_only_newly_named_resources_are_sent(mesh, delta, sotw):
    for session in (delta, sotw):
        ask(session, ROUTE, "a")
        [said] = say_due(session, mesh)
        ack(session, said, *(() if session.delta else ("a", "b")))
        if session.delta:
            ask(session, ROUTE, "b")
        assert shorts(say_due(session, mesh)) == ["rds b"]


def test_names_given_up_are_followed_no_more(mesh, delta, sotw):
    settled(delta, mesh)
    delta.receive(Request(type_url=ROUTE, unsubscribe=("a", "b")))
    settled(sotw, mesh)
    ask(sotw, ROUTE, SENTINEL, nonce=sotw.watches[ROUTE].nonce)
    for session in (delta, sotw):
        assert say_due(session, mesh) == []
        assert change(session, mesh, ROUTE, a="1", b=None) == []
        assert session.watches[ROUTE].state is State.SYNCED


def test_a_subscription_change_beside_an_old_nonce_counts(mesh, delta):
    ask(delta, ROUTE, "a")
    [first] = say_due(delta, mesh)
    assert change(delta, mesh, ROUTE, a="1") == ["rds a"]
    assert ask(delta, ROUTE, "b", nonce=first.nonce) is Outcome.ACKED
    assert ask(delta, ROUTE, SENTINEL, nonce="who knows") is Outcome.EXPIRED
    assert shorts(say_due(delta, mesh)) == ["rds b sentinel"]


def test_everything_and_names_together(mesh, delta):
    ask(delta, CLUSTER, "*", "on-demand")
    assert accept_all(delta, mesh) == ["cds a b sentinel -on-demand"]
    assert change(delta, mesh, CLUSTER, a="1") == ["cds a"]


def test_a_name_after_an_empty_first_request_does_not_end_everything(mesh, delta):
    ask(delta, CLUSTER)
    accept_all(delta, mesh)
    ask(delta, CLUSTER, "on-demand")
    assert shorts(say_due(delta, mesh)) == ["cds -on-demand"]
    assert change(delta, mesh, CLUSTER, b="1") == ["cds b"]


def test_a_name_given_up_beside_everything_is_answered(mesh, delta):
    ask(delta, CLUSTER, "*", "a", "gone")
    say_due(delta, mesh)
    delta.receive(Request(type_url=CLUSTER, unsubscribe=("a", "gone")))
    assert shorts(say_due(delta, mesh)) == ["cds a -gone"]


def test_everything_can_be_given_up_for_names(mesh, delta):
    ask(delta, CLUSTER, "*", "a")
    accept_all(delta, mesh)
    delta.receive(Request(type_url=CLUSTER, unsubscribe=("*",)))
    assert say_due(delta, mesh) == []
    assert change(delta, mesh, CLUSTER, a="1", b="1") == ["cds a"]


def test_everything_asked_for_again_is_sent_again(mesh, delta):
    ask(delta, CLUSTER)
    say_due(delta, mesh)
    ask(delta, CLUSTER, "*")
    mesh.set(CLUSTER, "b", None)
    assert shorts(say_due(delta, mesh)) == ["cds a sentinel -b"]


def test_in_state_of_the_world_names_replace_everything(mesh, sotw):
    ask(sotw, CLUSTER)
    [said] = say_due(sotw, mesh)
    ack(sotw, said, "a")
    [said] = say_due(sotw, mesh)
    assert said.short == "cds a"
    ack(sotw, said)
    assert shorts(say_due(sotw, mesh)) == ["cds"], "once named, an empty list means none"


def test_unknown_types_are_not_answered(mesh, delta):
    assert ask(delta, "type.googleapis.com/unknown") is Outcome.UNSERVED
    assert say_due(delta, mesh) == []
    assert not delta.watches


# -- reconnect --------------------------------------------------------------------------------------------------------


def test_a_client_that_holds_everything_is_sent_nothing(mesh, delta):
    held = {n: r.version for n, r in mesh.resources[CLUSTER].items()}
    ask(delta, CLUSTER, initial_versions=held)
    assert say_due(delta, mesh) == []
    watch = delta.watches[CLUSTER]
    assert watch.state is State.SYNCED
    assert watch.accepted == mesh.answer(watch)


def test_a_client_that_comes_back_is_sent_the_difference(mesh, delta):
    held = {n: r.version for n, r in mesh.resources[CLUSTER].items()} | {"gone": "x", "b": "old"}
    del held["a"]
    ask(delta, CLUSTER, initial_versions=held)
    assert accept_all(delta, mesh) == ["cds a b -gone"]
    assert change(delta, mesh, CLUSTER, a="1") == ["cds a"]


def test_names_are_answered_even_in_the_version_held(mesh, delta):
    held = {n: r.version for n, r in mesh.resources[ROUTE].items()}
    ask(delta, ROUTE, "a", initial_versions=held)
    assert shorts(say_due(delta, mesh)) == ["rds a"]
    assert change(delta, mesh, ROUTE, b="1") == ["rds b"], "what is held without being named is subscribed to"


def test_state_of_the_world_is_answered_in_full_after_a_reconnect(mesh, sotw):
    ask(sotw, ROUTE, "a", "b", nonce="of another stream")
    assert shorts(say_due(sotw, mesh)) == ["rds a b"]


# -- pushes -----------------------------------------------------------------------------------------------------------


def test_only_what_changed_is_sent(mesh, delta, sotw):
    settled(delta, mesh)
    settled(sotw, mesh)
    assert change(delta, mesh, CLUSTER, a="1") == ["cds a", "eds a"]
    assert change(sotw, mesh, CLUSTER) == ["cds a b sentinel", "eds a"]
    for session in (delta, sotw):
        assert change(session, mesh, CLUSTER) == []
    assert change(delta, mesh, ROUTE, a="1") == ["rds a"]
    assert change(sotw, mesh, ROUTE) == ["rds a"]


@pytest.mark.parametrize("make", [DeltaSession, SotwSession])
def test_everything_can_be_sent_again(mesh, make):
    session = make(Responses(), TYPES, "t/")
    settled(session, mesh)
    assert say_due(session, mesh) == []
    session.ask_again()
    assert sorted(accept_all(session, mesh)) == [
        "cds a b sentinel",
        "eds a b sentinel",
        "lds a b sentinel",
        "rds a b sentinel",
    ]
    assert {watch.state for watch in session.watches.values()} == {State.SYNCED}


def test_removals_are_told(mesh, delta, sotw):
    settled(delta, mesh)
    settled(sotw, mesh)
    assert change(delta, mesh, LISTENER, b=None) == ["lds -b"]
    assert change(sotw, mesh, LISTENER) == ["lds a sentinel"]
    assert change(delta, mesh, ROUTE, b=None) == ["rds -b"]
    assert change(sotw, mesh, ROUTE) == [], "state of the world cannot say that a route is gone"


@pytest.mark.parametrize("make", [DeltaSession, SotwSession])
def test_what_is_used_goes_first_and_leaves_last(mesh, make):
    session = make(Responses(), TYPES, "t/")
    settled(session, mesh)
    for type_url in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
        mesh.set(type_url, "b", None)
        mesh.set(type_url, "c", "1")
    session.mark(TYPES)
    said = accept_all(session, mesh)
    if session.delta:
        assert said == ["cds c", "lds c -b", "rds -b", "cds -b", "eds -b"]
    else:
        assert said == ["cds a b c sentinel", "lds a c sentinel", "cds a c sentinel", "eds b"]


@pytest.mark.parametrize("make", [DeltaSession, SotwSession])
def test_whoever_asks_for_endpoints_of_no_service_is_told_once_that_there_are_none(mesh, make):
    session = make(Responses(), TYPES, "t/")
    settled(session, mesh)
    ask(
        session,
        ENDPOINT,
        "none",
        *(() if session.delta else ("a", "b", SENTINEL)),
        nonce=session.watches[ENDPOINT].nonce,
    )
    [told] = say_due(session, mesh)
    assert told.short == ("eds -none" if session.delta else "eds none")
    assert told.contents == ({} if session.delta else {"none": ""})
    ack(session, told, *(() if session.delta else session.watches[ENDPOINT].names))
    assert change(session, mesh, ENDPOINT, a="1") == ["eds a"]


def test_in_state_of_the_world_endpoints_go_when_nothing_leads_to_them_any_more(mesh):
    session = SotwSession(Responses(), TYPES, "t/")
    settled(session, mesh)
    mesh.set(ENDPOINT, "b", None)
    mesh.set(LISTENER, "b", None)
    session.mark(TYPES)
    first, second = say_due(session, mesh)
    assert (first.short, second.short) == ("lds a sentinel", "eds b")
    assert second.contents == {"b": ""}


@pytest.mark.parametrize("make", [DeltaSession, SotwSession])
def test_listeners_and_routes_wait_for_new_clusters_and_removals_for_them(mesh, make):
    session = make(Responses(), TYPES, "t/")
    settled(session, mesh)
    mesh.set(CLUSTER, "c", "1")
    mesh.set(CLUSTER, "b", None)
    mesh.set(ROUTE, "a", "to c")
    mesh.set(LISTENER, "a", "1")
    session.mark(TYPES)
    [clusters] = say_due(session, mesh)
    assert clusters.short == ("cds c" if session.delta else "cds a b c sentinel")
    assert session.waiting
    assert not session.ready
    mesh.set(ROUTE, "a", "to c, newer")
    session.mark(TYPES)
    ask(session, ENDPOINT, "c", *(() if session.delta else ("a", "b", SENTINEL)), nonce=session.watches[ENDPOINT].nonce)
    mesh.set(ENDPOINT, "c", "1")
    [endpoints] = say_due(session, mesh)
    assert endpoints.short == "eds c"
    ack(session, clusters)
    assert session.ready
    listeners, routes, leaving = say_due(session, mesh)
    assert listeners.contents["a"] == "1"
    assert routes.contents == {"a": "to c, newer"}
    assert leaving.short == ("cds -b" if session.delta else "cds a c sentinel")


def test_the_wait_for_new_clusters_ends_with_a_rejection_or_by_order(mesh, delta):
    settled(delta, mesh)
    for name, end in (("c", lambda said: nack(delta, said)), ("d", lambda _: delta.stop_waiting())):
        mesh.set(CLUSTER, name, "1")
        mesh.set(ROUTE, "a", name)
        delta.mark(TYPES)
        [clusters] = say_due(delta, mesh)
        assert not delta.ready
        end(clusters)
        assert delta.ready
        assert shorts(say_due(delta, mesh)) == ["rds a"]


def test_nothing_waits_for_a_cluster_that_the_client_had(mesh, delta):
    settled(delta, mesh)
    mesh.set(CLUSTER, "a", "1")
    mesh.set(ROUTE, "a", "1")
    delta.mark(TYPES)
    assert shorts(say_due(delta, mesh)) == ["cds a", "eds a", "rds a"]


def test_a_cluster_that_comes_back_before_it_left_stays(mesh, delta, sotw):
    for session in (delta, sotw):
        settled(session, mesh)
        mesh.set(CLUSTER, "c", "1")
        mesh.set(CLUSTER, "b", None)
        mesh.set(ROUTE, "a", "1")
        session.mark(TYPES)
        assert len(say_due(session, mesh)) == 1
        mesh.set(CLUSTER, "b", "back")
        session.mark(TYPES)
        again = say_due(session, mesh)
        assert again[0].contents["b"] == "back"
        session.stop_waiting()
        assert shorts(say_due(session, mesh)) == ["rds a"]
        assert session.watches[CLUSTER].sent == mesh.answer(session.watches[CLUSTER])
        mesh.set(CLUSTER, "b", "0")
        mesh.set(CLUSTER, "c", None)
        mesh.set(ROUTE, "a", "0")


def test_endpoints_follow_a_cluster_that_is_sent_again_without_waiting_for_its_ack(mesh, delta):
    settled(delta, mesh)
    assert change(delta, mesh, CLUSTER, a="1") == ["cds a", "eds a"]
    assert delta.watches[CLUSTER].in_flight
    assert change(delta, mesh, CLUSTER, new="1") == ["cds new"], "nobody asked for the new one's endpoints yet"


@pytest.mark.parametrize("make", [DeltaSession, SotwSession])
def test_a_cluster_is_not_changed_before_the_client_has_its_last_change_at_work(mesh, make):
    """An Envoy that is told another version of a cluster, and then what the first one waited for, would crash."""
    session = make(Responses(), TYPES, "t/")
    settled(session, mesh)
    mesh.set(CLUSTER, "c", "1")
    session.mark(TYPES)
    [clusters] = say_due(session, mesh)
    mesh.set(CLUSTER, "c", "2")
    mesh.set(LISTENER, "a", "1")
    session.mark(TYPES)
    assert say_due(session, mesh) == []
    assert (session.waiting, session.ready) == (True, False)
    ask(session, ENDPOINT, "c", *(() if session.delta else ("a", "b", SENTINEL)), nonce=session.watches[ENDPOINT].nonce)
    mesh.set(ENDPOINT, "c", "1")
    assert shorts(say_due(session, mesh)) == ["eds c"], "without them the cluster would never be at work"
    ack(session, clusters)
    assert session.ready
    again, listeners = say_due(session, mesh)
    assert (again.contents["c"], listeners.contents["a"]) == ("2", "1")
    assert shorts(say_due(session, mesh)) == ["eds c"]


def test_a_change_of_a_cluster_waits_no_longer_than_it_is_told(mesh, delta):
    settled(delta, mesh)
    assert change(delta, mesh, CLUSTER, a="1") == ["cds a", "eds a"]
    assert change(delta, mesh, CLUSTER, a="2") == []
    delta.stop_waiting()
    assert not delta.ready, "new clusters are waited for less long"
    delta.stop_holding()
    assert delta.ready
    assert [shorts(say_due(delta, mesh)), shorts(say_due(delta, mesh))] == [["cds a"], ["eds a"]]
    assert change(delta, mesh, CLUSTER, a="3") == []


def test_that_there_is_nothing_is_told_at_once_to_who_warms_a_cluster_and_waits_for_it(mesh, delta):
    """What the client held leaves last; what it never had is no removal, and without an answer it never ACKs."""
    settled(delta, mesh)
    mesh.set(CLUSTER, "c", "1")
    mesh.set(LISTENER, "a", "1")
    delta.mark(TYPES)
    [clusters] = say_due(delta, mesh)
    mesh.set(ENDPOINT, "b", None)
    ask(delta, ENDPOINT, "c", "d", nonce=delta.watches[ENDPOINT].nonce)
    assert shorts(say_due(delta, mesh)) == ["eds -c -d"]
    assert delta.waiting
    ask(delta, ENDPOINT, "e", nonce=delta.watches[ENDPOINT].nonce)
    assert shorts(say_due(delta, mesh)) == ["eds -e"], "what leaves last does so still"
    ack(delta, clusters)
    assert shorts(say_due(delta, mesh)) == ["lds a", "eds -b"]


def test_a_filter_configuration_is_removed_only_for_who_asks(mesh):
    session = DeltaSession(Responses(), (EXTENSION,), "t/")
    mesh.resources[EXTENSION] = {}
    mesh.set(EXTENSION, "wasm", "1")
    ask(session, EXTENSION, "wasm", "nope")
    assert shorts(say_due(session, mesh)) == ["ecds wasm -nope"]
    assert change(session, mesh, EXTENSION, wasm=None) == []


def test_a_push_that_meets_a_changed_subscription_is_put_off(mesh, delta):
    settled(delta, mesh)
    mesh.set(ROUTE, "a", "1")
    delta.mark((ROUTE,))
    delta.plan({watch.type_url: mesh.answer(watch) for watch in delta.take_due()})
    delta.receive(Request(type_url=ROUTE, unsubscribe=("a",)))
    assert delta.next(1.0) is None
    assert delta.due == {ROUTE}


# -- ACK and NACK -----------------------------------------------------------------------------------------------------


def test_states_of_a_type(mesh, delta):
    ask(delta, CLUSTER)
    watch = delta.watches[CLUSTER]
    assert watch.state is State.NOT_SENT
    [said] = say_due(delta, mesh)
    assert watch.state is State.STALE
    assert ack(delta, said) is Outcome.ACKED
    assert watch.state is State.SYNCED
    assert watch.acked_nonce == said.nonce == "t/1"
    assert watch.sent_at == 1.0


def test_a_rejection_keeps_the_accepted_set_and_names_the_culprit(mesh, delta, sotw):
    for session in (delta, sotw):
        ask(session, CLUSTER)
        [said] = say_due(session, mesh)
        ack(session, said)
        accepted = session.watches[CLUSTER].accepted
        mesh.set(CLUSTER, "b", "bad")
        session.mark((CLUSTER,))
        [said] = say_due(session, mesh)
        assert nack(session, said) is Outcome.REJECTED
        watch = session.watches[CLUSTER]
        assert watch.state is State.ERROR
        assert watch.accepted is accepted
        assert watch.culprits == ("b",)
        assert str(watch.rejection) == "Internal:resource b is bad"
        assert watch.acked_nonce != said.nonce
        assert say_due(session, mesh) == [], "what was rejected is not sent again by itself"
        mesh.set(CLUSTER, "b", "0")


def test_a_rejected_response_is_delivered_with_the_next_change_as_a_whole(mesh, delta):
    settled(delta, mesh)
    mesh.set(ROUTE, "a", "good")
    mesh.set(ROUTE, "b", "bad")
    delta.mark((ROUTE,))
    [said] = say_due(delta, mesh)
    nack(delta, said)
    assert change(delta, mesh, ROUTE, b="mended") == ["rds a b"]


def test_an_error_ends_with_an_ack(mesh, delta):
    ask(delta, CLUSTER)
    [said] = say_due(delta, mesh)
    nack(delta, said)
    mesh.set(CLUSTER, "b", "mended")
    delta.mark((CLUSTER,))
    [said] = say_due(delta, mesh)
    assert said.short == "cds a b sentinel"
    assert delta.watches[CLUSTER].state is State.ERROR
    ack(delta, said)
    assert delta.watches[CLUSTER].state is State.SYNCED
    assert delta.watches[CLUSTER].culprits == ()


def test_what_a_later_response_did_not_mend_is_sent_at_once(mesh, delta):
    settled(delta, mesh)
    mesh.set(ROUTE, "a", "good")
    mesh.set(ROUTE, "b", "bad")
    delta.mark((ROUTE,))
    [rejected] = say_due(delta, mesh)
    mesh.set(ROUTE, "b", "mended")
    delta.mark((ROUTE,))
    [later] = say_due(delta, mesh)
    assert later.short == "rds b"
    nack(delta, rejected)
    assert shorts(say_due(delta, mesh)) == ["rds a"]
    ack(delta, later)
    assert delta.watches[ROUTE].state is State.ERROR, "part of what was rejected is still under way"


def test_what_was_rejected_and_not_touched_since_waits(mesh, delta):
    settled(delta, mesh)
    assert change(delta, mesh, ROUTE, b="bad") == ["rds b"]
    rejected = delta.watches[ROUTE].nonce
    assert change(delta, mesh, ROUTE, a="1") == ["rds a"]
    ask(delta, ROUTE, nonce=rejected, rejection=NO)
    assert say_due(delta, mesh) == []
    ask(delta, ROUTE, nonce=delta.watches[ROUTE].nonce)
    assert delta.watches[ROUTE].state is State.ERROR
    assert change(delta, mesh, ROUTE, a="2") == ["rds a b"]


def test_an_error_about_a_name_given_up_is_over(mesh, delta):
    settled(delta, mesh)
    mesh.set(ROUTE, "b", "bad")
    delta.mark((ROUTE,))
    [said] = say_due(delta, mesh)
    nack(delta, said)
    delta.receive(Request(type_url=ROUTE, unsubscribe=("b",)))
    assert say_due(delta, mesh) == []
    assert delta.watches[ROUTE].state is State.SYNCED


def test_a_rejection_of_an_unknown_response_still_counts(mesh, delta):
    settled(delta, mesh)
    assert ask(delta, CLUSTER, nonce="old", rejection=NO) is Outcome.REJECTED
    assert delta.watches[CLUSTER].state is State.ERROR
    assert ask(delta, "type.googleapis.com/unknown", rejection=NO) is Outcome.UNSERVED


def test_a_subscription_beside_a_rejection_counts(mesh, delta):
    ask(delta, ROUTE, "b")
    [said] = say_due(delta, mesh)
    nack(delta, said, "a")
    assert shorts(say_due(delta, mesh)) == ["rds a b"]


def test_state_of_the_world_ignores_an_outdated_nonce(mesh, sotw):
    ask(sotw, ROUTE, "a")
    [first] = say_due(sotw, mesh)
    change(sotw, mesh, ROUTE, a="1")
    assert ack(sotw, first, "a", "b") is Outcome.EXPIRED
    assert say_due(sotw, mesh) == []
    assert sotw.watches[ROUTE].state is State.STALE


def test_one_ack_stands_for_the_responses_before(mesh, sotw):
    ask(sotw, CLUSTER)
    say_due(sotw, mesh)
    mesh.set(CLUSTER, "c", "1")
    sotw.mark((CLUSTER,))
    [second] = say_due(sotw, mesh)
    ack(sotw, second)
    assert sotw.watches[CLUSTER].state is State.SYNCED


def test_a_client_that_answers_nothing_costs_no_more_memory_and_loses_nothing(mesh, delta):
    settled(delta, mesh)
    nonces = []
    for number in range(100):
        mesh.set(ROUTE, f"r{number}", "1")
        ask(delta, ROUTE, f"r{number}")
        say_due(delta, mesh)
        nonces.append(delta.watches[ROUTE].nonce)
    watch = delta.watches[ROUTE]
    assert len(watch.in_flight) == 16
    ask(delta, ROUTE, nonce=watch.in_flight[0].nonce, rejection=NO)
    assert {f"r{number}" for number in range(85)} == watch.owed
    ask(delta, ROUTE, nonce=nonces[-1])
    assert change(delta, mesh, ROUTE, a="1") == [" ".join(["rds", "a", *sorted(f"r{n}" for n in range(85))])]


def test_nonces_differ_between_responses_and_streams(mesh):
    responses = Responses()
    nonces = set()
    for token in ("x/", "y/"):
        session = DeltaSession(responses, TYPES, token)
        settled(session, mesh)
        nonces |= {watch.nonce for watch in session.watches.values()}
    assert len(nonces) == 8
