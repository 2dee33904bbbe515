"""How long a reflector waits for an API server that fails, and what it takes for the same object as before."""

import msgspec
import pytest

from mizzen.sources.kube.reading import Reader
from mizzen.sources.kube.reflector import Held, Timing, _is_same
from mizzen.sources.kube.served import SERVED_KINDS, Resource


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (8, 30.0), (10_000, 30.0)]
)
def test_waits_double_up_to_a_bound_and_are_spread(failures: int, longest: float) -> None:
    waits = [Timing().wait_after(failures) for _ in range(200)]
    assert all(longest / 2 <= wait <= longest for wait in waits)
    assert len(set(waits)) > 100, "replicas that lost the same server do not come back as one"


def held(version: str, **metadata: object) -> Held:
    """A plugin, of which the version counts: a module is fetched anew with each."""
    kind = next(kind for kind in SERVED_KINDS if kind.kind == "WasmPlugin")
    head = {"name": "a", "namespace": "shop", "resourceVersion": version, **metadata}
    found = Reader(Resource(kind, kind.versions[0])).read(
        msgspec.json.encode({"metadata": head, "spec": {"url": "oci://example/a"}})
    )
    return Held(found.resource_version, found.object, found.problems)


def test_another_version_of_one_generation_is_the_same_object_and_any_other_is_not() -> None:
    assert _is_same(held("1", generation=1), held("2", generation=1))
    assert not _is_same(held("1", generation=1), held("2", generation=2))
    assert not _is_same(held("1"), held("2")), "of generations nothing was said"
