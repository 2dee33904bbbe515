"""Name tables: what a proxy's agent resolves."""

from typing import Any

from meshes import endpoints, mesh_of, proxy, service, told

from mizzen.compile import resource

HEADLESS = """
apiVersion: v1
kind: Service
metadata: {name: db, namespace: pay}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: tcp, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: pay, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: tcp, port: 5432}]
endpoints:
- {addresses: [10.0.1.1], conditions: {ready: true}, targetRef: {kind: Pod, name: db-0, namespace: pay}}
- addresses: [10.0.1.2]
  conditions: {ready: false, terminating: false}
  targetRef: {kind: Pod, name: db-1, namespace: pay}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: pay, labels: {app: db}}
spec: {hostname: db-0, subdomain: db, containers: [{name: a, image: a}]}
status: {podIP: 10.0.1.1}
---
apiVersion: v1
kind: Pod
metadata: {name: db-1, namespace: pay, labels: {app: db}}
spec: {hostname: db-1, subdomain: db, containers: [{name: a, image: a}]}
status: {podIP: 10.0.1.2}
"""

ENTRY = """
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: out, namespace: web}
spec: {hosts: [api.example.net, "*.wild.example.net"], addresses: [198.51.100.7], ports: [{number: 443, name: tls, protocol: TLS}], resolution: STATIC, endpoints: [{address: 203.0.113.1}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ranges, namespace: web}
spec: {hosts: [range.example.net], addresses: [198.51.100.0/24], ports: [{number: 1, name: tcp, protocol: TCP}], resolution: NONE}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: no-address, namespace: web}
spec: {hosts: [bare.example.net], ports: [{number: 443, name: tls, protocol: TLS}], resolution: DNS}
"""


def table(*texts: str, **metadata: Any) -> dict[str, Any]:
    (found,) = told(mesh_of(*texts), proxy(**metadata), resource.NAME_TABLE).values()
    return found.get("table", {})


def test_a_service_resolves_to_its_virtual_address() -> None:
    found = table(service("front", ip="10.96.0.5"))
    assert found["front.web.svc.cluster.local"] == {
        "ips": ["10.96.0.5"],
        "registry": "Kubernetes",
        "shortname": "front",
        "namespace": "web",
    }


def test_a_headless_service_resolves_to_its_ready_pods_and_each_pod_by_name() -> None:
    found = table(HEADLESS)
    assert found["db.pay.svc.cluster.local"]["ips"] == ["10.0.1.1"]
    assert found["db-0.db.pay.svc.cluster.local"]["ips"] == ["10.0.1.1"]
    assert found["db-0.db.pay.svc.cluster.local"]["shortname"] == "db-0.db"
    assert "db-1.db.pay.svc.cluster.local" not in found


def test_a_headless_service_without_ready_pods_does_not_resolve() -> None:
    assert table(HEADLESS.replace("ready: true", "ready: false, terminating: false")) == {}


def test_entries_outside_kubernetes_have_no_short_name() -> None:
    found = table(ENTRY)
    assert found["api.example.net"] == {"ips": ["198.51.100.7"], "registry": "External"}
    assert found["*.wild.example.net"]["ips"] == ["198.51.100.7"]


def test_ranges_and_hosts_without_an_address_do_not_resolve() -> None:
    assert {"range.example.net", "bare.example.net"} & table(ENTRY).keys() == set()


def test_kubernetes_wins_a_shared_host() -> None:
    shared = ENTRY.replace("[api.example.net", "[front.web.svc.cluster.local")
    found = table(shared, service("front", ip="10.96.0.5"))
    assert found["front.web.svc.cluster.local"]["registry"] == "Kubernetes"
    assert found["front.web.svc.cluster.local"]["ips"][0] == "10.96.0.5"


def test_a_change_of_a_pod_reruns_only_its_service() -> None:
    db = mesh_of(HEADLESS, service("front"), endpoints("front", "10.0.0.1"))
    who = proxy()
    told(db, who, resource.NAME_TABLE)
    before = dict(db.runs_by_query)
    from meshes import apply

    apply(db, HEADLESS.replace("ready: false, terminating: false", "ready: true"))
    told(db, who, resource.NAME_TABLE)
    assert db.runs_by_query["service_names"] - before["service_names"] == 1
