"""The forecast of cut connections, held against real Envoys: a hundred open WebSockets, one edit after the other.

Before each edit is made, `mizzen diff` is asked from the two states' files alone what becomes of the open connections
of each flow. Then the mesh gets the edit, and each WebSocket is asked whether it is still there.
"""

import json
import os
import pathlib
from collections.abc import Iterator

import cli_runs
import disruption_mesh
import msgspec
import pytest
import yaml
from disruption_edits import EDITS
from disruption_manifests import START
from disruption_mesh import FLOWS, DisruptionMesh, Flow
from local_mesh import LocalMesh, running

pytestmark = [pytest.mark.local, pytest.mark.envoy, pytest.mark.timeout(1800)]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One edit and one flow: what was foretold, and what became of its WebSockets."""

    edit: str
    flow: str
    foretold: str
    why: str
    alive: int
    cut: int

    @property
    def is_right(self) -> bool:
        if self.foretold == "is cut":
            return self.alive == 0
        return self.foretold == "stays" and self.cut == 0

    def __str__(self) -> str:
        mark = "  " if self.is_right else "! "
        return f"{mark}{self.edit:42} {self.flow:8} {self.foretold:10} {self.cut:3} of {self.alive + self.cut:3} cut"


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DisruptionMesh]:
    manifests = tmp_path_factory.mktemp("disruption") / "manifests"
    disruption_mesh.lay_program(manifests)
    disruption_mesh.write(manifests, START, 0)
    with running(LocalMesh(manifests, f"disruption-{os.getpid()}")) as local:
        yield DisruptionMesh(local)


def foretell(folder: pathlib.Path, flows: tuple[Flow, ...]) -> dict[str, object]:
    """What `mizzen diff` says of the step from `before` to `after`."""
    probes = folder / "probes.yaml"
    probes.write_text(yaml.safe_dump([flow.probe() for flow in flows]))
    done = cli_runs.run("diff", folder / "before", folder / "after", "--probe", probes, "-o", "json")
    assert done.exit_code in (0, 1), done.stderr
    return dict(json.loads(done.stdout))


def test_connections_are_cut_where_the_forecast_says(mesh: DisruptionMesh, tmp_path: pathlib.Path) -> None:
    assert sum(flow.count for flow in FLOWS) == 100
    assert len(EDITS) >= 30
    state, alive = dict(START), dict.fromkeys((flow.name for flow in FLOWS), 0)
    mesh.apply(state, 0)
    rows: list[Row] = []
    for number, edit in enumerate(EDITS, 1):
        for flow in FLOWS:
            mesh.fill(flow, alive[flow.name])
        after = edit.apply(state)
        disruption_mesh.write(tmp_path / "before", state, number - 1)
        disruption_mesh.write(tmp_path / "after", after, number)
        said = foretell(tmp_path, FLOWS)
        probes = {probe["name"]: probe["connection"] for probe in said["probes"]}  # type: ignore[attr-defined]
        pods = said["pods"]
        mesh.apply(after, number, tuple(pods["gone"]))  # type: ignore[index]
        for flow in FLOWS:
            left, cut = mesh.check(flow)
            assert left + cut == flow.count
            fate = probes[flow.name]
            rows.append(
                Row(edit=edit.name, flow=flow.name, foretold=fate["outcome"], why=fate["why"], alive=left, cut=cut)
            )
            alive[flow.name] = left
        print("\n".join(map(str, rows[-len(FLOWS) :])), flush=True)
        state = after
    wrong = [f"{row}: {row.why}" for row in rows if not row.is_right]
    assert not wrong, "\n".join(wrong)
    # The edits are of both sorts, or nothing would be shown.
    assert {row.foretold for row in rows} == {"is cut", "stays"}


def test_nothing_was_refused(mesh: DisruptionMesh) -> None:
    from mizzen.local import observer

    assert observer.rejections(mesh.local.proxies()) == {}
