"""The compiler held against what the reference control plane served, and against itself."""

import random

import golden
import pytest

from mizzen.compile import snapshot
from mizzen.incremental import Engine

CASES = ["base", *golden.case_names("networking", "gateway", "security", "telemetry")]


@pytest.mark.parametrize("name", ["base", *golden.case_names()])
def test_every_resource_equals_the_recording(name: str) -> None:
    case = golden.load_case(name)
    golden.assert_told(golden.engine_of(case), case, golden.expected)


def versions(db: Engine, case: golden.Case, dialect: str = "istio") -> dict[str, dict[str, str]]:
    """The version of every resource that every proxy of a case is told."""
    return {
        name: {
            f"{kind}/{r.name}": r.version
            for kind, found in snapshot.everything(db, golden.proxy_of(case, name, dialect)).items()
            for r in found
        }
        for name in case.look_from
    }


@pytest.mark.parametrize("dialect", ["istio", "envoy"])
@pytest.mark.parametrize("name", CASES)
def test_incremental_equals_from_scratch_in_any_order(name: str, dialect: str) -> None:
    """Objects come one by one in random order, some twice, some as noise that goes again; in between proxies ask."""
    case = golden.load_case(name)
    want = versions(golden.engine_of(case), case, dialect)
    rng = random.Random(name + dialect)
    documents = list(case.objects)
    rng.shuffle(documents)
    db = golden.engine_of(case._replace(objects=()))
    for i, document in enumerate(documents):
        golden.set_object(db, document)
        if rng.random() < 0.1:
            proxy = golden.proxy_of(case, rng.choice(case.look_from), dialect)
            snapshot.everything(db, proxy)
        if rng.random() < 0.15:
            gone = rng.choice(documents[: i + 1])
            golden.remove_object(db, gone)
            if rng.random() < 0.5:
                snapshot.everything(db, golden.proxy_of(case, rng.choice(case.look_from), dialect))
            golden.set_object(db, gone)
        if rng.random() < 0.1:
            db.collect()
    assert versions(db, case, dialect) == want
