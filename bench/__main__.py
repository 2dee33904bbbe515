"""`python -m bench [WHAT] [--services N] [--pods N] [--namespaces N] [--json FILE]`.

Everything is measured on a generated mesh. `targets` (the default) holds a running control plane and its simulated
sidecars against the targets of docs/performance.md; `compile` compiles and changes the mesh in this process; `cases`
compiles small meshes of one kind each; `cli` runs commands over the mesh as files; `kube` runs a control plane over a
real API server that has it (`--services 2000 --pods 5` are 10,000 pods); `ondemand` compares two real sidecars of a
local mesh, of which one knows hosts on demand (docs/on-demand.md, as root); `floor` is what a bare gRPC server needs
for the messages of a change. `soak` disturbs a control plane and its proxies for `--minutes`; `faults` does what may go
wrong around them. Both end with 1 where something is not as it should be.
"""

import argparse
import math
import pathlib
import signal
import sys
from collections.abc import Callable

import msgspec

from bench import cases, fault_cases, faults, figures, floor, on_demand, plot, soak, targets
from bench import cli as cli_bench
from bench import compile as compile_bench
from bench import kube as kube_bench
from bench.subjects import Commands, Folder, Place


def main() -> None:
    """Run the benchmarks and print their tables."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Its children end with it, as at Ctrl-C.
    if options.what == "faults":
        faults.enter_namespaces(sys.argv[1:])
    found: object = _WAYS[options.what](options)
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    if isinstance(found, soak.Summary | faults.Matrix) and not found.is_fine:
        raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=list(_WAYS), default="targets")
    parser.add_argument("--repeat", type=_count, default=3, help="runs of each row or command")
    parser.add_argument("--services", type=_count, default=500)
    parser.add_argument("--pods", type=_count, default=2)
    parser.add_argument("--namespaces", type=_count, default=25)
    parser.add_argument("--json", type=_file, help="also write the figures here")
    parser.add_argument("--proxies", type=_count, help="1000 for targets and floor, 500 for soak, 40 for faults")
    of_endurance = parser.add_argument_group("soak, faults")
    of_endurance.add_argument("--minutes", type=_minutes, default=20.0)
    of_endurance.add_argument("--seed", type=int, default=1)
    of_endurance.add_argument("--only", action="append", metavar="FAULT", help="this fault; may be repeated")
    of_targets = parser.add_argument_group("targets")
    of_targets.add_argument("--at-once", type=_count, default=20, help="proxies that wait for a first config together")
    of_targets.add_argument("--dialect", choices=["istio", "envoy"], default="istio")
    of_targets.add_argument("--rows", default=",".join(targets.ROWS), help="of %(default)s")
    of_targets.add_argument("--plot", type=_file, metavar="FILE.svg", help="draw figures and targets")
    of_targets.add_argument("--against", metavar="HOST:PORT", help="another control plane, for the same work")
    of_targets.add_argument("--pid", type=int, help="its process")
    of_targets.add_argument("--against-folder", type=pathlib.Path, help="the folder of objects that it watches")
    of_targets.add_argument(
        "--against-commands",
        nargs=2,
        metavar=("WRITE", "REMOVE"),
        help="or commands that give it objects of standard input: 'kubectl apply -f -' 'kubectl delete -f -'",
    )
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _minutes(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait")
    return number


def _file(text: str) -> pathlib.Path:
    path = pathlib.Path(text)
    if not path.parent.is_dir():  # Better now than after the measurement.
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def _targets(options: argparse.Namespace) -> list[figures.Figure]:
    rows = options.rows.split(",")
    unknown = sorted(set(rows) - set(targets.ROWS))
    if unknown:
        raise SystemExit(f"no such rows: {', '.join(unknown)}; there are {', '.join(targets.ROWS)}")
    if options.proxies == 1:
        raise SystemExit("--proxies: at least 2, as the first to connect is not counted")
    plan = targets.Plan(
        services=options.services,
        pods=options.pods,
        namespaces=options.namespaces,
        proxies=options.proxies or 1000,
        dialect=options.dialect,
        rows=rows,
        repeat=options.repeat,
        at_once=options.at_once,
    )
    other = _other(options)
    ours: list[list[figures.Figure]] = []
    theirs: list[list[figures.Figure]] = []
    try:
        ours.extend(targets.measure(plan))
        if other is not None:
            theirs.extend(targets.measure_other(plan, other))
    finally:
        # Whoever interrupts a long run still gets what it has found.
        found = figures.beside(figures.together(ours), figures.together(theirs))
        print(*figures.lines(found, plan.title), sep="\n")
    if options.plot is not None:
        options.plot.write_text(plot.draw(found, plan.title))
    return found


def _other(options: argparse.Namespace) -> targets.Other | None:
    if options.against is None:
        return None
    place: Place
    if options.against_folder is not None:
        place = Folder(options.against_folder)
    elif options.against_commands is not None:
        place = Commands(*options.against_commands)
    else:
        raise SystemExit("--against needs --against-folder or --against-commands, to give it objects")
    if options.pid is None:
        raise SystemExit("--against needs --pid, to read what it uses")
    return targets.Other(target=options.against, pid=options.pid, place=place)


def _compare_sidecars(options: argparse.Namespace) -> list[on_demand.Sidecar]:
    found = on_demand.run(options.services)
    on_demand.print_table(found, options.services)
    return found


def _run_commands(options: argparse.Namespace) -> list[cli_bench.Cost]:
    costs = cli_bench.run(options.services, options.pods, options.namespaces, options.repeat)
    cli_bench.print_table(costs, f"{options.services} services as files", options.repeat)
    return costs


def _follow(options: argparse.Namespace) -> list[kube_bench.Step]:
    steps = kube_bench.run(options.services, options.pods, options.namespaces, changed=1000)
    kube_bench.print_table(steps, f"{options.services} services, {options.services * options.pods} pods")
    return steps


def _compile(options: argparse.Namespace) -> dict[str, list[compile_bench.Figure]]:
    figures = {}
    for dialect in ("istio", "envoy"):
        rows = compile_bench.run(options.services, options.pods, options.namespaces, dialect)
        title = f"{options.services} services, {options.services * options.pods} proxies, dialect {dialect}"
        compile_bench.print_table(rows, title)
        figures[dialect] = rows
    return figures


def _cases(options: argparse.Namespace) -> list[cases.Cost]:
    costs = cases.run(options.repeat)
    cases.print_table(costs, options.repeat)
    return costs


def _floor(options: argparse.Namespace) -> list[floor.Floor]:
    found = floor.run(options.proxies or 1000, options.repeat)
    floor.print_table(found)
    return found


def _soak(options: argparse.Namespace) -> soak.Summary:
    summary = soak.run(options.minutes, options.proxies or 500, options.seed)
    soak.print_summary(summary)
    return summary


def _faults(options: argparse.Namespace) -> faults.Matrix:
    matrix = faults.run(fault_cases.find(options.only or ()), options.proxies or 40)
    faults.print_table(matrix)
    return matrix


_WAYS: dict[str, Callable[[argparse.Namespace], object]] = {
    "targets": _targets,
    "compile": _compile,
    "cases": _cases,
    "cli": _run_commands,
    "kube": _follow,
    "ondemand": _compare_sidecars,
    "floor": _floor,
    "soak": _soak,
    "faults": _faults,
}


if __name__ == "__main__":
    main()
