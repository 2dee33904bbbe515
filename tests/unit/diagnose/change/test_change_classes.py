from typing import Any

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource, ResourceSet
from mizzen.diagnose.change import classes
from mizzen.diagnose.change.told import BY_NAME, Names, Told

Call = tuple[str, tuple[str, ...] | None, tuple[str, ...], Names | None, Names]


def proxy(
    name: str = "web-1", namespace: str = "shop", workload: str = "web", kind: str = "sidecar", **more: Any
) -> Told:
    contents: dict[str, dict[str, bytes]] = more.pop("contents", {})
    sets = {
        url: ResourceSet(url, [Resource(n, d) for n, d in contents.get(url, {}).items()])
        for url in (CLUSTER, LISTENER, *BY_NAME)
    }
    asked = {url: frozenset(more.get("asked", {}).get(url, sets[url].names)) for url in BY_NAME}
    return Told(
        reference=f"{name}.{namespace}",
        namespace=namespace,
        workload=workload,
        kind=kind,
        incarnation=more.get("incarnation", 1),
        sets=sets,
        asked=asked,
    )


class Measured:
    """Stands for the control plane's encoder; a byte for each type, and notes of what was asked."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[ResourceSet | None, Names | None, Names]] = {}

    def __call__(self, held: ResourceSet | None, target: ResourceSet, scope: Names | None, again: Names) -> int:
        self.calls[target.type_url] = held, scope, again
        return 1 if held != target or again else 0


def test_endpoints_of_a_changed_cluster_are_sent_again() -> None:
    old = proxy(contents={CLUSTER: {"a": b"1", "b": b"1"}, ENDPOINT: {"a": b"1", "b": b"1"}})
    new = proxy(contents={CLUSTER: {"a": b"2", "b": b"1"}, ENDPOINT: {"a": b"1", "b": b"1"}})
    measured = Measured()

    assert classes.pushed_bytes(old, new, measured) == 2
    assert measured.calls[ENDPOINT][2] == {"a"}


def test_the_absence_of_names_that_nobody_asks_for_is_not_told() -> None:
    measured = Measured()
    classes.pushed_bytes(proxy(), proxy(asked={ROUTE: ["80"]}), measured)

    assert measured.calls[ROUTE][1] == {"80"}
    assert measured.calls[CLUSTER][1] is None


def test_another_pod_is_sent_everything() -> None:
    same = {CLUSTER: {"a": b"1"}}
    measured = Measured()

    classes.pushed_bytes(proxy(contents=same), proxy(contents=same, incarnation=2), measured)

    assert measured.calls[CLUSTER][0] is None


def test_a_class_is_named_by_what_its_proxies_have_in_common() -> None:
    web = [proxy(f"web-{number}") for number in (1, 2)]
    cart = proxy("cart-1", workload="cart")
    far = [proxy(f"far-{number}", "far", "far") for number in (1, 2)]
    door = proxy("door-1", "edge", "door", "router")
    everybody = [*web, cart, *far, door]

    assert classes.name_class(everybody, everybody) == "every proxy (6)"
    assert classes.name_class([*web, cart, *far], everybody) == "every sidecar (5)"
    assert classes.name_class([*web, cart], everybody) == "namespace shop (3)"
    assert classes.name_class(web, everybody) == "web in shop"
    assert classes.name_class([*far, cart], everybody) == "namespace far (2); cart in shop"
