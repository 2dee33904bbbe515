"""On demand says the same as all at once: over the corpus, host by host and cluster by cluster."""

from typing import Any

import golden
import msgspec
import pytest

from mizzen import protos
from mizzen.compile import resource, snapshot
from mizzen.compile.filters import alpn
from mizzen.compile.on_demand import named_clusters
from mizzen.model import names
from mizzen.model.proxy import Proxy

CASES = ["base", *golden.case_names()]


def sidecars(case: Any) -> list[Proxy]:
    found = (golden.proxy_of(case, proxy, "envoy") for proxy in case.look_from)
    return [proxy for proxy in found if proxy.kind == "sidecar"]


@pytest.mark.parametrize("name", CASES)
def test_each_domain_of_a_whole_configuration_is_answered_with_its_virtual_host(name: str) -> None:
    case = golden.load_case(name)
    db = golden.engine_of(case)
    for proxy in sidecars(case):
        on_demand = msgspec.structs.replace(proxy, on_demand=True)
        whole = snapshot.everything(db, proxy)
        asked = set()
        for configuration in whole["routes"]:
            route: Any = configuration.message()
            if not names.is_asked_for_hosts(route.name):
                continue
            for host in route.virtual_hosts:
                spelled = {domain: domain.replace("*", "any").lower() for domain in host.domains}
                asked |= {f"{route.name}/{authority}" for authority in spelled.values()}
                for domain, authority in spelled.items():
                    assert answer(db, on_demand, f"{route.name}/{authority}") == renamed(host, route, authority), domain
        used = snapshot.resources(db, on_demand, resource.CLUSTER, frozenset(asked))
        assert all(whole["clusters"].get(cluster.name) == cluster for cluster in used)
        told = [
            *snapshot.resources(db, on_demand, resource.VIRTUAL_HOST, frozenset(asked)),
            *snapshot.resources(db, on_demand, resource.LISTENER, None),
        ]
        needed = set().union(*(named_clusters(db, each) for each in told))
        assert {cluster.name for cluster in whole["clusters"] if cluster.name in needed} <= set(used.names)


def answer(db: Any, proxy: Proxy, name: str) -> Any:
    """Without the words of ALPN that routes repeat, because listeners on demand do not say them."""
    (found,) = snapshot.resources(db, proxy, resource.VIRTUAL_HOST, frozenset({name}))
    answered = protos.to_json(found.message())
    for route in answered["routes"]:
        if route["typedPerFilterConfig"][alpn.ROUTE_FILTER] == protos.any_to_json(alpn.build_route_override("")):
            del route["typedPerFilterConfig"][alpn.ROUTE_FILTER]
        if not route["typedPerFilterConfig"]:
            del route["typedPerFilterConfig"]
    return answered


def renamed(host: Any, route: Any, authority: str) -> Any:
    return {**protos.to_json(host), "name": f"{route.name}/{authority}", "domains": [authority]}


@pytest.mark.parametrize("name", CASES)
def test_a_configuration_on_demand_holds_no_host_and_waits_for_hosts(name: str) -> None:
    case = golden.load_case(name)
    db = golden.engine_of(case)
    for proxy in sidecars(case):
        told = snapshot.everything(db, msgspec.structs.replace(proxy, on_demand=True))
        for configuration in told["routes"]:
            if names.is_asked_for_hosts(configuration.name):
                route: Any = configuration.message()
                assert route.vhds.config_source.WhichOneof("config_source_specifier") == "ads"
                assert "*" not in {domain for host in route.virtual_hosts for domain in host.domains}
