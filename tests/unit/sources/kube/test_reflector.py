"""How long a reflector waits for an API server that fails."""

import pytest

from mizzen.sources.kube.reflector import Timing


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (8, 30.0), (10_000, 30.0)]
)
def test_waits_double_up_to_a_bound_and_are_spread(failures: int, longest: float) -> None:
    waits = [Timing().wait_after(failures) for _ in range(200)]
    assert all(longest / 2 <= wait <= longest for wait in waits)
    assert len(set(waits)) > 100, "replicas that lost the same server do not come back as one"
