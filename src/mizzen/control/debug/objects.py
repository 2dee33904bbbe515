"""What users wrote, as the control plane holds it: configz, authorizationz, telemetryz, mesh, resourcesz.

In: the engine's inputs. Out: Kubernetes-style objects, with the fields that differ from their defaults. Only kinds of
the mesh's own API groups are shown; Secrets are of none of them.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from mizzen.api.kinds import KINDS, Kind, is_our_group, kind_named
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.meta import Object
from mizzen.api.scalars import encode_scalar
from mizzen.control.debug.console import Page, Pages, Query, Write
from mizzen.incremental import Engine
from mizzen.model import mesh

_OURS = tuple(kind for kind in KINDS if is_our_group(kind.group))


def pages(engine: Engine) -> Pages:
    """The pages about objects."""

    def read_config(_: Query) -> Write:
        held = [(kind, _objects(engine, kind)) for kind in _OURS]
        return lambda: [describe(kind, item) for kind, items in held for item in items]

    def read_policies(_: Query) -> Write:
        return by_namespace(engine, "AuthorizationPolicy", "authorization_policies", "namespace_to_policies")

    def read_mesh(_: Query) -> Write:
        config: MeshConfig = mesh.mesh_config(engine)
        return lambda: plain(config)

    return {
        "authorizationz": Page("AuthorizationPolicies by namespace.", read_policies),
        "configz": Page("All objects of Istio and the Gateway API.", read_config),
        "mesh": Page("The mesh config in force.", read_mesh),
        "resourcesz": Page("The kinds of object that are read.", lambda _: _resources),
    }


def by_namespace(engine: Engine, kind: str, outer: str, inner: str) -> Write:
    """Writes the objects of one kind by namespace, with the root namespace beside them."""
    held = _objects(engine, kind_named(kind))
    root = mesh.root_namespace(engine)

    def write() -> dict[str, Any]:
        found: dict[str, list[dict[str, Any]]] = {}
        for item in held:
            found.setdefault(item.metadata.namespace, []).append(_named_spec(item))
        return {outer: {inner: found, "root_namespace": root}}

    return write


def _objects(engine: Engine, kind: Kind) -> list[Object]:
    found: Iterable[Any] = (engine.peek(key) for key in sorted(engine.keys(kind.name)))
    return [item for item in found if isinstance(item, Object)]


def describe(kind: Kind, item: Object) -> dict[str, Any]:
    """The object as Kubernetes would have it."""
    return {"kind": kind.kind, "apiVersion": kind.api_version, **plain(item)}


def _named_spec(item: Any) -> dict[str, Any]:
    return {
        "name": item.metadata.name,
        "namespace": item.metadata.namespace,
        "annotations": dict(item.metadata.annotations),
        "spec": plain(item.spec),
    }


def plain(value: Any) -> Any:
    """A Struct as plain JSON data, under the names that users write."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=encode_scalar))


def _resources() -> list[dict[str, str]]:
    return [{"group": kind.group, "version": kind.versions[0], "kind": kind.kind} for kind in KINDS]
