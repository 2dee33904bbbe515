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
_DIFFERENT = 1
"""How `diff` ends over two states that are not the same."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """One command, at its best."""

    name: str
    cpu_seconds: float
    wall_seconds: float


def write_mesh(folder: pathlib.Path, services: int, pods: int, namespaces: int) -> None:
    """A mesh as files, one object each, as `kubectl get -o yaml` and renderers leave them; pods have their sidecars."""
    for document in meshes.documents(services, pods, namespaces):
        if document["kind"] == "Pod":
            document["spec"]["containers"].append({"name": "istio-proxy", "image": "proxy"})
        _write(folder, document)


def _write(folder: pathlib.Path, document: meshes.Document) -> None:
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
        folder, edited = pathlib.Path(name) / "mesh", pathlib.Path(name) / "edited"
        for place in (folder, edited):
            place.mkdir()
            write_mesh(place, services, pods, namespaces)
        _write(edited, meshes.destination_rule(0, namespaces, 200))
        mesh, client = str(folder), "svc-0-0.ns-0"
        commands: dict[str, Sequence[str]] = {
            "mizzen --help": ("--help",),
            "mizzen compile": ("compile", "-f", mesh, "--proxy", client),
            "mizzen analyze": ("analyze", "-A", "--use-kube=false", "-o", "json", mesh),
            "mizzen validate": ("validate", "-f", mesh),
            "mizzen describe pod": ("describe", "pod", client, "-f", mesh),
            "mizzen trace": ("trace", "-f", mesh, "--from", client, "http://svc-0.ns-0/"),
            "mizzen tls-check": ("tls-check", "-f", mesh, "--all"),
            "mizzen diff": ("diff", mesh, str(edited)),
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
    if process.returncode != (_DIFFERENT if arguments[0] == "diff" else 0):
        raise SystemExit(f"mizzen {' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def print_table(costs: Sequence[Cost], title: str, repeat: int) -> None:
    """The rows for people."""
    print(f"{title}; best of {repeat}")
    print(f"{'command':<20} {'CPU s':>8} {'wall s':>8}")
    for cost in costs:
        print(f"{cost.name:<20} {cost.cpu_seconds:>8.2f} {cost.wall_seconds:>8.2f}")
    print()
