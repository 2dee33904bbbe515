"""Istio's own programs against Mizzen's, over one API server (`make test-interop` builds what is needed)."""

import pathlib
import tempfile
from collections.abc import Iterator

import interop_mesh
import istio_programs
import kube_bed
import pod_net
import pytest


@pytest.fixture(scope="module")
def mesh() -> Iterator[interop_mesh.Mesh]:
    """A mesh of its own for every module; its pods are on a bridge of this machine."""
    if not istio_programs.are_built():
        pytest.skip("no programs of Istio (scripts/test-interop-parts)")
    with tempfile.TemporaryDirectory(prefix="interop-") as made:
        folder = pathlib.Path(made)
        folder.chmod(0o755)  # Sidecars have a user of their own.
        with (
            kube_bed.running(folder / "kubernetes") as bed,
            pod_net.network(folder) as network,
            interop_mesh.running(bed, network, folder) as mesh,
        ):
            yield mesh
