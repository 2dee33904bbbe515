"""Verdicts on single objects: together they are what the analyzers find, and a change asks again what it is about."""

import pathlib
from collections.abc import Mapping

import analysed
import golden
import pytest

from mizzen.analysis import analyzers, reports, verdicts
from mizzen.api.meta import Key, Object
from mizzen.incremental import Engine

_TABLES = [analysed.read_yaml(pathlib.Path(__file__).with_name(name)) for name in ("codes.yaml", "own.yaml")]
CASES = {code: case for table in _TABLES for code, case in table["codes"].items()}


def _annotations(db: Engine, key: Key) -> Mapping[str, str]:
    found = db.peek(key)
    return found.metadata.annotations if isinstance(found, Object) else {}


def _found(db: Engine) -> set[tuple[Key, str, str]]:
    whole = reports.filter_findings(
        analyzers.run(db, analyzers.select(db).executed),
        namespace="",
        suppressions=(),
        annotations=lambda key: _annotations(db, key),
    )
    return {(each.key, each.code, each.message) for each in whole if each.key and each.key.kind in verdicts.KINDS}


def _told(db: Engine) -> set[tuple[Key, str, str]]:
    return {(key, each.code, each.message) for key in verdicts.keys(db) for each in verdicts.verdict(db, key)}


@pytest.mark.parametrize("name", golden.case_names())
def test_together_they_are_what_the_analyzers_find_in_a_mesh(name: str) -> None:
    db = golden.engine_of(golden.load_case(name))
    assert _told(db) == _found(db)


@pytest.mark.parametrize("code", CASES)
def test_together_they_are_what_the_analyzers_find_for_each_code(code: str) -> None:
    case = CASES[code]
    objects = [*([] if case.get("bare") else _TABLES[0]["common"]), *case.get("fires", ())]
    db = analysed.engine_of(objects, mesh=case.get("mesh"), networks=case.get("networks"))
    assert _told(db) == _found(db)


def _route(name: str, host: str, **annotations: str) -> dict:
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
        "spec": {"hosts": [f"{name}.example.com"], "http": [{"route": [{"destination": {"host": host}}]}]},
    }


def test_what_an_annotation_suppresses_is_left_out() -> None:
    quiet = {"galley.istio.io/analyze-suppress": "IST0101"}
    db = analysed.engine_of([*_TABLES[0]["common"], _route("loud", "nobody"), _route("quiet", "nobody", **quiet)])
    codes = {key.name: [each.code for each in verdicts.verdict(db, key)] for key in verdicts.keys(db)}
    assert "IST0101" in codes["loud"]
    assert "IST0101" not in codes["quiet"]


def test_a_change_of_one_object_analyses_no_other_again() -> None:
    db = analysed.engine_of([*_TABLES[0]["common"], *(_route(f"r{number}", "cart") for number in range(20))])
    roots = [db.root(verdicts.verdict, key) for key in verdicts.keys(db)]
    for root in roots:
        root.value()
    before = db.runs_by_query["verdict"]
    changed = analysed.put(db, _route("r3", "nobody"))
    for root in roots:
        if root.stale:
            root.value()
    assert db.runs_by_query["verdict"] == before + 1
    assert [each.code for each in verdicts.verdict(db, changed)] == ["IST0101"]
