"""What `python -m bench` refuses before it measures anything."""

import sys

import pytest

from bench import __main__ as bench
from bench import targets


@pytest.mark.parametrize("option", ["--proxies", "--services", "--pods", "--namespaces", "--repeat", "--at-once"])
@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_sizes_are_numbers_from_one_on(monkeypatch, capsys, option, value):
    monkeypatch.setattr(sys, "argv", ["bench", "compile", option, value])
    with pytest.raises(SystemExit, match="2"):
        bench.main()
    assert f"argument {option}: " in capsys.readouterr().err


def test_the_one_proxy_that_is_not_counted_is_not_enough(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "--proxies", "1", "--services", "1"])
    with pytest.raises(SystemExit, match="at least 2"):
        bench.main()


@pytest.mark.parametrize(
    ("sizes", "told"),
    [((500, 2, 25, 1000), False), ((500, 2, 25, 200), True), ((2000, 2, 25, 1000), True)],
)
def test_other_sizes_than_those_of_the_targets_are_told_in_the_heading(sizes, told):
    services, pods, namespaces, proxies = sizes
    title = targets.Plan(
        services=services,
        pods=pods,
        namespaces=namespaces,
        proxies=proxies,
        dialect="istio",
        rows=targets.ROWS,
        repeat=3,
        at_once=20,
    ).title
    assert title.endswith("targets are for 500 services, 1,000 pods, 25 namespaces; 1,000 proxies") is told
