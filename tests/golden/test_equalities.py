"""The same answers however they are asked for: in another process, with another hash seed, in another order."""

import json
import os
import random
import subprocess
import sys

import golden
import pytest

from mizzen.compile import snapshot

SEEDS = ("0", "1", "4711")
CASES = ["base", *golden.case_names()]

_PRINT_VERSIONS = """
import json, sys
import golden
from mizzen.compile import snapshot
told = {}
for name in sys.argv[1:]:
    case = golden.load_case(name)
    for dialect in ("istio", "envoy"):
        db = golden.engine_of(case)
        for proxy in case.look_from:
            found = snapshot.everything(db, golden.proxy_of(case, proxy, dialect))
            told[f"{name} {dialect} {proxy}"] = {kind: resources.version for kind, resources in found.items()}
json.dump(told, sys.stdout)
"""


def versions_with_seed(seed: str) -> dict[str, dict[str, str]]:
    """The version of everything that every proxy of the corpus is told, by a process of its own."""
    support = os.path.dirname(golden.__file__)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": support}
    command = [sys.executable, "-c", _PRINT_VERSIONS, *CASES]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


@pytest.mark.timeout(300)
def test_processes_with_different_hash_seeds_agree() -> None:
    first, *others = (versions_with_seed(seed) for seed in SEEDS)
    assert len(first) > 300
    for other in others:
        assert other == first


@pytest.mark.parametrize("name", CASES)
def test_shuffled_input_equals_sorted(name: str) -> None:
    case = golden.load_case(name)
    rng = random.Random(name)
    shuffled = case._replace(objects=tuple(rng.sample(case.objects, len(case.objects))))
    for proxy in case.look_from:
        one = snapshot.everything(golden.engine_of(case), golden.proxy_of(case, proxy))
        two = snapshot.everything(golden.engine_of(shuffled), golden.proxy_of(shuffled, proxy))
        assert {k: v.version for k, v in one.items()} == {k: v.version for k, v in two.items()}
