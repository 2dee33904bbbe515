"""Both images, built once, and one mesh of them; the sizes of their layers are printed at the end."""

import pathlib
import tempfile
from collections.abc import Iterator

import pytest
from image_build import ROOT, Builder, Image
from image_mesh import Mesh
from pod_net import network

_BUILT = pytest.StashKey[dict[str, Image]]()


@pytest.fixture(scope="session")
def images(request: pytest.FixtureRequest) -> dict[str, Image]:
    """The images by the names of their Dockerfiles; what they are made of is kept for the next run."""
    builder = Builder(ROOT / ".venv" / "images")
    built = {name: builder.build(name) for name in ("control-plane", "sidecar")}
    builder.sweep()
    request.config.stash[_BUILT] = built
    return built


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name, image in config.stash.get(_BUILT, {}).items():
        terminalreporter.write_line(f"image {name}: {image.base / 1e6:.0f} MB of base")
        for layer in image.layers:
            if layer.bytes >= 1e5:
                terminalreporter.write_line(f"  {layer.bytes / 1e6:6.1f} MB  {layer.instruction[:100]}")


@pytest.fixture(scope="module")
def mesh(images: dict[str, Image]) -> Iterator[Mesh]:
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        with network(pathlib.Path(folder)) as net:
            yield Mesh(images, net)
