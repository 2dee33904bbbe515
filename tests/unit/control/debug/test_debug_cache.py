"""What is kept encoded, and how large it is."""

import pytest
from debugged import resources

from mizzen.compile.resource import CLUSTER, LISTENER
from mizzen.control.debug import cache
from mizzen.control.debug.console import Answer, Query
from mizzen.xds.requests import NO_NAMES
from mizzen.xds.responses import Responses


def filled() -> Responses:
    found = Responses()
    for url, names in ((LISTENER, ("l",)), (CLUSTER, ("b", "a"))):
        found.sotw(found.difference(None, resources(url, *names), NO_NAMES), "1")
    return found


def ask(responses: Responses, **parameters: str) -> object:
    return cache.pages(responses)["cachez"].read(Query(page="cachez", parameters=parameters))()


def test_names_and_sizes_by_type() -> None:
    responses = filled()
    assert ask(responses) == {CLUSTER: ["a", "b"], LISTENER: ["l"]}
    sizes = ask(responses, sizes="true")
    assert isinstance(sizes, dict)
    assert set(sizes) == {CLUSTER, LISTENER, "total"}
    assert int(sizes["total"].removesuffix("B")) == sum(int(sizes[t].removesuffix("B")) for t in (CLUSTER, LISTENER))


def test_cleared_it_holds_nothing_and_works_on() -> None:
    responses = filled()
    answer = ask(responses, clear="true")
    assert isinstance(answer, Answer)
    assert answer.body == b"Cache cleared"
    assert ask(responses) == {}
    body = responses.sotw(responses.difference(None, resources(CLUSTER, "a"), NO_NAMES), "1")
    assert body == responses.sotw(responses.difference(None, resources(CLUSTER, "a"), NO_NAMES), "1")
    assert ask(responses) == {CLUSTER: ["a"]}


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0kB"),
        (1234, "1.2kB"),
        (3_400_000, "3.4MB"),
        (7 * 10**9, "7.0GB"),
        (5 * 10**16, "50000.0TB"),
    ],
)
def test_sizes_are_in_thousands(size: int, text: str) -> None:
    assert cache.format_size(size) == text
