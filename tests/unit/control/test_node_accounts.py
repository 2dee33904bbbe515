"""Who may have certificates of others: a node's agent, for the pods on its node, and nobody else."""

import msgspec
import pytest

from mizzen.api.kube.pods import Pod, PodSpec, PodStatus
from mizzen.api.meta import ObjectMeta
from mizzen.ca.identity import Caller
from mizzen.control.node_accounts import NodeAccounts
from mizzen.errors import AuthorityError

AGENT = "spiffe://cluster.local/ns/istio-system/sa/ztunnel"
CART = "spiffe://cluster.local/ns/shop/sa/cart"
VAULT = "spiffe://cluster.local/ns/bank/sa/vault"
CALLER = Caller(identities=(AGENT,), method="token", pod="ztunnel-1", pod_uid="uid-1", node="one")


def pod(namespace: str, name: str, account: str, node: str, *, uid: str = "", phase: str = "Running") -> Pod:
    return Pod(
        metadata=ObjectMeta(namespace=namespace, name=name, uid=uid or f"uid-of-{name}"),
        spec=PodSpec(service_account_name=account, node_name=node),
        status=PodStatus(phase=phase),
    )


class Cluster:
    """Pods, and a clock."""

    def __init__(self) -> None:
        self.now, self.looks = 100.0, 0
        self.pods = [
            pod("istio-system", "ztunnel-1", "ztunnel", "one", uid="uid-1"),
            pod("istio-system", "ztunnel-2", "ztunnel", "two", uid="uid-2"),
            pod("shop", "cart-0", "cart", "one"),
            pod("bank", "vault-0", "vault", "two"),
        ]
        self.accounts = NodeAccounts(("istio-system/ztunnel",), self._look, lambda: "cluster.local", lambda: self.now)

    def _look(self) -> list[Pod]:
        self.looks += 1
        return self.pods

    def allows(self, caller: Caller, other: str) -> bool:
        try:
            self.accounts.check(caller, other)
        except AuthorityError:
            return False
        return True


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_an_agent_gets_what_runs_on_its_node_alone(cluster: Cluster) -> None:
    assert cluster.allows(CALLER, CART)
    assert not cluster.allows(CALLER, VAULT)
    other = msgspec.structs.replace(CALLER, pod="ztunnel-2", pod_uid="uid-2", node="two")
    assert cluster.allows(other, VAULT)
    assert not cluster.allows(other, CART)


@pytest.mark.parametrize(
    "changes",
    [
        {"identities": (CART,)},
        {"identities": ("spiffe://cluster.local/ns/shop/sa/ztunnel",)},
        {"identities": ("spiffe://other.domain/ns/istio-system/sa/ztunnel",)},
        {"identities": (VAULT, AGENT)},
        {"pod": "", "pod_uid": ""},
        {"pod_uid": ""},
        {"pod": ""},
        {"pod_uid": "uid-of-one-that-is-gone"},
        {"pod": "ztunnel-2"},
        {"pod": "cart-0", "pod_uid": "uid-of-cart-0"},
        {"node": "two"},
        {"method": "certificate", "pod": "", "pod_uid": "", "node": ""},
    ],
    ids=str,
)
def test_whoever_is_not_that_agent_gets_nothing(cluster: Cluster, changes: dict) -> None:
    assert not cluster.allows(msgspec.structs.replace(CALLER, **changes), CART)


@pytest.mark.parametrize(
    "other",
    [
        "",
        "cart",
        "spiffe://other.domain/ns/shop/sa/cart",
        "spiffe://cluster.local/ns/shop/sa/cart/",
        "spiffe://cluster.local/ns/shop/sa/",
        "spiffe://cluster.local/ns//sa/cart",
        "spiffe://cluster.local/ns/shop/sa/cart?x",
        f"{CART},{VAULT}",
    ],
)
def test_what_is_no_identity_of_the_mesh_is_refused(cluster: Cluster, other: str) -> None:
    assert not cluster.allows(CALLER, other)


def test_pods_that_ended_or_were_replaced_count_no_longer(cluster: Cluster) -> None:
    assert cluster.allows(CALLER, CART)
    cluster.pods[2] = pod("shop", "cart-0", "cart", "one", phase="Succeeded")
    cluster.now += 2
    assert not cluster.allows(CALLER, CART)
    cluster.pods[2] = pod("shop", "cart-1", "cart", "one", phase="Pending")
    cluster.now += 2
    assert cluster.allows(CALLER, CART)
    cluster.pods[0] = pod("istio-system", "ztunnel-1", "ztunnel", "one", uid="uid-of-its-successor")
    cluster.now += 2
    assert not cluster.allows(CALLER, CART)


def test_a_pod_without_a_node_lets_nobody_have_its_identity(cluster: Cluster) -> None:
    cluster.pods += [pod("bank", "waiting", "clerk", ""), pod("istio-system", "lost", "ztunnel", "", uid="uid-3")]
    lost = msgspec.structs.replace(CALLER, pod="lost", pod_uid="uid-3", node="")
    assert not cluster.allows(CALLER, "spiffe://cluster.local/ns/bank/sa/clerk")
    assert not cluster.allows(lost, "spiffe://cluster.local/ns/bank/sa/clerk")


def test_a_pod_that_has_just_come_is_found_without_looking_at_all_pods_each_time(cluster: Cluster) -> None:
    for _ in range(1000):
        assert cluster.allows(CALLER, CART)
    assert cluster.looks == 1
    cluster.pods.append(pod("shop", "till-0", "till", "one"))
    cluster.now += 0.2
    assert cluster.allows(CALLER, "spiffe://cluster.local/ns/shop/sa/till")
    for _ in range(1000):
        assert not cluster.allows(CALLER, VAULT)
    assert cluster.looks == 2


def test_nobody_is_trusted_unless_it_is_said_and_what_is_said_has_a_form() -> None:
    nobody = NodeAccounts((), list, lambda: "cluster.local")
    with pytest.raises(AuthorityError, match="not trusted"):
        nobody.check(CALLER, CART)
    for text in ("ztunnel", "istio-system/", "/ztunnel", "a/b/c"):
        with pytest.raises(AuthorityError, match="CA_TRUSTED_NODE_ACCOUNTS"):
            NodeAccounts((text,), list, lambda: "cluster.local")
