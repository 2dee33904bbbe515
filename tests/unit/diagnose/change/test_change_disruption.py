"""How Envoy takes the change of a listener; the same rules are held against real Envoys elsewhere."""

from typing import Any

import pytest

from mizzen.diagnose.change import disruption

SOCKET = {"socketAddress": {"address": "0.0.0.0", "portValue": 80}}


def chain(name: str, *filters: str) -> dict[str, Any]:
    return {"name": name, "filters": [{"name": each} for each in filters]}


def listener(*chains: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"address": SOCKET, "filterChains": list(chains), **fields}


def update(old: dict[str, Any] | None, new: dict[str, Any] | None) -> disruption.ListenerUpdate:
    return disruption.update_listener("0.0.0.0_80", old, new)


def test_chains_that_change_drain_and_the_others_stay() -> None:
    found = update(listener(chain("a"), chain("b")), listener(chain("b"), chain("a", "new")))

    assert (found.update, found.drained, found.kept, found.cuts) == ("in place", ("a",), 1, True)
    assert found.cuts_chain(chain("a"))
    assert not found.cuts_chain(chain("b"))


def test_a_chain_more_cuts_nothing() -> None:
    found = update(listener(chain("a")), listener(chain("a"), chain("b")))

    assert (found.update, found.drained, found.cuts) == ("in place", (), False)


def test_the_default_chain_is_not_the_same_chain_among_the_others() -> None:
    found = update(listener(chain("a"), defaultFilterChain=chain("b")), listener(chain("a"), chain("b")))

    assert (found.update, found.drained, found.kept) == ("in place", ("default",), 1)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ({"statPrefix": "a"}, {"statPrefix": "b"}, ("statPrefix",)),
        ({}, {"trafficDirection": "INBOUND"}, ("trafficDirection",)),
        ({}, {"filterChains": []}, ("filterChains, of which none is left",)),
    ],
)
def test_whatever_else_changes_replaces_the_listener(
    old: dict[str, Any], new: dict[str, Any], because: tuple[str, ...]
) -> None:
    found = update(listener(chain("a"), **old), {**listener(chain("a")), **new})

    assert (found.update, found.because) == ("replaced", because)
    assert found.cuts_chain(chain("a"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"listenerFilters": [{"name": "a"}, {"name": "b"}]}, {"listenerFilters": [{"name": "b"}, {"name": "a"}]}),
        ({}, {"listenerFiltersTimeout": "0s", "bindToPort": False}),
    ],
)
def test_neither_order_nor_a_stated_default_replaces_it(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = update(listener(chain("a"), **old), listener(chain("a"), **new))

    assert (found.update, found.cuts) == ("in place", False)


def test_a_listener_comes_and_goes() -> None:
    assert (update(None, listener()).update, update(None, listener()).cuts) == ("added", False)
    assert (update(listener(), None).update, update(listener(), None).cuts) == ("removed", True)
