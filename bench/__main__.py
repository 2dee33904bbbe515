"""`python -m bench [compile|cli|kube] [--services N] [--pods N] [--namespaces N] [--json FILE]`: a generated mesh.

`compile` (the default) compiles and changes it in this process; `cli` runs commands over it as files;
`kube` runs a control plane over a real API server that has it (`--services 2000 --pods 5` are 10,000 pods).
"""

import argparse
import pathlib

import msgspec

from bench import cli as cli_bench
from bench import compile as compile_bench
from bench import kube as kube_bench


def main() -> None:
    """Run the benchmarks and print their tables."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["compile", "cli", "kube"], default="compile")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each command")
    parser.add_argument("--services", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2)
    parser.add_argument("--namespaces", type=int, default=25)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    ways = {"compile": _compile, "cli": _run_commands, "kube": _follow}
    figures: object = ways[options.what](options)
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))


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


if __name__ == "__main__":
    main()
