from typing import Any

from mizzen.diagnose.change import routes


def configuration(*entries: dict[str, Any], **host: Any) -> dict[str, Any]:
    return {"name": "80", "virtualHosts": [{"name": "web:80", "domains": ["web"], "routes": list(entries), **host}]}


def route(name: str, cluster: str = "outbound|80||web.shop", **more: Any) -> dict[str, Any]:
    return {"name": name, "match": {"prefix": "/"}, "route": {"cluster": cluster, **more}}


def told(old: dict[str, Any] | None, new: dict[str, Any] | None) -> list[str]:
    return [str(change) for change in routes.compare("80", old, new)]


def test_the_same_is_no_change() -> None:
    assert told(configuration(route("a")), configuration(route("a"))) == []


def test_a_new_route_is_told_with_the_one_that_it_comes_before() -> None:
    old, new = configuration(route("a"), route("b")), configuration(route("a"), route("new"), route("b"), route("end"))

    assert told(old, new) == [
        "route 80 web:80: route new added before b",
        "route 80 web:80: route end added as the last",
    ]


def test_a_route_that_moves_is_told_and_those_it_passes_are_not() -> None:
    old = configuration(route("a"), route("b"), route("c"))
    new = configuration(route("c"), route("a"), route("b"))

    assert told(old, new) == ["route 80 web:80: route c moved, now before a"]


def test_weights_are_told_by_destination() -> None:
    def split(first: int, second: int) -> dict[str, Any]:
        weights = [{"name": "outbound|80|v1|web.shop", "weight": first}]
        weights.append({"name": "outbound|80|v2|web.shop", "weight": second})
        return configuration({"name": "a", "match": {}, "route": {"weightedClusters": {"clusters": weights}}})

    assert told(split(90, 10), split(80, 20)) == [
        "route 80 web:80: route a: weight of web.shop:80 subset v1 90→80",
        "route 80 web:80: route a: weight of web.shop:80 subset v2 10→20",
    ]


def test_another_destination_is_told() -> None:
    old, new = configuration(route("a")), configuration(route("a", "outbound|80|v2|web.shop"))

    assert told(old, new) == ["route 80 web:80: route a: destination web.shop:80 → web.shop:80 subset v2"]


def test_timeouts_and_retries_are_told() -> None:
    old = configuration(route("a", timeout="0s", retryPolicy={"numRetries": 2}))
    new = configuration(route("a", timeout="3s", retryPolicy={"numRetries": 5}))

    assert told(old, new) == [
        "route 80 web:80: route a: timeout 0s → 3s",
        "route 80 web:80: route a: retry.numRetries: 2 → 5",
    ]


def test_faults_come_and_go() -> None:
    plain = route("a")
    faulty = {**plain, "typedPerFilterConfig": {"envoy.filters.http.fault": {"abort": {"httpStatus": 500}}}}

    assert told(configuration(plain), configuration(faulty)) == ["route 80 web:80: route a: fault added"]
    assert told(configuration(faulty), configuration(plain)) == ["route 80 web:80: route a: fault removed"]


def test_routes_of_one_name_are_told_apart_by_their_order() -> None:
    old, new = configuration(route("a"), route("a")), configuration(route("a"), route("a", timeout="1s"))

    assert told(old, new) == ["route 80 web:80: route a (2): timeout nothing → 1s"]


def test_a_change_that_has_no_words_is_told_by_its_fields() -> None:
    old, new = route("a"), {**route("a"), "decorator": {"operation": "other"}}

    (change,) = told(configuration(old), configuration(new))
    assert "decorator" in change
    assert "other" in change


def test_hosts_and_domains_come_and_go() -> None:
    assert told(None, configuration()) == ["route configuration 80 added"]
    assert told({"name": "80"}, configuration()) == ["route 80 web:80 added"]
    assert told(configuration(domains=["web", "old"]), configuration(domains=["web", "new"])) == [
        "route 80 web:80: domains added: new",
        "route 80 web:80: domains removed: old",
    ]
