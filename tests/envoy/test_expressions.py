"""A real Envoy takes the expressions that are taken for such, and refuses a route for the others."""

import pathlib

import pytest
from envoy_validation import takes_connection_manager
from expression_cases import EXPRESSIONS

pytestmark = pytest.mark.envoy


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_envoy_agrees(tmp_path: pathlib.Path, name: str) -> None:
    text, taken = EXPRESSIONS[name]
    route = {"match": {"safe_regex": {"regex": text}}, "direct_response": {"status": 200}}
    assert takes_connection_manager(tmp_path, routes=(route,)) is taken
