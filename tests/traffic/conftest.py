"""One mesh for all behaviours: their manifests are applied at once, by an edit of the watched directory."""

import os
import time
from collections.abc import Iterator

import pytest
import traffic_mesh
from local_mesh import LocalMesh, running
from traffic_gateway_api import Door
from traffic_mesh import TrafficMesh
from traffic_programs import Program, Programs

from mizzen.local import observer

_MARK = "behaviour"
_TEST_SECONDS = 300
"""The first test waits for the mesh as well."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}(*manifests): shows one behaviour of the mesh under these manifests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker(_MARK):
            item.add_marker(pytest.mark.local)
            item.add_marker(pytest.mark.envoy)
            item.add_marker(pytest.mark.timeout(_TEST_SECONDS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many behaviours were shown."""
    reports = [report for report in terminalreporter.stats.get("passed", []) if _MARK in report.keywords]
    if reports:
        seconds = sum(report.duration for report in reports)
        terminalreporter.write_line(f"traffic: {len(reports)} behaviours shown, {seconds:.0f} s")


@pytest.fixture(scope="session")
def mesh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrafficMesh]:
    """The mesh with the manifests of every collected test in force; nothing of them may be ignored or refused."""
    manifests = tmp_path_factory.mktemp("traffic") / "manifests"
    manifests.mkdir()
    traffic_mesh.lay_programs(manifests)
    on_demand = bool(os.environ.get("TRAFFIC_ON_DEMAND"))
    (manifests / "base.yaml").write_text(traffic_mesh.build_base(on_demand=on_demand))
    started = time.monotonic()
    with running(LocalMesh(manifests, f"traffic-{os.getpid()}")) as local:
        mesh = TrafficMesh(local, on_demand=on_demand)
        ready = time.monotonic()
        texts = _collect(request.session.items)
        mesh.apply("behaviours", texts)
        print(
            f"ready in {ready - started:.1f} s, {len(texts)} manifests in force {time.monotonic() - ready:.1f} s later"
        )
        assert not mesh.errors(), "\n".join(mesh.errors())
        yield mesh
        assert observer.rejections(local.proxies()) == {}


def _collect(items: list[pytest.Item]) -> list[str]:
    """The manifests of all collected tests; those of a test with parameters once."""
    texts = (text for item in items for mark in item.iter_markers(_MARK) for text in mark.args)
    return list(dict.fromkeys(texts))


@pytest.fixture
def client(mesh: TrafficMesh) -> Program:
    return mesh["client"]


@pytest.fixture
def asker(mesh: TrafficMesh) -> Program:
    """Its sidecar knows hosts on demand."""
    return mesh["asker"]


@pytest.fixture
def visitor(mesh: TrafficMesh) -> Program:
    return mesh["visitor"]


@pytest.fixture
def scoped(mesh: TrafficMesh) -> Program:
    return mesh["scoped"]


@pytest.fixture
def outer(mesh: TrafficMesh) -> Program:
    return mesh["outer"]


@pytest.fixture
def entrance(mesh: TrafficMesh, outer: Program) -> Door:
    """The managed Gateway, asked from outside the mesh."""
    return Door(outer, mesh.pod("door-istio").address)


@pytest.fixture
def echoes(mesh: TrafficMesh) -> Programs:
    return mesh.echoes
