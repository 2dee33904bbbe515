"""Sent and actual configuration compare by meaning."""

from typing import Any

from mizzen.diagnose import diff
from mizzen.diagnose.dump import Dump

ADMIN = "type.googleapis.com/envoy.admin.v3."
ROUTE = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
LISTENER = "type.googleapis.com/envoy.config.listener.v3.Listener"
CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"


def dump_of(
    clusters: list[dict[str, Any]] | None = None,
    listeners: list[dict[str, Any]] | None = None,
    routes: list[dict[str, Any]] | None = None,
) -> Dump:
    return Dump(
        (
            {"@type": f"{ADMIN}ClustersConfigDump", "dynamic_active_clusters": clusters or []},
            {"@type": f"{ADMIN}ListenersConfigDump", "dynamic_listeners": listeners or []},
            {"@type": f"{ADMIN}RoutesConfigDump", "dynamic_route_configs": routes or []},
        )
    )


def differences(sent: Dump, actual: Dump) -> dict[str, str]:
    return {part.kind: part.difference for part in diff.compare(sent, actual) if part.difference}


def test_spelling_order_versions_and_times_do_not_differ() -> None:
    one = {"@type": CLUSTER, "name": "a", "connectTimeout": "1s"}
    same = {"@type": CLUSTER, "connect_timeout": "1s", "name": "a"}
    other = {"@type": CLUSTER, "name": "b"}
    sent = dump_of([{"cluster": one, "versionInfo": "1"}, {"cluster": other}])
    actual = dump_of([{"cluster": other}, {"cluster": same, "last_updated": "2026-01-01T00:00:00Z"}])

    assert differences(sent, actual) == {}


def test_whole_numbers_are_one_number() -> None:
    def with_percent(value: float) -> Dump:
        config = {"common_lb_config": {"healthy_panic_threshold": {"value": value}}}
        return dump_of([{"cluster": {"@type": CLUSTER, "name": "a", **config}}])

    assert differences(with_percent(50), with_percent(50.0)) == {}
    assert "Clusters" in differences(with_percent(50), with_percent(50.5))


def test_virtual_hosts_compare_by_name_and_not_by_place() -> None:
    def with_hosts(*names: str) -> Dump:
        hosts = [{"name": name, "domains": [name]} for name in names]
        return dump_of(routes=[{"route_config": {"@type": ROUTE, "name": "80", "virtual_hosts": hosts}}])

    assert differences(with_hosts("a", "b"), with_hosts("b", "a")) == {}
    assert "+++ Envoy Routes" in differences(with_hosts("a", "b"), with_hosts("a"))["Routes"]


def test_draining_and_refused_listeners_do_not_count() -> None:
    active = {"active_state": {"listener": {"@type": LISTENER, "name": "l"}}}
    leftovers = [{"draining_state": {"listener": {"@type": LISTENER, "name": "old"}}}, {"error_state": {}}]

    assert differences(dump_of(listeners=[active]), dump_of(listeners=[active, *leftovers])) == {}


def test_a_listener_that_is_missing_shows_with_seven_lines_around() -> None:
    active = [{"active_state": {"listener": {"@type": LISTENER, "name": name}}} for name in "abcdefgh"]

    text = differences(dump_of(listeners=active), dump_of(listeners=active[:-1]))["Listeners"]

    assert text.startswith("--- Istiod Listeners\n+++ Envoy Listeners\n@@ ")
    assert '-      "name": "h"\n' in text
    assert '"name": "a"' not in text
