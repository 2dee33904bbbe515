"""The table of analyzers, and that a change runs no rule that it does not touch."""

import pathlib
from typing import Any

import analysed

from mizzen.analysis import analyzers, objects
from mizzen.analysis.cluster import CONDITIONS, CRD, MUTATING, VALIDATING
from mizzen.api.kinds import KINDS
from mizzen.incremental import Engine

COMMON = analysed.read_yaml(pathlib.Path(__file__).parent / "codes.yaml")["common"]


def _service(name: str, **labels: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": spec,
    }


def _route(name: str, host: str, to: str) -> dict[str, Any]:
    spec = {"hosts": [host], "http": [{"route": [{"destination": {"host": to}}]}]}
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def _mesh(size: int) -> Engine:
    services = [_service(f"s{n}") for n in range(size)]
    routes = [_route(f"s{n}", f"s{n}", f"s{n}") for n in range(size)]
    return analysed.engine_of([*COMMON, *services, *routes])


def _runs_of_change(size: int, raw: dict[str, Any]) -> tuple[int, int]:
    """Rule runs of the first analysis and of the one after a change."""
    engine = _mesh(size)
    analysed.find(engine)
    first = engine.runs
    analysed.put(engine, raw)
    analysed.find(engine)
    return first, engine.runs - first


def test_names_are_unique_and_sorted() -> None:
    names = [analyzer.name for analyzer in analyzers.ANALYZERS]
    assert names == sorted(set(names))


def test_every_kind_that_a_rule_asks_for_exists() -> None:
    known = {kind.name for kind in KINDS} | {CRD, MUTATING, VALIDATING, CONDITIONS}
    asked = {kind for analyzer in analyzers.ANALYZERS for kinds, _ in analyzer.checks for kind in kinds}
    assert asked <= known


def test_only_named_analyzers_run_and_all_if_no_name_exists() -> None:
    engine = analysed.engine_of(COMMON)
    named = analyzers.select(engine, ["service.PortNameAnalyzer", "no.Such"])
    assert [analyzer.name for analyzer in named.executed] == ["service.PortNameAnalyzer"]
    everything = analyzers.select(engine, ["no.Such"])
    assert len(everything.executed) + len(everything.skipped) == len(analyzers.ANALYZERS)
    assert [analyzer.name for analyzer in everything.skipped] == ["services.MultiClusterServiceAnalyzer"]


def test_a_changed_route_runs_as_many_rules_in_a_large_mesh_as_in_a_small_one() -> None:
    change = _route("s3", "s3", "s4")
    _, small = _runs_of_change(10, change)
    first, large = _runs_of_change(200, change)
    assert large == small
    assert large < first / 20


def test_an_object_written_again_unchanged_runs_nothing() -> None:
    assert _runs_of_change(10, _route("s3", "s3", "s3"))[1] == 0


def test_findings_after_changes_equal_those_from_scratch() -> None:
    engine = _mesh(10)
    analysed.find(engine)
    changes = [_route("s3", "s3", "nobody"), _service("s4", version="2"), _route("s11", "s3", "s3"), _service("late")]
    for raw in changes:
        analysed.put(engine, raw)
        analysed.find(engine)
    engine.remove(objects.keys(engine, "Service")[0])
    fresh = analysed.engine_of([])
    for kind in ("Namespace", "Pod", "Service", "VirtualService"):
        for key in objects.keys(engine, kind):
            fresh.set(key, engine.peek(key))
    assert sorted(analysed.find(engine), key=str) == sorted(analysed.find(fresh), key=str)


def test_a_template_stands_for_pods_until_one_is_known() -> None:
    template = {"metadata": {"labels": {"app": "late"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
    spec = {"selector": {"matchLabels": {"app": "late"}}, "template": template}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "late", "namespace": "shop"},
        "spec": spec,
    }
    engine = analysed.engine_of([*COMMON, deployment])
    labels = (("app", "late"),)
    assert [key.kind for key in objects.matching_pods(engine, "shop", labels)] == ["Deployment"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "late-0", "namespace": "shop", "labels": {"app": "late"}},
        "spec": template["spec"],
    }
    analysed.put(engine, pod)
    assert [key.kind for key in objects.matching_pods(engine, "shop", labels)] == ["Pod"]
