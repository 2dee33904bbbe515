"""Proxies × types in windows, and the filter that all windows share."""

import pytest
from crowds import TYPES, member

from mizzen.compile.resource import CLUSTER
from mizzen.control.debug.console import PageError, Query
from mizzen.control.ui.matrix import build_matrix
from mizzen.control.ui.paging import MOST, Window, read_window
from mizzen.xds.requests import Rejection
from mizzen.xds.watch import State, Watch

CROWD = [
    member(0),
    member(1, **{CLUSTER: Rejection(code=13, message="no such thing")}),
    *(member(number) for number in range(2, 1000)),
]


def test_totals_are_of_all_proxies_and_rows_of_one_window() -> None:
    found = build_matrix(CROWD, Window())
    assert (found["total"], found["proxies"], len(found["rows"])) == (1000, 1000, 50)
    assert [entry["name"] for entry in found["types"]] == ["CDS", "EDS", "LDS", "RDS", "SDS", "ECDS"]
    assert found["types"][0]["states"] == {"SYNCED": 999, "ERROR": 1}
    assert all(len(row["cells"]) == len(TYPES) for row in found["rows"])


def test_refusal_is_told_in_the_proxys_words() -> None:
    (row,) = build_matrix(CROWD, Window(), frozenset((State.ERROR,)))["rows"]
    assert (row["proxy"], row["id"]) == ("crowd-0001.crowd", "crowd-0001.crowd-1")
    assert row["cells"][0]["state"] == "ERROR"
    assert row["cells"][0]["error"] == "Internal:no such thing"
    assert "error" not in row["cells"][1]


def test_words_of_any_length_are_cut() -> None:
    loud = member(0, **{CLUSTER: Rejection(code=13, message="x" * 1_000_000)})
    assert len(build_matrix([loud], Window())["rows"][0]["cells"][0]["error"]) == 4000


def test_every_word_of_the_filter_must_be_there() -> None:
    found = build_matrix(CROWD, Window(words=("crowd-07", "sidecar")))
    assert found["total"] == 100
    assert found["proxies"] == 1000
    assert build_matrix(CROWD, Window(words=("crowd-07", "router")))["total"] == 0


def test_last_window_holds_what_is_left() -> None:
    found = build_matrix(CROWD, Window(offset=980))
    assert [row["proxy"] for row in found["rows"]] == [f"crowd-{number:04}.crowd" for number in range(980, 1000)]


def test_type_that_a_proxy_does_not_watch_is_an_empty_cell_and_one_without_answer_is_stale() -> None:
    other = member(0)
    del other.session.watches[CLUSTER]
    waiting = Watch(CLUSTER, wildcard=True, names=frozenset())
    fresh = member(1)
    fresh.session.watches[CLUSTER] = waiting
    rows = build_matrix([other, fresh], Window())["rows"]
    assert rows[0]["cells"][0] is None
    assert rows[1]["cells"][0] == {"state": "NOT_SENT", "sent": 0.0}


def test_limits_are_lowered_and_rubbish_is_refused() -> None:
    def window(**parameters: str) -> Window:
        return read_window(Query(page="x", parameters=parameters))

    assert window(limit="100000").limit == MOST
    assert window(limit="0").limit == 1
    assert window(offset="7", filter="A  b").words == ("a", "b")
    for rubbish in ("-1", "x", "1e9", "99999999999999999999", "٣"):
        with pytest.raises(PageError):
            window(offset=rubbish)
