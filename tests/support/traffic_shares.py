"""Whether a random share is what it should be."""

import math


def assert_share(hits: int, total: int, share: float) -> None:
    """Within five standard deviations: one run in two million fails by chance. Nothing and all must be just that."""
    assert abs(hits - share * total) <= 5 * math.sqrt(share * (1 - share) * total), f"{hits} of {total} is not {share}"
