"""Whatever happens on a stream, in the end the client holds exactly what the server has."""

from ads_model import SENTINEL, TYPES, Mesh, Pair
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.compile.resource import CLUSTER
from mizzen.xds import kinds
from mizzen.xds.watch import State

NAMES = ("a", "b", "c", "d")
types = st.sampled_from(TYPES)
name_sets = st.sets(st.sampled_from(NAMES))

mesh_changes = st.tuples(
    st.just("change"), types, st.sampled_from(NAMES), st.one_of(st.none(), st.sampled_from(("1", "2", "3")))
)
rounds = st.tuples(
    st.just("round"), st.integers(0, 9), st.integers(0, 9), st.lists(st.sampled_from((True, True, False)), max_size=9)
)
"""Some requests reach the server, which sends some responses, some of which the client accepts or rejects."""
client_changes = st.one_of(
    st.tuples(st.just("names"), st.sampled_from(sorted(kinds.EXPLICIT & set(TYPES))), name_sets, name_sets),
    st.tuples(st.just("cluster_names"), name_sets, name_sets),
    st.tuples(st.just("wildcard"), st.booleans()),
    st.tuples(st.just("stale_nonce"), types, st.sampled_from(("", "stream0/1"))),
    st.tuples(st.just("forget"), types, name_sets),
    st.tuples(st.sampled_from(("stop_waiting", "stop_holding"))),
    st.tuples(st.just("connect")),
    st.tuples(st.just("come_back_with"), st.dictionaries(st.sampled_from((*NAMES, "gone")), st.sampled_from("12"))),
)
programs = st.lists(st.one_of(rounds, rounds, mesh_changes, client_changes), min_size=8, max_size=30)


def perform(pair: Pair, action: tuple) -> None:
    """One thing that happens. Changes of the mesh happen once, elsewhere."""
    match action:
        case ("change", type_url, *_):
            pair.session.mark((type_url,))
        case ("round", requests, responses, answers):
            pair.deliver_requests(requests)
            for _ in range(responses):
                pair.serve()
            for accept in answers:
                pair.deliver_response(accept=accept)
        case ("stop_waiting",):
            pair.session.stop_waiting()
        case ("stop_holding",):
            pair.session.stop_holding()
        case ("connect",):
            pair.connect()
        case ("forget", type_url, names):
            pair.held[type_url] = {n: v for n, v in pair.held[type_url].items() if n not in names}
            pair.connect()
        case ("come_back_with", versions):
            for type_url in TYPES:
                wanted = pair.names[type_url]
                everything = pair.wildcard[type_url]
                pair.held[type_url] = {n: v for n, v in versions.items() if everything or n in wanted}
            pair.connect()
        case _:
            subscribe(pair, action)


def subscribe(pair: Pair, action: tuple) -> None:
    """One request of the client's that changes a subscription, or is outdated."""
    match action:
        case ("names", type_url, add, remove):
            pair.change_names(type_url, add, remove)
        case ("cluster_names", add, remove) if pair.delta:
            pair.change_names(CLUSTER, add, remove)
        case ("wildcard", wanted) if pair.delta:
            pair.change_wildcard(CLUSTER, wanted)
        case ("stale_nonce", type_url, nonce) if pair.delta or nonce:
            names = () if pair.delta else tuple(sorted(pair.names[type_url]))
            if nonce != pair.last_nonce[type_url]:
                pair.request(type_url, nonce=nonce, names=names)


def finish(pair: Pair, mesh: Mesh) -> None:
    """The client rejects nothing any more; one resource that nobody tampered with changes in every type."""
    pair.run_until_quiet()
    for type_url in TYPES:
        mesh.set(type_url, SENTINEL, "last")
    pair.session.mark(TYPES)
    pair.run_until_quiet()


def run(program: list[tuple], *, delta: bool) -> Pair:
    mesh = Mesh()
    pair = Pair(mesh, delta=delta)
    for action in program:
        if action[0] == "change":
            mesh.set(*action[1:])
        perform(pair, action)
    finish(pair, mesh)
    return pair


def check(pair: Pair) -> None:
    """The client holds what the server has, and the server knows it."""
    for type_url in TYPES:
        assert pair.shown(type_url) == pair.expected(type_url)
    for watch in filter(lambda w: w.asks, pair.session.watches.values()):
        assert watch.state is State.SYNCED, watch.type_url
        assert watch.accepted == watch.sent == pair.goal(watch)
        assert (watch.in_flight, watch.owed, watch.asked) == ((), frozenset(), frozenset())


@given(programs)
@settings(max_examples=150, deadline=None)
def test_delta_ends_with_what_the_server_has(program):
    check(run(program, delta=True))


@given(programs)
@settings(max_examples=150, deadline=None)
def test_state_of_the_world_ends_with_what_the_server_has(program):
    check(run(program, delta=False))


@given(st.lists(mesh_changes, min_size=5, max_size=20))
@settings(max_examples=50, deadline=None)
def test_both_variants_tell_the_same(program):
    delta, sotw = run(program, delta=True), run(program, delta=False)
    for type_url in TYPES:
        assert delta.shown(type_url) == sotw.shown(type_url)
