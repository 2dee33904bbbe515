"""Who is charged for what proxies are sent."""

from hypothesis import given
from hypothesis import strategies as st

from mizzen.xds import metrics
from mizzen.xds.costs import ALL, Account, Cost, Costs, ProxyClass, charge, split
from mizzen.xds.generator import Change

CART, FRONT = ("VirtualService", "shop", "cart"), ("VirtualService", "shop", "front")
CHANGED_CART, CHANGED_FRONT, NEW_FRONT = Change(CART, "updated"), Change(FRONT, "updated"), Change(FRONT, "added")
SIDECARS, OTHERS, GATEWAYS = ProxyClass("sidecar", "shop"), ProxyClass("sidecar", "bank"), ProxyClass("router", "edge")


def sizes(costs: Costs) -> dict[tuple[str, str], tuple[int, int]]:
    """Name and change → pushes and bytes, the most expensive first."""
    return {(each.object[2], each.how): tuple(each.cost) for each in costs.accounts()}


def test_what_a_change_has_cost_is_told_by_classes_of_proxies() -> None:
    costs = Costs()
    for at, gateway in ((1.0, 700), (2.0, 900)):
        cause = costs.open([CHANGED_CART], at)
        cause.charge(SIDECARS, 100)
        cause.charge(SIDECARS, 100)
        cause.charge(GATEWAYS, gateway)
    assert costs.accounts() == [
        Account(
            object=CART,
            how="updated",
            changes=2,
            cost=Cost(6, 2000),
            last=2.0,
            proxies=((GATEWAYS, Cost(2, 1600)), (SIDECARS, Cost(4, 400))),
        )
    ]


def test_the_most_expensive_come_first_and_apart_by_how_they_changed() -> None:
    costs = Costs()
    costs.open([NEW_FRONT], 1.0).charge(SIDECARS, 10)
    costs.open([CHANGED_FRONT], 2.0).charge(SIDECARS, 30)
    costs.open([CHANGED_CART], 3.0).charge(SIDECARS, 20)
    assert list(sizes(costs)) == [("front", "updated"), ("cart", "updated"), ("front", "added")]
    assert [account.object for account in costs.accounts(1)] == [FRONT]


def test_a_change_that_told_nobody_anything_has_caused_nothing() -> None:
    costs = Costs()
    costs.open([CHANGED_CART], 1.0)
    assert costs.accounts() == []


def test_what_comes_late_is_charged_too_and_is_no_other_change() -> None:
    costs = Costs()
    cause = costs.open([CHANGED_CART], 1.0)
    cause.charge(SIDECARS, 10)
    assert sizes(costs) == {("cart", "updated"): (1, 10)}
    cause.charge(SIDECARS, 5)
    assert sizes(costs) == {("cart", "updated"): (2, 15)}
    assert costs.accounts()[0].changes == 1
    assert cause.cost == Cost(2, 15)


def test_objects_that_changed_together_share_the_bytes_evenly() -> None:
    costs = Costs()
    costs.open([CHANGED_CART, NEW_FRONT], 1.0).charge(SIDECARS, 101)
    assert sizes(costs) == {("front", "added"): (1, 51), ("cart", "updated"): (1, 50)}


def test_merged_pushes_share_by_the_objects_behind_each() -> None:
    costs = Costs()
    one = costs.open([CHANGED_CART], 1.0)
    two = costs.open([CHANGED_FRONT, NEW_FRONT], 2.0)
    charge((one, two), SIDECARS, 300)
    assert sizes(costs) == {("cart", "updated"): (1, 100), ("front", "added"): (1, 100), ("front", "updated"): (1, 100)}


def test_of_a_batch_of_many_objects_kinds_are_charged() -> None:
    costs = Costs()
    batch = [Change(("Service", "shop", str(number)), "added") for number in range(50)]
    costs.open([*batch, CHANGED_CART], 1.0).charge(SIDECARS, 510)
    found = {each.object: each.cost for each in costs.accounts()}
    assert found == {("Service", "", ALL): Cost(1, 500), ("VirtualService", "", ALL): Cost(1, 10)}


def test_objects_that_changed_longest_ago_are_forgotten_and_stay_in_the_total() -> None:
    costs = Costs(accounts=2)
    for change in (CHANGED_CART, CHANGED_FRONT, CHANGED_CART, NEW_FRONT):
        costs.open([change], 1.0).charge(SIDECARS, 10)
    assert sizes(costs) == {("cart", "updated"): (2, 20), ("front", "added"): (1, 10)}
    assert costs.total == Cost(4, 40)


def test_accounts_with_many_classes_leave_room_for_fewer_others() -> None:
    costs = Costs(cells=100)
    for change in (CHANGED_CART, CHANGED_FRONT):
        cause = costs.open([change], 1.0)
        for number in range(60):
            cause.charge(ProxyClass("sidecar", str(number)), 1)
    assert sizes(costs) == {("front", "updated"): (60, 60)}
    assert costs.total == Cost(120, 120)


def test_in_one_account_a_bounded_number_of_namespaces_is_told_apart() -> None:
    costs = Costs()
    cause = costs.open([CHANGED_CART], 1.0)
    for number in range(250):
        cause.charge(ProxyClass("sidecar", str(number)), 1)
    (account,) = costs.accounts()
    assert account.proxies[0] == (ProxyClass("sidecar", ALL), Cost(150, 150))
    assert len(account.proxies) == 101
    assert account.cost == Cost(250, 250)


def test_counters_by_kind_count_a_push_once_for_each_kind() -> None:
    def counted() -> list[float]:
        counters = (metrics.CAUSED_PUSHES, metrics.CAUSED_BYTES)
        kinds = (("VirtualService", "updated"), ("Gateway", "updated"))
        return [counter.value(*kind, "sidecar") for kind in kinds for counter in counters]

    before = counted()
    edge = Change(("Gateway", "edge", "edge"), "updated")
    Costs().open([CHANGED_CART, CHANGED_FRONT, edge], 1.0).charge(SIDECARS, 300)
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [1, 200, 1, 100]


changes = st.builds(
    Change,
    st.tuples(st.sampled_from(["Service", "Gateway"]), st.just("shop"), st.integers(0, 30).map(str)),
    st.sampled_from(["added", "updated", "removed"]),
)
commits = st.lists(st.lists(changes, min_size=1, max_size=80, unique=True), min_size=1, max_size=6)
sent = st.tuples(
    st.sets(st.integers(0, 5), min_size=1), st.sampled_from([SIDECARS, OTHERS, GATEWAYS]), st.integers(1, 9999)
)


@given(commits, st.lists(sent, max_size=30))
def test_however_it_is_shared_bytes_add_up_to_those_that_were_written(made, pushes) -> None:
    costs = Costs(accounts=7, cells=11)
    causes = [costs.open(each, 1.0) for each in made]
    written = 0
    for numbers, proxies, size in pushes:
        charge([cause for number, cause in enumerate(causes) if number in numbers], proxies, size)
        written += size if any(number < len(causes) for number in numbers) else 0
    assert len(costs.accounts()) <= 7
    assert costs.total.bytes == written


@given(st.integers(0, 10**9), st.lists(st.integers(1, 50), min_size=1, max_size=9))
def test_parts_are_whole_and_none_is_more_than_one_off(total, weights) -> None:
    parts = list(split(total, weights))
    assert sum(parts) == total
    assert all(abs(part - total * weight / sum(weights)) < 1 for part, weight in zip(parts, weights, strict=True))
