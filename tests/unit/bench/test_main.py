"""What `python -m bench` refuses before it measures anything."""

import sys

import pytest

from bench import __main__ as bench


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
