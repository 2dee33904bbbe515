"""What users wrote, shown as they would write it."""

from typing import Any

import golden

from mizzen.api.decode import decode_object
from mizzen.control.debug import objects, views
from mizzen.control.debug.console import Query
from mizzen.incremental import Engine

POLICY = {
    "apiVersion": "security.istio.io/v1",
    "kind": "AuthorizationPolicy",
    "metadata": {"name": "closed", "namespace": "shop", "annotations": {"why": "because"}},
    "spec": {"action": "DENY", "rules": [{"to": [{"operation": {"methods": ["POST"]}}]}]},
}
SERVICE = {
    "apiVersion": "networking.istio.io/v1",
    "kind": "VirtualService",
    "metadata": {"name": "cart", "namespace": "shop", "labels": {"a": "b"}},
    "spec": {
        "hosts": ["cart"],
        "http": [{"timeout": "1.5s", "route": [{"destination": {"host": "cart", "subset": "v1"}, "weight": 10}]}],
    },
}
TELEMETRY = {
    "apiVersion": "telemetry.istio.io/v1",
    "kind": "Telemetry",
    "metadata": {"name": "all", "namespace": "istio-system"},
    "spec": {"accessLogging": [{"providers": [{"name": "envoy"}]}]},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "key", "namespace": "shop"},
    "stringData": {"tls.key": "hunter2"},
}


def engine() -> Engine:
    db = golden.engine_of(golden.load_case("base"))
    for document in (POLICY, SERVICE, TELEMETRY, SECRET):
        golden.set_object(db, document)
    return db


def page(name: str) -> Any:
    db = engine()
    pages = {**objects.pages(db), **views.pages(db, [])}  # type: ignore[arg-type]
    return pages[name].read(Query(page=name))()


def test_configz_holds_the_mesh_s_objects_and_nothing_of_kubernetes() -> None:
    shown = page("configz")
    assert [(item["kind"], item["metadata"]["name"]) for item in shown] == [
        ("VirtualService", "cart"),
        ("AuthorizationPolicy", "closed"),
        ("Telemetry", "all"),
    ]
    assert "hunter2" not in str(shown)


def test_an_object_reads_back_as_itself() -> None:
    for document in page("configz"):
        again = decode_object(document)
        assert again.problems == ()
        assert (
            again.object
            == decode_object(next(d for d in (POLICY, SERVICE, TELEMETRY) if d["kind"] == document["kind"])).object
        )


def test_policies_stand_by_namespace() -> None:
    assert page("authorizationz") == {
        "authorization_policies": {
            "namespace_to_policies": {
                "shop": [
                    {
                        "name": "closed",
                        "namespace": "shop",
                        "annotations": {"why": "because"},
                        "spec": {"action": "DENY", "rules": [{"to": [{"operation": {"methods": ["POST"]}}]}]},
                    }
                ]
            },
            "root_namespace": "istio-system",
        }
    }


def test_telemetries_stand_by_namespace() -> None:
    shown = page("telemetryz")["telemetries"]
    assert shown["root_namespace"] == "istio-system"
    (telemetry,) = shown["namespace_to_telemetries"]["istio-system"]
    assert telemetry["spec"] == {"accessLogging": [{"providers": [{"name": "envoy"}]}]}


def test_the_mesh_config_in_force_has_its_defaults() -> None:
    shown = page("mesh")
    assert shown["trustDomain"] == "cluster.local"
    assert shown["rootNamespace"] == "istio-system"
    assert shown["connectTimeout"] == "10s"
    assert shown["defaultConfig"]["proxyAdminPort"] == 15000


def test_kinds_are_told_with_group_and_version() -> None:
    shown = page("resourcesz")
    assert {"group": "networking.istio.io", "version": "v1", "kind": "VirtualService"} in shown
    assert {"group": "", "version": "v1", "kind": "Service"} in shown
    assert {"group": "gateway.networking.k8s.io", "version": "v1", "kind": "Gateway"} in shown
