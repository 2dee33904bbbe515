"""Objects for an API server, as short as they can be, and the CRDs of kinds that the mesh reads."""

from typing import Any


def service(namespace: str, name: str, port: int = 80, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": port}]},
    }


def pod(namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    }


def path_of(document: dict[str, Any], plural: str) -> str:
    """Where an object stands."""
    group = document["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    metadata = document["metadata"]
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{inside}/{plural}/{metadata['name']}"


def definition(
    kind: str, plural: str, group: str, *versions: str, schema: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A CRD that takes anything; the first version is the one stored."""
    loose = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "schema": {"openAPIV3Schema": loose},
                    "subresources": {"status": {}},
                }
                for version in versions
            ],
        },
    }
