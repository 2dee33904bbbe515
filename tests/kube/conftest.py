"""One API server for the whole run; what a test makes, it makes in a namespace of its own."""

import itertools
import pathlib
from collections.abc import Iterator

import kube_bed
import kube_mesh_kinds
import pytest
from kube_objects import path_of

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


@pytest.fixture(scope="module")
def mesh_kinds(bed: kube_bed.Bed) -> None:
    """The mesh's kinds, and the control plane's namespace; another module may have taken kinds away."""
    kube_mesh_kinds.install(bed)


@pytest.fixture(scope="module")
def gateway_class(bed: kube_bed.Bed, mesh_kinds: None) -> None:
    """The class of Gateways that an installation has, for control planes that do not make it themselves."""
    document = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": "istio"},
        "spec": {"controllerName": "istio.io/gateway-controller"},
    }
    bed.apply(path_of(document, "gatewayclasses"), document)


@pytest.fixture(scope="session")
def helm() -> pathlib.Path:
    """The real Helm."""
    found = pathlib.Path(__file__).parents[2] / ".venv" / "helm" / "helm"
    if not found.exists():
        pytest.skip("no Helm: scripts/test-helm brings it")
    return found


@pytest.fixture
def new_bed(tmp_path_factory) -> Iterator[kube_bed.Bed]:
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
