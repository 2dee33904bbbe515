"""What commands cost: CPU seconds of whole processes over a mesh of files, the best of several runs.

Whole processes, since start-up, imports and reading files are most of what a person waits for. CPU seconds are those
that the kernel counts for the child, so that other work on the machine disturbs them little; `--help` is told in wall
seconds too, for it is the answer that shell completion and people wait for.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import msgspec

from bench import meshes

_MIZZEN = pathlib.Path(sys.executable).with_name("mizzen")


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """One command, at its best."""

    name: str
    cpu_seconds: float
    wall_seconds: float


def write_mesh(folder: pathlib.Path, services: int, pods: int, namespaces: int) -> None:
    """A mesh as files, one object each, as `kubectl get -o yaml` and renderers leave them."""
    for document in meshes.documents(services, pods, namespaces):
        meta = document["metadata"]
        place = folder / meta.get("namespace", "cluster")
        place.mkdir(exist_ok=True)
        (place / f"{document['kind'].lower()}-{meta['name']}.yaml").write_text(_yaml(document))


def _yaml(value: object, indent: str = "") -> str:
    """Block style YAML of plain data; scalars as JSON, which is YAML too."""
    if isinstance(value, dict) and value:
        return "".join(f"{indent}{json.dumps(key)}:{_nested(each, indent)}" for key, each in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{indent}-{_nested(each, indent)}" for each in value)
    return f"{indent}{json.dumps(value)}\n"


def _nested(value: object, indent: str) -> str:
    if isinstance(value, (dict, list)) and value:
        return "\n" + _yaml(value, indent + "  ")
    return f" {json.dumps(value)}\n"


def run(services: int, pods: int, namespaces: int, repeat: int) -> list[Cost]:
    """The table's rows."""
    with tempfile.TemporaryDirectory(prefix="mizzen-bench-") as name:
        folder = pathlib.Path(name)
        write_mesh(folder, services, pods, namespaces)
        commands: dict[str, Sequence[str]] = {
            "mizzen --help": ("--help",),
            "mizzen compile": ("compile", "-f", name, "--proxy", "svc-0-0.ns-0"),
            "mizzen analyze": ("analyze", "-A", "--use-kube=false", "-o", "json", name),
            "mizzen validate": ("validate", "-f", name),
        }
        return [_best(title, arguments, repeat) for title, arguments in commands.items()]


def _best(title: str, arguments: Sequence[str], repeat: int) -> Cost:
    costs = [_measure(arguments) for _ in range(repeat)]
    return Cost(name=title, cpu_seconds=min(cpu for cpu, _ in costs), wall_seconds=min(wall for _, wall in costs))


def _measure(arguments: Sequence[str]) -> tuple[float, float]:
    """CPU and wall seconds of one process; what it finds is not the matter, but it must end by itself."""
    start = time.perf_counter()
    process = subprocess.Popen([_MIZZEN, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"mizzen {' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def print_table(costs: Sequence[Cost], title: str, repeat: int) -> None:
    """The rows for people."""
    print(f"{title}; best of {repeat}")
    print(f"{'command':<20} {'CPU s':>8} {'wall s':>8}")
    for cost in costs:
        print(f"{cost.name:<20} {cost.cpu_seconds:>8.2f} {cost.wall_seconds:>8.2f}")
    print()
