"""The benchmark of targets on real processes: who is told what, and the same work for another control plane."""

import pathlib
import subprocess
import sys
import time

import pytest

from bench import serving, targets
from bench.figures import beside, together
from bench.subjects import Folder

PODS, NAMESPACES = 1, 2


def a_plan(*rows: str, **more) -> targets.Plan:
    sizes = {"services": 5, "pods": PODS, "namespaces": NAMESPACES, "proxies": 6, "repeat": 1, "at_once": 3}
    return targets.Plan(**{**sizes, "dialect": "istio", "rows": rows, **more})


def test_rows_tell_who_was_told_and_what_it_cost():
    found = together(targets.measure(a_plan("connect", "vs", "authz", "peerauth", "reconnect", "lag", "mtls")))
    values = {(figure.row, figure.name): figure.value for figure in found}
    told = {row: value for (row, name), value in values.items() if name == "proxies told"}
    # Proxy 5 is a further replica of the only pod of service 0, whose namespace has services 0, 2 and 4.
    assert told == {
        "VirtualService": 6,
        "AuthorizationPolicy, one workload": 2,
        "PeerAuthentication, one namespace": 4,
    }
    assert values["connect 6 proxies", "seconds"] > 0
    assert values["connect 6 proxies", "first config"] > 10
    assert values["memory", "base resident"] > 20
    assert ("memory", "a connection, mTLS") in values
    assert values["VirtualService", "p99"] >= 0.1, "the debounce is part of it"
    assert values["reconnect storm, with versions", "clusters, listeners"] == 0
    assert values["reconnect storm, with versions", "endpoints, routes"] > 0
    assert values["lateness during pushes", "not answered"] == 0


def test_edits_that_change_nothing_are_counted_and_cost_no_byte():
    found = together(targets.measure(a_plan("nothing")))
    values = {figure.name: figure.value for figure in found}
    assert (values["edits"], values["bytes"], values["query runs"]) == (32, 0, 0)


def test_another_control_plane_does_the_same_work(tmp_path: pathlib.Path):
    plan = a_plan("connect", "sidecar")
    folder = Folder(tmp_path / "config")
    folder.path.mkdir()
    with serving.serve(folder.path, tmp_path / "state") as plane:
        other = targets.Other(target=plane.target(), pid=plane.pid, place=folder)
        theirs = together(targets.measure_other(plan, other))
    compared = beside(together(targets.measure(plan)), theirs)
    told = next(each for each in compared if each.name == "proxies told")
    assert told.value == told.other == 4
    assert all(figure.others for figure in compared)


def test_usage_is_that_of_the_whole_family():
    # The parent only waits; what is used, in processor time and in memory, is the child's, until its input ends.
    work = "import select, sys\nheld = b'x' * 50_000_000\nwhile not select.select([sys.stdin], [], [], 0)[0]: pass"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {work!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE) as process:
        start = serving.measure_usage(process.pid)
        while (usage := serving.measure_usage(process.pid)).cpu_seconds < start.cpu_seconds + 1:
            time.sleep(0.05)
        alone = pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]
        assert usage.resident_kb > 4 * int(alone) + 40_000
        process.communicate()


def test_a_control_plane_that_does_not_start_is_told_with_its_log(tmp_path: pathlib.Path):
    (tmp_path / "config").mkdir()
    with (
        pytest.raises(SystemExit, match=r"(?s)did not get ready.*No such option"),
        serving.serve(tmp_path / "config", tmp_path / "state", None, "--no-such-option"),
    ):
        raise AssertionError("never reached")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--json", "/missing/figures.json"], "there is no folder /missing"),
        (["--plot", "/missing/figures.svg"], "there is no folder /missing"),
        (["soak", "--minutes", "0"], "0 is no time to wait"),
        (["soak", "--minutes", "nan"], "nan is no time to wait"),
        (["--proxies", "0"], "0 is less than 1"),
    ],
)
def test_what_cannot_be_measured_or_kept_is_refused_before_anything_starts(words, told):
    done = subprocess.run([sys.executable, "-m", "bench", *words], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert told in done.stderr
