"""Hosts and assignments; what the recorded answers do not show."""

from mizzen.diagnose.dump import Dump
from mizzen.diagnose.tables import endpoints
from mizzen.diagnose.tables.endpoints import EndpointFilter

NO_FILTER = EndpointFilter()


def status(name: str, *hosts: dict[str, object]) -> dict[str, object]:
    return {"name": name, "host_statuses": list(hosts)}


def ip(address: str, port: int) -> dict[str, object]:
    return {"socket_address": {"address": address, "port_value": port}}


def test_ejected_hosts_fail_and_unknown_health_is_said() -> None:
    host = {"address": ip("10.0.0.1", 80), "health_status": {"failed_outlier_check": True}}

    assert endpoints.build_table([status("c", host)], NO_FILTER).rows == (("10.0.0.1:80", "UNKNOWN", "FAILED", "c"),)


def test_internal_addresses_and_unknown_ones_are_shown() -> None:
    internal = {"envoy_internal_address": {"server_listener_name": "outer", "endpoint_id": "e1"}}

    rows = endpoints.build_table([status("c", {"address": internal}, {"address": {}})], NO_FILTER).rows

    assert [row[0] for row in rows] == ["unknown", "envoy://outer/e1"]


def test_a_cluster_without_a_matching_host_is_left_out() -> None:
    source = {"cluster_statuses": [status("a", {"address": ip("10.0.0.1", 80)}), status("b")]}

    assert [c["name"] for c in endpoints.select_statuses(source, NO_FILTER)] == ["a"]
    assert endpoints.select_statuses(source, EndpointFilter(port=81)) == []


def test_assignments_show_all_addresses_of_an_endpoint() -> None:
    endpoint = {"address": ip("10.0.0.1", 80), "additionalAddresses": [{"address": ip("fd00::1", 80)}]}
    assignment = {"clusterName": "c", "endpoints": [{"lbEndpoints": [{"endpoint": endpoint}]}]}
    section = {
        "@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump",
        "dynamicEndpointConfigs": [{"endpointConfig": assignment}],
    }

    found = endpoints.select_assignments(Dump((section,)), NO_FILTER)

    assert endpoints.build_assigned_table(found, NO_FILTER).rows == (("10.0.0.1:80,fd00::1:80", "UNKNOWN", "", "c"),)


def test_a_dump_without_endpoints_is_empty() -> None:
    assert endpoints.select_assignments(Dump(()), NO_FILTER) == []
