"""What the statuses of Istio's kinds say, and that nothing is said twice."""

import pytest

from mizzen.analysis import catalogue, own_codes
from mizzen.analysis.findings import report
from mizzen.api.decode import decode_object
from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.control.object_verdicts import Verdict, keep_verdicts, merge_verdict
from mizzen.incremental import Engine
from mizzen.sources.origins import Finding, Origin

KEY = Key("VirtualService", "shop", "cart")
UNKNOWN_HOST = report(catalogue.REFERENCED_RESOURCE_NOT_FOUND, KEY, "host", "nobody")
OURS = report(own_codes.LEFT_OUT, KEY, "a text")
NOW, LATER = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"


def merge(wanted: Verdict, current: dict, *, generation: int = 3, now: str = NOW) -> dict:
    return merge_verdict(wanted, current, generation=generation, now=now)


def after(current: dict, changes: dict) -> dict:
    """The status that the server has after a merge patch."""
    return {key: value for key, value in {**current, **changes}.items() if value is not None}


def test_findings_are_told_by_code_and_level() -> None:
    page = "https://istio.io/v1.32/docs/reference/config/analysis/ist0101/"
    assert merge(Verdict(findings=(UNKNOWN_HOST, OURS)), {}) == {
        "validationMessages": [
            {"level": "ERROR", "type": {"code": "IST0101"}, "documentationUrl": page},
            {"level": OURS.level.upper(), "type": {"code": OURS.code}},
        ],
        "observedGeneration": 3,
    }


def test_nothing_is_written_of_what_is_in_order() -> None:
    assert merge(Verdict(findings=()), {}) == {}
    assert merge(Verdict(), {"validationMessages": [{"level": "ERROR"}], "observedGeneration": 1}) == {}


def test_what_was_found_no_longer_goes() -> None:
    current = after({"addresses": ["kept"]}, merge(Verdict(findings=(UNKNOWN_HOST,)), {}))
    assert merge(Verdict(findings=()), current, generation=4) == {"validationMessages": None, "observedGeneration": 4}


@pytest.mark.parametrize("observed", [3, "3"], ids=["ours", "istiod's"])
def test_nothing_is_written_twice(observed: object) -> None:
    wanted = Verdict(findings=(UNKNOWN_HOST, OURS), faults=("spec: no",))
    current = {**after({}, merge(wanted, {})), "observedGeneration": observed}
    current["validationMessages"].reverse()
    assert merge(wanted, current, now=LATER) == {}


def test_a_new_generation_is_told_where_something_is() -> None:
    wanted = Verdict(findings=(UNKNOWN_HOST,))
    assert merge(wanted, after({}, merge(wanted, {})), generation=4) == {"observedGeneration": 4}


def test_the_condition_says_whether_the_object_is_in_force() -> None:
    foreign = {"type": "example.com/Seen", "status": "True"}
    first = merge(Verdict(faults=()), {"conditions": [foreign]})
    condition = first["conditions"][1]
    assert first["conditions"][0] == foreign
    assert (condition["type"], condition["status"], condition["reason"]) == ("Reconciled", "True", "InForce")
    assert (condition["observedGeneration"], condition["lastTransitionTime"]) == (3, NOW)
    second = merge(Verdict(faults=("spec.a: bad", "spec.b: bad")), after({}, first), generation=4, now=LATER)
    condition = second["conditions"][1]
    assert (condition["status"], condition["reason"]) == ("False", "NotInForce")
    assert condition["message"] == "spec.a: bad; spec.b: bad"
    assert (condition["observedGeneration"], condition["lastTransitionTime"]) == (4, LATER)
    third = merge(Verdict(faults=("spec.a: bad",)), after({}, second), generation=5, now="2026-03-03T00:00:00Z")
    assert third["conditions"][1]["lastTransitionTime"] == LATER, "it was False before"


# -- following ----------------------------------------------------------------------------------------------------------


def _put(db: Engine, host: str) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart", "namespace": "shop"}}
    route = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"hosts": ["cart.example.com"], "http": [{"route": [{"destination": {"host": host}}]}]},
    }
    for raw in (service | {"spec": {"ports": [{"name": "http", "port": 80}]}}, route):
        decoded = decode_object(raw)
        assert decoded.key is not None
        db.set(decoded.key, decoded.object)


async def test_objects_are_named_whose_verdict_has_changed() -> None:
    db = Engine()
    named: list[Key] = []
    told: list[tuple[Finding, ...]] = [()]
    followed = keep_verdicts(db, analyses=True, told=lambda: told[0], every=1.0).follow(named.append)
    _put(db, "nobody")
    await followed.look()
    assert named == [KEY]
    verdict = followed.values[KEY][1]
    assert verdict is not None
    assert [each.code for each in verdict.findings or ()] == ["IST0101"]
    assert verdict.faults == ()
    await followed.look()
    told[0] = (
        Finding(Origin("f"), Problem(message="bad", code="c", key=KEY, path="spec")),
        Finding(Origin("f"), Problem(message="meh", code="c", key=KEY, level="warning")),
        Finding(Origin("f"), Problem(message="bad", code="c")),
    )
    await followed.look()
    verdict = followed.values[KEY][1]
    assert verdict is not None
    assert verdict.faults == ("spec: bad",)
    assert named == [KEY, KEY]
    db.remove(KEY)
    await followed.look()
    assert KEY not in followed.values
    assert named == [KEY, KEY, KEY]
    followed.release()


async def test_nothing_is_analysed_where_nobody_wants_it() -> None:
    db = Engine()
    followed = keep_verdicts(db, analyses=False, told=lambda: (), every=1.0).follow(lambda _: None)
    _put(db, "nobody")
    await followed.look()
    assert followed.values[KEY][1] == Verdict(findings=None, faults=())
    assert "verdict" not in db.runs_by_query


@pytest.mark.parametrize("analyses", [True, False])
async def test_what_is_followed_is_the_object_as_it_is_now(analyses: bool) -> None:
    db = Engine()
    followed = keep_verdicts(db, analyses=analyses, told=lambda: (), every=1.0).follow(lambda _: None)
    for host in ("one", "two"):
        _put(db, host)
        await followed.look()
        assert followed.values[KEY][0] is db.peek(KEY)
