import pytest

from mizzen.diagnose.change import probes
from mizzen.diagnose.change.connections import Fate
from mizzen.errors import DecodeError


def test_a_probe_is_a_request() -> None:
    (probe,) = probes.parse_probes(
        [{"from": "web.shop", "url": "http://cart:8080/x?y=1", "method": "POST", "headers": {"x-on": True, "x-n": 3}}],
        "p.yaml",
    )

    asked = probe.request
    assert probe.name == "web.shop: POST http://cart:8080/x?y=1"
    assert (asked.source, asked.host, asked.port, asked.path, asked.method) == (
        "web.shop",
        "cart",
        8080,
        "/x?y=1",
        "POST",
    )
    assert asked.headers == (("x-on", "true"), ("x-n", "3"))


@pytest.mark.parametrize("written", [{}, [{"url": "http://a/"}], [{"from": "a", "url": "http://a/", "methd": "GET"}]])
def test_what_is_no_list_of_probes_is_refused_with_its_place(written: object) -> None:
    with pytest.raises(DecodeError, match=r"p\.yaml"):
        probes.parse_probes(written, "p.yaml")


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"url": "http://[::1"}, "[1].url"),
        ({"url": "a"}, "[1].url"),
        ({"takes": -1.0}, "[1].takes"),
        ({"connectTo": "banana"}, "[1].connectTo"),
    ],
)
def test_a_probe_that_nobody_could_send_is_refused_with_its_line(wrong: dict[str, object], path: str) -> None:
    asked: list[str] = []

    def find_line(at: str) -> int:
        asked.append(at)
        return 7

    fine = {"from": "a", "url": "http://a/"}
    with pytest.raises(DecodeError, match=r"^p\.yaml:7: "):
        probes.parse_probes([fine, {**fine, **wrong}], "p.yaml", find_line)
    assert asked == [path]


def test_a_probe_is_changed_by_outcome_status_flag_or_details() -> None:
    before = probes.Verdict(outcome="delivered", status=200, destination="a")
    stays = Fate(outcome="stays")

    def changed(after: probes.Verdict) -> bool:
        return probes.Probed(name="p", before=before, after=after, connection=stays).is_changed

    assert not changed(probes.Verdict(outcome="delivered", status=200, destination="b", cause="x"))
    assert changed(probes.Verdict(outcome="denied", status=403))
    assert changed(probes.Verdict(outcome="delivered", status=200, details="other"))
