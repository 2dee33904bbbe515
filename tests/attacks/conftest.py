"""One mesh for all attempts, and a table of how they went."""

import os
import time
from collections.abc import Iterator

import attack_manifests
import attack_mesh
import pytest
from attack_attempts import Ledger
from attack_mesh import AttackMesh
from local_mesh import LocalMesh, running

from mizzen.local import observer

_TEST_SECONDS = 300
"""The first test waits for the mesh as well."""
_AFTERWARDS = "afterwards"
_RECORDS = pytest.StashKey[Ledger]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_AFTERWARDS}: looks at what all attempts left behind")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the mesh comes last, and in an order in which the mesh changes its ways as seldom as may be."""
    for item in items:
        if "mesh" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.local)
            item.add_marker(pytest.mark.envoy)
            item.add_marker(pytest.mark.timeout(_TEST_SECONDS))
    items.sort(key=_stage)


def _stage(item: pytest.Item) -> int:
    if "mesh" not in getattr(item, "fixturenames", ()):
        return 0
    if item.get_closest_marker(_AFTERWARDS):
        return 2 + len(attack_manifests.NORMALIZATIONS)
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    attempt = given.get("attempt")
    option = attempt.normalization if attempt else given.get("option", attack_manifests.DEFAULT_NORMALIZATION)
    return 1 + attack_manifests.NORMALIZATIONS.index(option)


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackMesh]:
    """The guarded mesh; what Envoys refuse would leave it unguarded, so they may refuse nothing."""
    manifests = tmp_path_factory.mktemp("attacks") / "manifests"
    attack_mesh.lay_manifests(manifests)
    started = time.monotonic()
    with running(LocalMesh(manifests, f"attacks-{os.getpid()}")) as local:
        mesh = AttackMesh(local)
        mesh.guard()
        print(f"guarded after {time.monotonic() - started:.1f} s")
        yield mesh
        assert observer.rejections(local.proxies()) == {}


@pytest.fixture(scope="session")
def ledger(mesh: AttackMesh, request: pytest.FixtureRequest) -> Ledger:
    """Makes attempts, each once."""
    return request.config.stash.setdefault(_RECORDS, Ledger(mesh))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The attempts that were made: what the attacker was told, what refused it, and the twin."""
    ledger = config.stash.get(_RECORDS, None)
    if ledger is None or not ledger.records:
        return
    records = ledger.records.values()
    terminalreporter.section("attacks")
    for record in records:
        terminalreporter.write_line(record.row)
    let_in, lost = (sum(found) for found in zip(*((r.attack.let_in, not r.twin.let_in) for r in records), strict=True))
    terminalreporter.write_line(
        f"{len(records)} attempts: {sum(r.refused for r in records)} refused as meant, {let_in} let in; "
        f"twins: {len(records) - lost} of {len(records)} let in"
    )
