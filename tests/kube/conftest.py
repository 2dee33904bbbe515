"""One API server for the whole run; what a test makes, it makes in a namespace of its own."""

import itertools
from collections.abc import Iterator

import kube_bed
import pytest


@pytest.fixture(scope="session")
def bed(tmp_path_factory) -> Iterator[kube_bed.Bed]:
    with kube_bed.running(tmp_path_factory.mktemp("kubernetes")) as bed:
        yield bed


@pytest.fixture
def new_bed(bed: kube_bed.Bed, tmp_path_factory) -> Iterator[kube_bed.Bed]:
    """An API server that nobody has used, for a test of what a whole cluster has."""
    with kube_bed.running(tmp_path_factory.mktemp("new")) as bed:
        yield bed


_NUMBERS = itertools.count()


@pytest.fixture
def namespace(bed: kube_bed.Bed) -> str:
    """A namespace that is new."""
    name = f"test-{next(_NUMBERS)}"
    bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name
