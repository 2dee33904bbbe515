"""Both images, built once, and one mesh of them."""

import pathlib
import tempfile
from collections.abc import Iterator

import pytest
from image_build import ROOT, Builder, Image
from image_mesh import Mesh
from pod_net import network


@pytest.fixture(scope="session")
def images() -> dict[str, Image]:
    """The images by the names of their Dockerfiles; what they are made of is kept for the next run."""
    builder = Builder(ROOT / ".venv" / "images")
    built = {name: builder.build(name) for name in ("control-plane", "sidecar")}
    builder.sweep()
    return built


@pytest.fixture(scope="module")
def mesh(images: dict[str, Image]) -> Iterator[Mesh]:
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        with network(pathlib.Path(folder)) as net:
            yield Mesh(images, net)
