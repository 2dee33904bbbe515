"""Prints what the steps after `mizzen diff` want to know of its JSON, as lines NAME=VALUE."""

import json
import sys


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    connections = report["connections"]
    print(f"changed={str(not report['same']).lower()}")
    print(f"cut={connections['cutAtProxies'] + len(connections['podsGone'])}")
    print(f"errors={sum(finding['level'] == 'Error' for finding in report['findings'])}")


if __name__ == "__main__":
    main(sys.argv[1])
