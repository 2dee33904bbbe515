"""One API server for the whole run; what a test makes, it makes in a namespace of its own."""

import itertools
import pathlib
from collections.abc import Iterator

import kube_bed
import pytest

_LAST = "test_rights.py"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What all tests together have asked for is told by the last one, where all are run."""
    last = [item for item in items if item.path.name == _LAST]
    if last:
        items[:] = [item for item in items if item not in last]
        ran = {item.path.name for item in items}
        if all(path.name in ran for path in pathlib.Path(__file__).parent.glob("test_*.py") if path.name != _LAST):
            items += last
        else:
            config.hook.pytest_deselected(items=last)


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
