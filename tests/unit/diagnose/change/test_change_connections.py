from mizzen.diagnose.change import connections, disruption
from mizzen.diagnose.change.connections import Fate
from mizzen.diagnose.trace.verdict import Passage

CHAIN = {"name": "chain"}
OTHER = {"name": "other"}
WAY = (
    Passage(side="client.a", listener="0.0.0.0_80", chain=CHAIN),
    Passage(side="server.a", listener="virtualInbound", chain=CHAIN),
    Passage(side="server.a"),
)


def forecast(name: str, update: disruption.Update, *marks: str) -> disruption.Forecast:
    one = disruption.ListenerUpdate(
        name=name, address="0.0.0.0:80", update=update, drained=marks, marks=frozenset(marks), because=("accessLog",)
    )
    return disruption.Forecast(listeners=(one,))


def judge(forecasts: dict[str, disruption.Forecast], *ways: tuple[Passage, ...], gone: tuple[str, ...] = ()) -> Fate:
    return connections.judge(ways or (WAY,), forecasts, gone, delivered=True)


def test_what_nobody_on_the_way_touches_stays() -> None:
    assert judge({}).outcome == "stays"
    assert judge({"client.a": forecast("0.0.0.0_90", "replaced")}).outcome == "stays"
    assert judge({"somebody.a": forecast("0.0.0.0_80", "replaced")}).outcome == "stays"


def test_either_side_cuts() -> None:
    assert judge({"client.a": forecast("0.0.0.0_80", "replaced")}).outcome == "is cut"
    assert judge({"server.a": forecast("virtualInbound", "removed")}).outcome == "is cut"


def test_a_chain_that_drains_cuts_its_own_connections_only() -> None:
    drained = forecast("virtualInbound", "in place", '{"name":"chain"}')
    elsewhere = (Passage(side="server.a", listener="virtualInbound", chain=OTHER),)

    assert judge({"server.a": drained}).outcome == "is cut"
    assert judge({"server.a": drained}, elsewhere).outcome == "stays"


def test_a_pod_that_goes_or_is_replaced_cuts() -> None:
    assert judge({}, gone=("server.a",)).outcome == "is cut"
    assert judge({"server.a": disruption.Forecast(effects=("pod replaced",))}).outcome == "is cut"


def test_it_may_be_cut_where_one_of_several_ways_is() -> None:
    second = (WAY[0], Passage(side="second.a", listener="virtualInbound", chain=CHAIN))

    assert judge({}, WAY, second, gone=("server.a",)).outcome == "may be cut"
    assert judge({}, WAY, second, gone=("server.a", "second.a")).outcome == "is cut"


def test_a_pod_may_stand_for_others_that_are_alike() -> None:
    def fate(*gone: str) -> str:
        twins = {"server.a": ("second.a", "third.a")}
        return connections.judge((WAY,), {}, gone, delivered=True, twins=twins).outcome

    assert fate() == "stays"
    assert fate("second.a") == "may be cut"
    assert fate("server.a", "second.a", "third.a") == "is cut"


def test_there_is_no_connection_where_none_was_made() -> None:
    assert connections.judge((WAY,), {}, (), delivered=False).outcome == "none"
    assert connections.judge(((),), {}, (), delivered=True).outcome == "none"
