"""What is not in force, and what has caused pushes."""

from mizzen.api.meta import Key
from mizzen.api.problems import Level, Problem
from mizzen.control.ui.findings import build_list
from mizzen.control.ui.paging import Window
from mizzen.control.ui.pushes import build_account, describe_key
from mizzen.sources.origins import Finding, Origin
from mizzen.xds.costs import Account, Cause, Cost
from mizzen.xds.history import Pushed


def finding(name: str, level: Level, line: int = 1) -> Finding:
    key = Key("VirtualService", "shop", name)
    return Finding(
        Origin("a.yaml", line), Problem(message="bad", code="invalid-field", level=level, key=key, path="spec")
    )


def test_worst_come_first_and_all_are_counted() -> None:
    held = [finding("a", "warning"), finding("b", "error"), finding("c", "info"), finding("d", "error")]
    found = build_list(held, Window(limit=3))
    assert [entry["name"] for entry in found["objects"]] == ["b", "d", "a"]
    assert found["levels"] == {"error": 2, "warning": 1, "info": 1}
    assert found["total"] == 4


def test_an_entry_reads_as_that_of_the_debug_page() -> None:
    (entry,) = build_list([finding("a", "error", 7)], Window())["objects"]
    assert entry == {
        "level": "error",
        "code": "invalid-field",
        "message": "bad",
        "kind": "VirtualService",
        "namespace": "shop",
        "name": "a",
        "path": "spec",
        "file": "a.yaml",
        "line": 7,
    }


def test_filter_looks_at_object_message_and_place() -> None:
    held = [finding("a", "error"), finding("b", "error", 9)]
    assert build_list(held, Window(words=("shop/b",)))["total"] == 1
    assert build_list(held, Window(words=("a.yaml:9",)))["total"] == 1
    assert build_list(held, Window(words=("bad",)))["total"] == 2


def test_pushes_are_told_newest_first_with_their_objects() -> None:
    pushes = [
        Pushed(
            number=number,
            reasons=("config",),
            objects=(Key("Service", "shop", "cart"),),
            changes=9,
            reached=3,
            told=2,
            seconds=0.12345,
            cause=Cause([], 1.5, []),
        )
        for number in (1, 2)
    ]
    account = Account(
        object=("MeshConfig", "", "default"), how="updated", changes=1, cost=Cost(3, 700), last=2.0, proxies=()
    )
    found = build_account([account], pushes, {"config": 7})
    assert [push["number"] for push in found["latest"]] == [2, 1]
    assert found["latest"][0]["objects"] == ["Service shop/cart"]
    assert found["latest"][0]["seconds"] == 0.123
    assert next(each["changes"] for each in found["reasons"] if each["reason"] == "config") == 7
    assert (found["latest"][0]["at"], found["latest"][0]["bytes"]) == (1.5, 0)
    assert found["objects"] == [
        {"object": "MeshConfig default", "change": "updated", "changes": 1, "pushes": 3, "bytes": 700, "last": 2.0}
    ]


def test_inputs_of_the_control_planes_own_have_no_namespace() -> None:
    assert describe_key(("Service", "shop", "cart")) == "Service shop/cart"
    assert describe_key(("AuthorityRoots", "", "default")) == "AuthorityRoots default"
