from typing import Any

from mizzen.diagnose.change import printing, report
from mizzen.diagnose.change.changes import Change
from mizzen.diagnose.change.classes import ProxyClass
from mizzen.diagnose.change.disruption import Forecast


def change(text: str) -> Change:
    return Change(kind="route", subject="80", action="changed", text=text)


def one(name: str, *texts: str, **more: Any) -> ProxyClass:
    proxies = more.pop("proxies", ("a.b",))
    forecast = Forecast(effects=("route only",))
    return ProxyClass(name=name, proxies=proxies, changes=tuple(map(change, texts)), forecast=forecast, pushed=10)


def made(*classes: ProxyClass, **more: Any) -> report.Report:
    return report.Report(old="old", new="new", proxies=9, classes=classes, **more)


def test_nothing_is_said_in_one_line() -> None:
    assert printing.render_text(made()) == "old → new: Nothing that a proxy is told changes.\n"


def test_changes_that_a_class_shares_with_one_before_are_told_once() -> None:
    text = printing.render_text(made(one("first", "a", "b", "c"), one("second", "a", "b", "c", "d")))

    assert text.count("route 80: a") == 1
    assert "  route 80: d\n  and the 3 changes of first\n" in text


def test_few_changes_are_told_again_rather_than_referred_to() -> None:
    assert printing.render_text(made(one("first", "a"), one("second", "a", "b"))).count("route 80: a") == 2


def test_of_very_many_changes_some_are_told() -> None:
    text = printing.render_text(made(one("first", *map(str, range(100)))))

    assert "and 75 more" in text


def test_markdown_stays_below_what_a_comment_may_hold_and_closes_what_it_opens() -> None:
    many = [one(f"class {number}", *(f"{number} {'x' * 200} {index}" for index in range(25))) for number in range(40)]

    text = printing.render_markdown(made(*many))

    assert len(text) < 65_536
    assert text.count("<details>") == text.count("</details>")
    assert text.endswith("to see it all.\n")


def test_amounts_are_read_by_people() -> None:
    assert [printing.amount(n) for n in (999, 12_345, 12_345_678)] == ["999 B", "12 kB", "12 MB"]
