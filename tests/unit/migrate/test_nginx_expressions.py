"""Regular expressions of nginx, held against what Envoy reads."""

import pytest

from mizzen.migrate.expressions import is_re2


@pytest.mark.parametrize(("pattern", "fits"), [("/a(/|$)(.*)", True), ("/(?!admin)", False), (r"/(a)\1", False)])
def test_what_envoy_cannot_read_is_told_and_leaves_no_words_of_a_library(pattern: str, fits: bool, capfd) -> None:
    assert is_re2(pattern) == fits
    assert capfd.readouterr().err == ""
