"""`python -m bench [--services N] [--pods N] [--namespaces N] [--json FILE]`: compile and change a generated mesh."""

import argparse
import pathlib

import msgspec

from bench import compile as compile_bench


def main() -> None:
    """Run the benchmarks and print their tables."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--services", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2)
    parser.add_argument("--namespaces", type=int, default=25)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    figures = {}
    for dialect in ("istio", "envoy"):
        rows = compile_bench.run(options.services, options.pods, options.namespaces, dialect)
        title = f"{options.services} services, {options.services * options.pods} proxies, dialect {dialect}"
        compile_bench.print_table(rows, title)
        figures[dialect] = rows
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))


if __name__ == "__main__":
    main()
