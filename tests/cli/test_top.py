"""`mizzen top pushes` against the recorded pages of two replicas."""

import json
from collections.abc import Iterator
from typing import Any

import cli_runs
import pytest
from http_answers import Answers, on_port


def caused(name: str, change: str, size: int, *proxies: tuple[str, str, int, int], day: int = 1) -> dict[str, Any]:
    return {
        "kind": "VirtualService",
        "namespace": "shop",
        "name": name,
        "change": change,
        "changes": 2,
        "pushes": sum(pushes for _, _, pushes, _ in proxies),
        "bytes": size,
        "last": f"2026-01-0{day}T00:00:00Z",
        "proxies": [
            {"type": kind, "namespace": namespace, "pushes": pushes, "bytes": part}
            for kind, namespace, pushes, part in proxies
        ],
    }


def page(*objects: dict[str, Any], size: int) -> bytes:
    return json.dumps({"objects": objects, "total": {"pushes": 40, "bytes": size}}).encode()


CART, FRONT = "VirtualService shop/cart", "VirtualService shop/front"
ONE = page(
    caused("cart", "updated", 21_000, ("sidecar", "shop", 10, 15_000), ("router", "edge", 1, 6_000), day=2),
    caused("front", "added", 400, ("sidecar", "shop", 4, 400)),
    size=30_000,
)
TWO = page(
    caused("front", "added", 32_000, *(("sidecar", namespace, 1, 8_000) for namespace in "abcd"), day=3),
    caused("cart", "updated", 5_000, ("sidecar", "shop", 5, 5_000)),
    size=50_000,
)


@pytest.fixture
def planes() -> Iterator[list[str]]:
    with (
        on_port(Answers({"/debug/pushes": ONE})) as one,
        on_port(Answers({"/debug/pushes": TWO})) as two,
    ):
        yield ["--monitoring", one, "--monitoring", two]


def top(*arguments: object) -> str:
    result = cli_runs.run("top", "pushes", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_replicas_add_up_and_the_most_expensive_come_first(planes: list[str]) -> None:
    assert cells(top(*planes)) == [
        ["OBJECT", "CHANGE", "CHANGES", "PUSHES", "BYTES", "PROXIES"],
        [FRONT, "added", "2", "8", "32 kB", "sidecar 8 (32 kB)"],
        [CART, "updated", "2", "16", "26 kB", "sidecar 15 (20 kB), router 1 (6000 B)"],
    ]


def test_proxies_are_told_apart_by_namespace_on_request(planes: list[str]) -> None:
    assert [row[-1] for row in cells(top(*planes, "--by", "namespace"))[1:]] == [
        "a 1 (8000 B), b 1 (8000 B), c 1 (8000 B), 2 more",
        "shop 15 (20 kB), edge 1 (6000 B)",
    ]


def test_only_proxies_of_a_namespace_count_on_request(planes: list[str]) -> None:
    assert [row[:5] for row in cells(top(*planes, "-n", "shop"))[1:]] == [
        [CART, "updated", "2", "15", "20 kB"],
        [FRONT, "added", "2", "4", "400 B"],
    ]


def test_so_many_rows(planes: list[str]) -> None:
    assert [row[0] for row in cells(top(*planes, "--limit", "1"))] == ["OBJECT", FRONT]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_documents_hold_exact_bytes_and_the_total(planes: list[str], form: str) -> None:
    import yaml

    document = yaml.safe_load(top(*planes, "-o", form))
    assert document["total"] == {"pushes": 80, "bytes": 80_000}
    assert [(each["name"], each["pushes"], each["bytes"], each["last"]) for each in document["objects"]] == [
        ("front", 8, 32_400, "2026-01-03T00:00:00Z"),
        ("cart", 16, 26_000, "2026-01-02T00:00:00Z"),
    ]
    assert document["objects"][1]["proxies"] == [
        {"type": "sidecar", "namespace": "shop", "pushes": 15, "bytes": 20_000},
        {"type": "router", "namespace": "edge", "pushes": 1, "bytes": 6_000},
    ]


def test_a_control_plane_that_has_no_such_page_is_named() -> None:
    with on_port(Answers({})) as address:
        result = cli_runs.run("top", "pushes", "--monitoring", address)
    assert result.exit_code != 0
    assert "does not tell what pushes have cost" in result.stderr


def test_another_form_is_refused(planes: list[str]) -> None:
    assert 'output format "wide" not supported' in cli_runs.run("top", "pushes", *planes, "-o", "wide").stderr
