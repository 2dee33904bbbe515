"""Which key sets Envoy reads; tests/envoy asks it itself."""

import pytest
from key_set_cases import SETS

from mizzen.compile.security import key_sets


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_readable_by_one_key_that_is(name: str) -> None:
    text, readable = SETS[name]
    assert key_sets.is_readable(text) is readable
