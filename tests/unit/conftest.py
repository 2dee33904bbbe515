"""What unit tests share."""

import pathlib
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture
def short_path() -> Iterator[pathlib.Path]:
    """A folder for sockets, whose paths have 107 bytes at most: that of `tmp_path` is as long as TMPDIR makes it."""
    with tempfile.TemporaryDirectory(prefix="mizzen-", dir="/tmp") as name:
        yield pathlib.Path(name)
