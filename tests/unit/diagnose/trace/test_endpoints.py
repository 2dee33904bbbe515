"""Among which hosts a balancer chooses."""

from typing import Any

from mizzen.diagnose.trace import endpoints

NO_PANIC: dict[str, Any] = {"commonLbConfig": {"healthyPanicThreshold": {}}}


def host(address: str, health: str = "HEALTHY") -> dict[str, Any]:
    socket = {"address": address, "portValue": 80}
    return {"endpoint": {"address": {"socketAddress": socket}}, "healthStatus": health}


def assignment(*groups: tuple[int, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    return {"endpoints": [{"priority": level, "lbEndpoints": hosts} for level, hosts in groups], **more}


def chosen(cluster: dict[str, Any], found: dict[str, Any]) -> list[str]:
    return [each.address for each in endpoints.choose(cluster, found).hosts]


def test_unhealthy_hosts_are_left_out():
    hosts = [host("10.0.0.1"), host("10.0.0.2", "UNHEALTHY"), host("10.0.0.3", "UNKNOWN"), host("10.0.0.4", "DRAINING")]
    assert chosen(NO_PANIC, assignment((0, hosts))) == ["10.0.0.1", "10.0.0.3"]


def test_without_healthy_hosts_there_is_none_unless_panic_is_allowed():
    hosts = assignment((0, [host("10.0.0.1", "UNHEALTHY")]))
    assert chosen(NO_PANIC, hosts) == []
    choice = endpoints.choose({}, hosts)
    assert (choice.in_panic, len(choice.hosts)) == (True, 1)


def test_a_priority_keeps_all_while_most_of_it_is_healthy():
    first = [host(f"10.0.0.{n}") for n in range(3)] + [host("10.0.0.9", "UNHEALTHY")]
    second = [host("10.1.0.1")]
    assert chosen(NO_PANIC, assignment((0, first), (1, second))) == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]


def test_a_priority_that_is_half_dead_shares_with_the_next():
    first = [host("10.0.0.1"), host("10.0.0.2", "UNHEALTHY")]
    assert chosen(NO_PANIC, assignment((0, first), (1, [host("10.1.0.1")]))) == ["10.0.0.1", "10.1.0.1"]


def test_a_dead_priority_hands_all_to_the_next():
    groups = assignment((0, [host("10.0.0.1", "UNHEALTHY")]), (1, [host("10.1.0.1")]))
    assert chosen(NO_PANIC, groups) == ["10.1.0.1"]


def test_drops_are_told():
    drop = {"dropOverloads": [{"category": "x", "dropPercentage": {"numerator": 25}}]}
    assert endpoints.choose(NO_PANIC, assignment((0, [host("10.0.0.1")]), policy=drop)).dropped == 0.25


def test_names_are_kept_as_names():
    (only,) = endpoints.choose(NO_PANIC, assignment((0, [host("world.example.net")]))).hosts
    assert (only.name, only.address, str(only)) == ("world.example.net", "", "world.example.net:80")
