from typing import Any

import pytest

from mizzen.diagnose.change import disruption, listeners

HCM = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
RBAC = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"


def listener(*chains: dict[str, Any], **more: Any) -> dict[str, Any]:
    address = {"socketAddress": {"address": "0.0.0.0", "portValue": 15006}}
    return {"name": "virtualInbound", "address": address, "filterChains": list(chains), **more}


def chain(name: str, *http_filters: dict[str, Any], port: int = 0, **more: Any) -> dict[str, Any]:
    manager = {"name": "hcm", "typedConfig": {"@type": HCM, "httpFilters": list(http_filters)}}
    return {"name": name, "filterChainMatch": {"destinationPort": port} if port else {}, "filters": [manager], **more}


def rbac(*names: str, action: str = "ALLOW") -> dict[str, Any]:
    rules = {"action": action, "policies": {name: {"permissions": [{"any": True}]} for name in names}}
    return {"name": "envoy.filters.http.rbac", "typedConfig": {"@type": RBAC, "rules": rules}}


def told(old: dict[str, Any] | None, new: dict[str, Any] | None) -> list[str]:
    return [str(change) for change in listeners.compare("virtualInbound", old, new)]


def update(old: dict[str, Any] | None, new: dict[str, Any] | None) -> disruption.ListenerUpdate:
    return disruption.update_listener("virtualInbound", old, new)


def test_listeners_come_and_go() -> None:
    there = listener(chain("a"))

    assert told(None, there) == ["listener virtualInbound (0.0.0.0:15006): added: HTTP"]
    assert told(there, None) == ["listener virtualInbound (0.0.0.0:15006): removed: HTTP"]


def test_rules_of_policies_are_told_by_policy_and_once_for_all_chains() -> None:
    rule = "ns[shop]-policy[callers]-rule[0]"
    old = listener(chain("a", port=1), chain("b", port=2), chain("c", port=3))
    new = listener(*(chain(name, rbac(rule), port=port) for name, port in (("a", 1), ("b", 2), ("c", 3))))

    assert told(old, new) == [
        "listener virtualInbound (0.0.0.0:15006): 3 chains: policy rule shop/callers rule 0 (ALLOW) added"
    ]
    assert told(new, old) == [
        "listener virtualInbound (0.0.0.0:15006): 3 chains: policy rule shop/callers rule 0 (ALLOW) removed"
    ]


def test_one_rule_more_in_a_filter_that_is_there() -> None:
    old, new = listener(chain("a", rbac("one"))), listener(chain("a", rbac("one", "two")))

    assert told(old, new) == [
        "listener virtualInbound (0.0.0.0:15006): chain a: policy rule two (ALLOW) added",
    ]


def test_a_policy_that_lets_nobody_in_is_told() -> None:
    assert told(listener(chain("a")), listener(chain("a", rbac()))) == [
        "listener virtualInbound (0.0.0.0:15006): chain a: policy rule for nobody (ALLOW) added",
    ]


def test_tls_of_a_chain_is_told() -> None:
    secured = {"typedConfig": {"commonTlsContext": {}, "requireClientCertificate": True}}

    assert told(listener(chain("a")), listener(chain("a", transportSocket=secured))) == [
        "listener virtualInbound (0.0.0.0:15006): chain a: TLS plain → mutual"
    ]


def test_fields_of_the_listener_itself_are_told() -> None:
    assert told(listener(chain("a")), listener(chain("a"), accessLog=[{"name": "file"}])) == [
        'listener virtualInbound (0.0.0.0:15006): accessLog: nothing → [{"name":"file"}]'
    ]


# -- what Envoy does with it ------------------------------------------------------------------------------------------


def test_a_change_of_one_chain_drains_this_one_only() -> None:
    kept, before, after = chain("kept", port=1), chain("b", port=2), chain("b", rbac("one"), port=2)
    found = update(listener(kept, before), listener(kept, after))

    assert (found.update, found.kept, found.cuts) == ("in place", 1, True)
    assert found.cuts_chain(before)
    assert not found.cuts_chain(kept)


def test_a_chain_that_comes_drains_nothing() -> None:
    found = update(listener(chain("a")), listener(chain("a"), chain("b", port=2)))

    assert (found.update, found.drained, found.cuts) == ("in place", (), False)


def test_chains_in_another_order_stay() -> None:
    a, b = chain("a", port=1), chain("b", port=2)

    assert not update(listener(a, b), listener(b, a)).cuts


def test_the_default_chain_is_held_against_the_default_chain() -> None:
    one, other = chain("one"), chain("other", rbac("x"))
    a = chain("a", port=1)

    found = update(listener(a, defaultFilterChain=one), listener(a, defaultFilterChain=other))

    assert found.cuts_chain(one)
    assert not found.cuts_chain(a)


@pytest.mark.parametrize(
    ("field", "value"),
    [("listenerFilters", [{"name": "tls"}]), ("accessLog", [{"name": "x"}]), ("perConnectionBufferLimitBytes", 9)],
)
def test_a_change_of_anything_else_replaces_the_listener(field: str, value: object) -> None:
    found = update(listener(chain("a")), listener(chain("a"), **{field: value}))

    assert (found.update, found.because) == ("replaced", (field,))
    assert found.cuts_chain(chain("a"))


def test_the_order_of_repeated_fields_does_not_count() -> None:
    one, other = [{"name": "tls"}, {"name": "http"}], [{"name": "http"}, {"name": "tls"}]

    assert (
        update(listener(chain("a"), listenerFilters=one), listener(chain("a"), listenerFilters=other)).update
        == "in place"
    )


def test_without_any_chain_left_it_is_replaced() -> None:
    assert update(listener(chain("a")), listener(defaultFilterChain=chain("d"))).update == "replaced"


def test_a_listener_that_goes_cuts_and_one_that_comes_does_not() -> None:
    assert update(listener(chain("a")), None).cuts
    assert not update(None, listener(chain("a"))).cuts
