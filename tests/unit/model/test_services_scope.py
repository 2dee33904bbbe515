"""Who shares the answers about services: namespaces that see the same of them, and nobody else."""

import listener_mesh
import pytest

from mizzen.incremental import Engine
from mizzen.model import scope
from mizzen.model.scope import PUBLIC, ScopeId

SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: web}
spec: {clusterIP: 10.96.0.2, ports: [{name: http, port: 80}]}
"""
PRIVATE = """
apiVersion: v1
kind: Service
metadata: {name: till, namespace: shop, annotations: {networking.istio.io/exportTo: "."}}
spec: {clusterIP: 10.96.0.3, ports: [{name: http, port: 80}]}
"""
ENTRY = """
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: out, namespace: NAMESPACE}
spec: {hosts: [out.example], addresses: [240.0.0.1, 240.0.0.2], resolution: NONE, ports: [{number: 443, name: tls}]}
"""
SIDECAR = """
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: shop}
spec: {egress: [{hosts: ["./*"]}]}
"""
NAMESPACES = ("shop", "web", "idle")


def entry(namespace: str) -> str:
    return ENTRY.replace("NAMESPACE", namespace)


def hosts(db: Engine, namespace: str) -> set[tuple[str, str]]:
    found = scope.scope_services(db, scope.select_scope(db, namespace, ()))
    return {(service.host.partition(".svc.")[0], service.namespace) for service in found}


def sharing(db: Engine) -> set[str]:
    return {n for n in NAMESPACES if scope.services_scope(db, scope.select_scope(db, n, ())) == PUBLIC}


PUBLIC_HOSTS = {("cart.shop", "shop"), ("front.web", "web")}


def test_who_sees_the_same_asks_once() -> None:
    db = listener_mesh.mesh_of(SERVICES)
    assert [hosts(db, namespace) for namespace in NAMESPACES] == [PUBLIC_HOSTS] * 3
    for namespace in NAMESPACES:
        assert scope.scoped_service(db, ScopeId(namespace), "cart.shop.svc.cluster.local") is not None
    assert (db.runs_by_query["_scope_services"], db.runs_by_query["_group_services"]) == (1, 1)


@pytest.mark.parametrize(
    ("more", "apart", "host"),
    [
        ((PRIVATE,), {"shop"}, ("till.shop", "shop")),
        ((SIDECAR,), {"shop"}, ("cart.shop", "shop")),
        ((entry("shop"), entry("web")), {"shop", "web"}, ("out.example", "shop")),
        ((entry("shop"),), set(), ("out.example", "shop")),
    ],
    ids=["a service of its own", "a Sidecar", "a host of two namespaces", "two addresses of one host"],
)
def test_who_sees_something_else_is_apart(more: tuple[str, ...], apart: set[str], host: tuple[str, str]) -> None:
    whole = listener_mesh.mesh_of("---".join((SERVICES, *more)))
    assert set(NAMESPACES) - sharing(whole) == apart
    assert host in hosts(whole, "shop")
    changed = listener_mesh.mesh_of(SERVICES)
    assert sharing(changed) == set(NAMESPACES)
    for document in more:
        listener_mesh.add(changed, document)
    for namespace in NAMESPACES:
        assert hosts(changed, namespace) == hosts(whole, namespace)


def test_a_host_of_two_namespaces_is_each_ones_own() -> None:
    db = listener_mesh.mesh_of("---".join((SERVICES, entry("shop"), entry("web"))))
    assert ("out.example", "shop") in hosts(db, "shop")
    assert ("out.example", "web") in hosts(db, "web")
    assert hosts(db, "web") - PUBLIC_HOSTS == {("out.example", "web")}
    assert hosts(db, "idle") == hosts(db, "shop")
