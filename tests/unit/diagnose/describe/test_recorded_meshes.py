"""Every pod of recorded meshes is described, and what its proxy follows is known."""

import golden
import pytest

from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key
from mizzen.diagnose import nodes, snapshot
from mizzen.diagnose.describe import gateways, overview, pods
from mizzen.diagnose.dump import Dump
from mizzen.incremental import Engine, Index
from mizzen.model import proxy

_pods = Index("Pod", "all, for a test", lambda _key, _pod: ((),))

CASES = (
    *("networking/vs-same-host", "networking/vs-tls-tcp-routes", "networking/missing-destinations"),
    *("networking/dr-lookup-and-merge", "networking/se-overlap", "networking/headless-services"),
    *("gateway/mesh-and-gateway", "gateway/merge-one-port", "gateway-api/backend-tls", "gateway-api/mesh-routes"),
    *("security/authz-custom-http", "security/pa-port-level"),
)


def dump_of(db: Engine, pod: Pod) -> Dump:
    return snapshot.as_dump(snapshot.take_snapshot(db, proxy.parse_node(nodes.build_node(pod))))


def describe(db: Engine, pod: Pod) -> list[str]:
    outside = gateways.Outside(dump=lambda gateway: dump_of(db, gateway))
    return list(overview.describe_meshed_pod(db, pod, dump_of(db, pod), outside))


@pytest.mark.parametrize("case", CASES)
def test_no_proxy_is_called_stale_that_was_told_from_these_objects(case: str) -> None:
    db = golden.engine_of(golden.load_case(case))
    found = [pod for key in db.lookup(_pods, ()) if pods.has_proxy(pod := db.input(key))]
    assert found
    for pod in found:
        assert not any("stale" in line for line in describe(db, pod))


def test_a_generated_rule_is_named_after_the_policy_that_it_comes_from() -> None:
    db = golden.engine_of(golden.load_case("gateway-api/backend-tls"))
    lines = describe(db, db.input(Key("Pod", "shop", "search-0")))

    assert any(line.strip().startswith("BackendTLSPolicy: ") for line in lines)
    assert any(line.strip() == "Traffic Policy TLS Mode: SIMPLE" for line in lines)


def test_a_virtual_service_of_connections_that_leads_elsewhere_is_shown() -> None:
    db = golden.engine_of(golden.load_case("networking/missing-destinations"))
    text = "\n".join(describe(db, db.input(Key("Pod", "pay", "payments-0"))))

    assert "VirtualService: payments\n" in text
    assert "WARNING: No destinations match pod subsets (checked 1 TLS and 1 TCP routes)" in text
    assert "without effect" not in text
