"""What goes wrong around a control plane takes nothing away and holds up nobody: the matrix of faults, with few proxies."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]


def slow(name: str) -> object:
    """Takes a minute or more by its nature."""
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "fault",
    [
        "source unmounted",
        "source renamed away",
        slow("clock jumps"),
        "disk full",
        slow("SIGSTOP"),
        "half-open connections",
        "10x push storm",
        "a proxy rejects everything",
        slow("proxies stop reading"),
        "proxies lie about who they are",
    ],
)
def test_nothing_is_lost_and_nobody_is_stuck(fault: str, tmp_path: pathlib.Path) -> None:
    found = tmp_path / "found.json"
    command = [sys.executable, "-m", "bench", "faults", "--only", fault, "--proxies", "6", "--json", str(found)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [outcome] = json.loads(found.read_text())["outcomes"]
    assert (outcome["lost"], outcome["stuck"], outcome["wrong"]) == (0, 0, [])


def test_every_fault_of_the_matrix_is_tested() -> None:
    command = [sys.executable, "-m", "bench", "faults", "--only", "none of them"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    [mark] = [mark for mark in test_nothing_is_lost_and_nobody_is_stuck.pytestmark if mark.name == "parametrize"]
    names = [getattr(each, "values", (each,))[0] for each in mark.args[1]]
    assert done.stderr.rpartition("there are ")[2].strip() == ", ".join(names)
