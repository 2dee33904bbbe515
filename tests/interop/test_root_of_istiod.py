"""A root that istiod has made for itself: Mizzen finds it in the cluster and signs under it."""

from collections.abc import Iterator

import pytest
from eventually import eventually_blocking
from interop_mesh import Mesh, Workload
from istio_programs import UPSTREAM_ONLY
from tcp_gate import Gate

from mizzen.inject.values import InjectionConfig


@pytest.fixture(scope="module")
def planes(mesh: Mesh) -> Iterator[None]:
    """istiod was there first, and Mizzen has come beside it."""
    mesh.gate.lead_to(mesh.istiod(plugged=False, **UPSTREAM_ONLY).secure)
    other = Gate(mesh.network.other, 15012)
    other.lead_to(mesh.mizzen(plugged=False, REVISION="mizzen").secure)
    yield
    other.close()


def _workload(mesh: Mesh, name: str, revision: str) -> Workload:
    app = name.partition("-")[0]
    made = mesh.workload(name, app, InjectionConfig(dialect="envoy", revision=revision))
    made.capture()
    made.start_istio_agent()
    made.until_ready()
    mesh.tell_endpoints(app)
    return made


def test_sidecars_of_both_revisions_trust_each_other(mesh: Mesh, planes: None) -> None:
    old, new = _workload(mesh, "cart-1", ""), _workload(mesh, "web-1", "mizzen")
    for caller, host in ((old, "web"), (new, "cart")):
        answer = eventually_blocking(
            lambda caller=caller, host=host: (found := caller.get(host))["code"] == 200 and found, 60, every=0.2
        )
        assert f"By=spiffe://cluster.local/ns/shop/sa/{host}" in answer["headers"]["x-forwarded-client-cert"]
