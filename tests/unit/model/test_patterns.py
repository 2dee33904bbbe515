"""Which expressions Envoy takes; tests/envoy asks it itself."""

import pytest
from expression_cases import EXPRESSIONS

from mizzen.model import patterns


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_is_what_envoy_compiles_within_its_bounds(name: str) -> None:
    text, taken = EXPRESSIONS[name]
    assert patterns.is_expression(text) is taken


def test_half_a_character_is_no_expression() -> None:
    assert not patterns.is_expression("\ud800")
