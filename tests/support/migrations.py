"""Migrations of small Ingresses, and what came of them."""

from collections.abc import Mapping
from typing import Any

import yaml

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key, Object
from mizzen.api.validate.objects import validate_object
from mizzen.migrate.ingress import Migration, Options, migrate

PREFIX = "nginx.ingress.kubernetes.io/"


def ingress(
    annotations: Mapping[str, str] | None = None,
    *,
    name: str = "shop",
    namespace: str = "web",
    host: str = "shop.example",
    paths: Mapping[str, str] | None = None,
    service: str = "front",
    secret: str = "",
    day: int = 1,
    **spec: Any,
) -> dict[str, Any]:
    """An Ingress of nginx's: `paths` are types by path."""
    entries = [
        {"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": {"number": 80}}}}
        for path, kind in (paths or {"/": "Prefix"}).items()
    ]
    tls = {"tls": [{"hosts": [host], "secretName": secret}]} if secret else {}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": f"2026-01-{day:02}T00:00:00Z",
            "annotations": {PREFIX + key: value for key, value in (annotations or {}).items()},
        },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{"host": host, "http": {"paths": entries}}],
            **tls,
            **spec,
        },
    }


def objects(*documents: dict[str, Any] | str) -> dict[Key, Object]:
    """Objects by key, of plain ones or YAML."""
    listed = [one for d in documents for one in (yaml.safe_load_all(d) if isinstance(d, str) else [d]) if one]
    found = [decode_object(document) for document in listed]
    assert all(one.object is not None for one in found), [one.problems for one in found]
    return {one.key: one.object for one in found if one.key is not None and one.object is not None}


def migrated(*documents: dict[str, Any] | str, options: Options | None = None) -> Migration:
    """What becomes of these objects."""
    return migrate(objects(*documents), options)


def verdicts(done: Migration) -> dict[str, str]:
    """The verdict on each subject."""
    return {found.subject: found.verdict for found in done.findings}


def faults(done: Migration) -> list[str]:
    """What an API server would refuse of the documents."""
    found: list[str] = []
    for document in done.documents:
        decoded = decode_object(document)
        found += [str(problem) for problem in decoded.problems]
        if decoded.key is not None and decoded.object is not None:
            problems = validate_object(decoded.key, decoded.object)
            found += [str(problem) for problem in problems if problem.level == "error"]
    return found


def documents(done: Migration, kind: str) -> dict[str, dict[str, Any]]:
    """The documents of a kind by `namespace/name`; of Gateways only those of the Gateway API, if they are asked so."""
    group = {"KubernetesGateway": "gateway.networking.k8s.io"}.get(kind, "")
    wanted = "Gateway" if kind == "KubernetesGateway" else kind
    return {
        f"{d['metadata']['namespace']}/{d['metadata']['name']}": d
        for d in done.documents
        if d["kind"] == wanted
        and d["apiVersion"].startswith(group)
        and (kind != "Gateway" or d["apiVersion"].startswith("networking.istio.io"))
    }


def only(done: Migration, kind: str) -> dict[str, Any]:
    """The spec of the one document of a kind."""
    (found,) = documents(done, kind).values()
    spec: dict[str, Any] = found["spec"]
    return spec
