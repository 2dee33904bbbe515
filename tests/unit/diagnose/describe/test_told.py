"""Which objects a recorded proxy's configuration names."""

import golden
import pytest

from mizzen.api.meta import Key
from mizzen.diagnose.describe import told
from mizzen.diagnose.dump import Dump

CART = "cart.shop.svc.cluster.local"
PAYMENTS = "payments.pay.svc.cluster.local"


def recorded(case: str, proxy: str) -> Dump:
    """What the proxy was served, as its Envoy would dump it."""
    found = golden.expected(golden.load_case(case), proxy)
    admin = "type.googleapis.com/envoy.admin.v3."
    clusters = [{"cluster": value} for value in found["clusters"].values()]
    listeners = [{"name": n, "activeState": {"listener": value}} for n, value in found["listeners"].items()]
    routes = [{"routeConfig": value} for value in found["routes"].values()]
    return Dump(
        (
            {"@type": f"{admin}ClustersConfigDump", "dynamicActiveClusters": clusters},
            {"@type": f"{admin}ListenersConfigDump", "dynamicListeners": listeners},
            {"@type": f"{admin}RoutesConfigDump", "dynamicRouteConfigs": routes},
        )
    )


@pytest.mark.parametrize("port", [443, 9000])
def test_routes_of_tls_and_tcp_are_found_in_filter_chains(port: int) -> None:
    found = told.find_virtual_services(recorded("networking/vs-tls-tcp-routes", "payments"), told.Port(PAYMENTS, port))

    assert found == (Key("VirtualService", "pay", "payments"),)


def test_http_routes_are_found_in_the_configuration_of_the_port() -> None:
    source = recorded("networking/subset-split", "front")

    assert told.find_virtual_services(source, told.Port(CART, 8080)) == (Key("VirtualService", "shop", "cart"),)
    assert told.find_destination_rule(source, told.Port(CART, 8080)) == Key("DestinationRule", "shop", "cart")


def test_what_a_proxy_was_not_told_is_not_found() -> None:
    source = recorded("base", "front")

    assert told.find_virtual_services(source, told.Port(CART, 8080)) == ()
    assert told.find_destination_rule(source, told.Port(CART, 8080)) is None
    assert told.find_policies(source) == ()
    assert told.find_virtual_services(Dump(()), told.Port(CART, 8080)) == ()


def test_policies_of_connections_count_where_there_is_no_http() -> None:
    found = told.find_policies(recorded("security/authz-tcp", "ledger"))

    assert "ns[pay]-policy[d-ledger]-rule[0]" in found
    assert list(found) == sorted(found)
