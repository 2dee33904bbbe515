"""What the recorded mesh is to one of its proxies."""

from typing import Any

import golden
from debugged import connection

from mizzen.control.debug import views
from mizzen.control.debug.console import Query
from mizzen.xds.status import proxy_id


def page(name: str, case: str, proxy: str, **parameters: str) -> Any:
    loaded = golden.load_case(case)
    found = golden.proxy_of(loaded, proxy)
    shown = connection(proxy=found, id=f"{proxy_id(found)}-1")
    if parameters.pop("one", ""):
        parameters["proxyID"] = proxy_id(found)
    pages = views.pages(golden.engine_of(loaded), [shown])  # type: ignore[arg-type]
    return pages[name].read(Query(page=name, parameters=parameters))()


def test_instances_are_the_services_that_a_proxy_serves() -> None:
    (served,) = page("instancesz", "base", "cart").values()
    ports = {(each["Service"]["hostname"], each["Port"]["name"]): each["Port"] for each in served}
    assert ports == {
        ("cart.shop.svc.cluster.local", "http"): {
            "name": "http",
            "port": 8080,
            "protocol": "HTTP",
            "TargetPort": 8080,
        },
        ("cart.shop.svc.cluster.local", "grpc-admin"): {
            "name": "grpc-admin",
            "port": 9090,
            "protocol": "GRPC",
            "TargetPort": 9090,
        },
    }


def test_a_scope_without_a_sidecar_is_everything() -> None:
    scope = page("sidecarz", "base", "cart", one="yes")
    assert (scope["name"], scope["namespace"], scope["sidecar"]) == ("default-sidecar", "shop", None)
    assert scope["outboundTrafficPolicy"] == {"mode": "ALLOW_ANY"}
    hosts = {service["hostname"] for service in scope["services"]}
    assert {"cart.shop.svc.cluster.local", "front.web.svc.cluster.local"} <= hosts
    assert hosts == set(scope["servicesByHostname"])


def test_a_scope_names_the_rules_that_apply() -> None:
    scope = page(
        "sidecarz", "networking/subset-split", golden.load_case("networking/subset-split").look_from[0], one="yes"
    )
    assert scope["destinationRules"]
    for host, rules in scope["destinationRules"].items():
        assert host in scope["servicesByHostname"]
        assert all(set(rule) == {"namespace", "name"} for rule in rules)


def test_telemetry_of_one_proxy_is_worked_out_for_both_sides() -> None:
    found = page("telemetryz", "base", "cart", one="yes")
    assert found["telemetries"] == []
    assert set(found["sides"]) == {"CLIENT", "SERVER"}
    assert set(found["sides"]["CLIENT"]) == {"accessLogs", "metrics", "traces"}
