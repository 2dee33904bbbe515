"""Whether a random share is what it should be."""

import math


def assert_share(hits: int, total: int, share: float) -> None:
    """Within 5.5 standard deviations: one run in five million fails by chance. Nothing and all must be just that."""
    assert abs(hits - share * total) <= 5.5 * math.sqrt(share * (1 - share) * total), (
        f"{hits} of {total} is not {share}"
    )
