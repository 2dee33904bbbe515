"""`trace` against real Envoys: what it says of every fault is written down first, and then the requests are sent.

All faults of the catalogue are in one mesh at once. The predictions come from the objects alone, as offline; the file
that holds them is complete before the first request leaves. What is compared is what the caller got and what the
Envoys on the way wrote down.
"""

import json
import os
import pathlib
from collections.abc import Iterator

import fault_catalogue
import fault_logs
import fault_mesh
import fault_runs
import msgspec
import pytest
import traffic_mesh
from fault_runs import Compared, Foretold
from local_mesh import LocalMesh, running
from traffic_mesh import TrafficMesh

from mizzen.local import observer

_AGREE, _BLAMED, _CERTAIN = 0.99, 0.95, 0.85
_REFUSED = "sni-passthrough"
"""The one object whose fault is that it is refused."""
FAULTS = fault_catalogue.FAULTS


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrafficMesh]:
    manifests = tmp_path_factory.mktemp("truth") / "manifests"
    manifests.mkdir()
    traffic_mesh.lay_programs(manifests)
    (manifests / "base.yaml").write_text(fault_mesh.build_base())
    with running(LocalMesh(manifests, f"truth-{os.getpid()}")) as local:
        mesh = TrafficMesh(local)
        mesh.apply("faults", fault_catalogue.manifests())
        assert [error for error in mesh.errors() if _REFUSED not in error] == []
        yield mesh
        assert observer.rejections(local.proxies()) == {}


@pytest.fixture(scope="module")
def predictions(mesh: TrafficMesh, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The file of predictions, made of the manifests and the pods' addresses."""
    world = fault_runs.load_world(mesh)
    found = [fault_runs.predict(mesh, world, fault) for fault in FAULTS]
    path = tmp_path_factory.mktemp("predictions") / "predictions.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return path


@pytest.fixture(scope="module")
def compared(mesh: TrafficMesh, predictions: pathlib.Path) -> tuple[Compared, ...]:
    """Every prediction beside what happened."""
    foretold = {each.name: each for each in msgspec.json.decode(predictions.read_bytes(), type=list[Foretold])}
    met = [fault_runs.observe(mesh, fault) for fault in FAULTS]
    assert predictions.stat().st_mtime < met[0].began
    fault_runs.settle(mesh)
    lines = fault_runs.read_lines(mesh)
    return tuple(
        fault_runs.compare(fault, foretold[fault.name], seen, lines) for fault, seen in zip(FAULTS, met, strict=True)
    )


def test_the_families_are_there() -> None:
    assert sum(1 for fault in FAULTS if fault.cause) >= 120
    assert sum(1 for fault in FAULTS if fault.family == "healthy" and not fault.cause) >= 25
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_what_happens_is_what_was_said(compared: tuple[Compared, ...]) -> None:
    wrong = [each for each in compared if not each.agrees]
    assert len(wrong) <= (1 - _AGREE) * len(compared), _describe(wrong)


def test_no_certain_prediction_is_wrong(compared: tuple[Compared, ...]) -> None:
    wrong = [each for each in compared if each.foretold.certain and each.wrong]
    assert not wrong, _describe(wrong)


def test_most_predictions_are_certain(compared: tuple[Compared, ...]) -> None:
    unsure = [each for each in compared if not each.foretold.certain]
    assert len(unsure) <= (1 - _CERTAIN) * len(compared), "\n".join(
        f"{each.fault.name}: {each.foretold.depends_on}" for each in unsure
    )


def test_the_broken_object_is_named(compared: tuple[Compared, ...]) -> None:
    named = [each for each in compared if each.foretold.cause == each.fault.cause]
    other = [each for each in compared if each not in named]
    broken = [each for each in compared if each.fault.cause]
    right = sum(1 for each in broken if each in named)
    assert right >= _BLAMED * len(broken), "\n".join(
        f"{each.fault.name}: {each.foretold.cause or 'nothing'} for {each.fault.cause or 'nothing'}" for each in other
    )


def test_the_logs_alone_lead_to_the_broken_objects(mesh: TrafficMesh, compared: tuple[Compared, ...]) -> None:
    """Of faults that left a line; a log has neither headers nor tokens, nor what an authorizer thought."""
    told = fault_logs.accused(compared, fault_runs.load_world(mesh))
    broken = [each for each in compared if each.fault.cause and told.get(each.fault.name)]
    wrong = [each for each in broken if each.fault.cause not in told[each.fault.name]]
    listed = "\n".join(f"{each.fault.name}: {told[each.fault.name]} for {each.fault.cause}" for each in wrong)
    print(f"logs: {len(broken) - len(wrong)} of {len(broken)}\n{listed}")
    assert len(broken) >= 120
    assert len(wrong) <= (1 - _BLAMED) * len(broken), listed


def test_nothing_is_blamed_where_nothing_is_broken(compared: tuple[Compared, ...]) -> None:
    blamed = [
        f"{each.fault.name}: {each.foretold.cause}" for each in compared if not each.fault.cause and each.foretold.cause
    ]
    assert not blamed


def test_the_matrix_is_printed(compared: tuple[Compared, ...], capsys: pytest.CaptureFixture[str]) -> None:
    agree = sum(each.agrees for each in compared)
    exact = sum(not each.wrong for each in compared)
    broken = [each for each in compared if each.fault.cause]
    named = sum(each.foretold.cause == each.fault.cause for each in broken)
    certain = sum(each.foretold.certain for each in compared)
    with capsys.disabled():
        print(f"\n{fault_runs.confusion(compared)}\n\n{fault_runs.by_family(compared)}\n")
        print(
            f"truth: {len(compared)} requests, {agree} agree in status and flag, {exact} in details too;"
            f" {certain} certain; the cause is named for {named} of {len(broken)}"
        )


def test_a_running_mesh_is_asked_itself(mesh: TrafficMesh) -> None:
    asked = ("--from", "client.traffic", "http://well-http/", "-o", "json")
    done = mesh.local.run("trace", "--mesh", mesh.local.name, *asked)
    found = json.loads(done.stdout)
    assert (found["outcome"], found["status"], found["certain"]) == ("delivered", 200, True)
    assert "is not what the control plane says" not in done.stderr
    assert list(dict.fromkeys(step["side"] for step in found["steps"])) == ["client.traffic", "near.traffic"]


def test_dumps_of_both_sides_are_enough(mesh: TrafficMesh, tmp_path: pathlib.Path) -> None:
    files = []
    for name in ("client", "near"):
        path = tmp_path / f"{name}.json"
        path.write_text(observer.ask_envoy(mesh.pod(name), "/config_dump?include_eds"))
        files += ["--file", str(path)]
    (address,) = mesh["client"].resolve("well-http")
    asked = ("--from", "client.traffic", "--connect-to", address, "http://well-http/", "-o", "json")
    found = json.loads(mesh.local.run("trace", *files, *asked).stdout)
    assert (found["outcome"], found["status"]) == ("delivered", 200)
    assert [step["title"] for step in found["steps"] if step["link"] == "cluster"] == [
        "cluster outbound|80||well-http.traffic.svc.cluster.local",
        "cluster inbound|8080||",
    ]
    assert any(step["title"] == "mutual TLS agrees" for step in found["steps"])


def _describe(compared: list[Compared]) -> str:
    return "\n".join(
        f"{each.fault.name}: {'; '.join(each.wrong)}\n    certain: {each.foretold.certain} {each.foretold.depends_on},"
        f" {each.foretold.reason}\n    " + "\n    ".join(line.text[:200] for line in each.lines)
        for each in compared
    )
