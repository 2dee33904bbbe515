"""All attempts, those together that are made under the same way of the mesh to normalize paths."""

import attack_control
import attack_edge
import attack_identity
import attack_paths
import attack_requests
import attack_tokens
from attack_attempts import Attempt
from attack_manifests import NORMALIZATIONS

_FAMILIES = (attack_identity, attack_requests, attack_tokens, attack_edge, attack_control, attack_paths)


def collect() -> tuple[Attempt, ...]:
    """Every attempt of every family; names are had once."""
    found = [attempt for family in _FAMILIES for attempt in family.ATTEMPTS]
    names = [attempt.name for attempt in found]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return tuple(sorted(found, key=lambda attempt: NORMALIZATIONS.index(attempt.normalization)))


ATTEMPTS = collect()
