"""Services and endpoints in istiod's shapes, of the recorded mesh."""

import functools
from typing import Any

import golden

from mizzen.control.debug import registry
from mizzen.control.debug.console import Query


@functools.cache
def page(name: str, case: str = "base") -> Any:
    engine = golden.engine_of(golden.load_case(case))
    return registry.pages(engine)[name].read(Query(page=name))()


def services(case: str = "base") -> dict[str, Any]:
    return {service["hostname"]: service for service in page("registryz", case)}


def test_a_service_of_kubernetes() -> None:
    cart = services()["cart.shop.svc.cluster.local"]
    assert cart == {
        "Attributes": {
            "ServiceRegistry": "Kubernetes",
            "Name": "cart",
            "Namespace": "shop",
            "Labels": {"team": "checkout"},
            "ExportTo": {},
            "LabelSelectors": {"app": "cart"},
        },
        "ports": [
            {"name": "http", "port": 8080, "protocol": "HTTP"},
            {"name": "grpc-admin", "port": 9090, "protocol": "GRPC"},
        ],
        "serviceAccounts": [],
        "creationTime": "2026-01-01T00:00:00Z",
        "hostname": "cart.shop.svc.cluster.local",
        "clusterVIPs": {"Addresses": {"Kubernetes": ["10.96.2.1"]}},
        "defaultAddress": "10.96.2.1",
        "Resolution": 0,
        "MeshExternal": False,
    }


def test_services_are_sorted_and_of_every_namespace() -> None:
    hosts = list(services())
    assert hosts == sorted(hosts)
    assert {"front.web.svc.cluster.local", "ledger.pay.svc.cluster.local"} <= set(hosts)


def test_ports_that_are_sniffed_have_no_protocol() -> None:
    ports = services()["catalog.shop.svc.cluster.local"]["ports"]
    assert ports[0] == {"name": "main", "port": 8000, "protocol": "UnsupportedProtocol"}


def test_resolutions_have_istiods_numbers() -> None:
    found = {
        host: service["Resolution"]
        for case in ("networking/se-dns", "networking/se-static-and-none", "networking/service-types")
        for host, service in services(case).items()
    }
    assert set(found.values()) >= {0, 1, 2}
    assert all(service["MeshExternal"] in (True, False) for service in services("networking/se-dns").values())


def test_endpoints_stand_under_host_namespace_and_registry() -> None:
    shards = page("endpointShardz")
    cart = shards["cart.shop.svc.cluster.local"]["shop"]
    assert cart["ServiceAccounts"] == ["spiffe://cluster.local/ns/shop/sa/cart"]
    first, *_ = endpoints = cart["Shards"]["Kubernetes/Kubernetes"]
    assert {each["Addresses"][0] for each in endpoints} == {"10.1.2.10", "10.1.2.11", "10.1.2.12"}
    assert first == {
        "Labels": {
            "app": "cart",
            "pod-template-hash": "7c9d6b5f4",
            "security.istio.io/tlsMode": "istio",
            "version": "v1",
        },
        "Addresses": ["10.1.2.10"],
        "ServicePortName": "http",
        "ServiceAccount": "spiffe://cluster.local/ns/shop/sa/cart",
        "Network": "",
        "Locality": {"Label": "r1/z1/s1", "ClusterID": "Kubernetes"},
        "EndpointPort": 8080,
        "LbWeight": 0,
        "TLSMode": "istio",
        "Namespace": "shop",
        "WorkloadName": "cart-v1",
        "HostName": "",
        "SubDomain": "",
        "HealthStatus": 1,
        "NodeName": "node-a",
    }
    assert page("endpointz") == shards


def test_health_is_a_number() -> None:
    found = {
        endpoint["HealthStatus"]
        for namespaces in page("endpointShardz", "networking/endpoint-states").values()
        for entry in namespaces.values()
        for endpoints in entry["Shards"].values()
        for endpoint in endpoints
    }
    assert found >= {1, 2}
    assert found <= {0, 1, 2, 3, 4}
