"""Gateways of the Gateway API that nobody deploys: a local mesh deploys them, as the control plane would in a cluster.

In: the manifests' objects, how pods are injected here, the mesh config. Out: the same objects with the Deployments and
Services that the Gateways among them want, and what is in the way of others. What the manifests have under those names
themselves stays.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.api.meta import Key, Object
from mizzen.incremental import Engine
from mizzen.inject.gateways.manifests import Rendered, gateway_manifests
from mizzen.inject.values import InjectionConfig
from mizzen.model.convert.gateways.deployments import deployment
from mizzen.model.mesh import MESH

_GATEWAY = "KubernetesGateway"
_RUN_HERE = ("Deployment", "Service")


class Managed(NamedTuple):
    """Objects with all that is deployed for Gateways."""

    objects: Mapping[Key, Object]
    remarks: tuple[str, ...] = ()
    """About Gateways that are not deployed."""


def with_gateways(objects: Mapping[Key, Object], injection: InjectionConfig, mesh: Mapping[str, Any]) -> Managed:
    """The objects and what their Gateways want."""
    gateways = sorted(key for key in objects if key.kind == _GATEWAY)
    if not gateways:
        return Managed(objects)
    engine = Engine()
    engine.set(MESH, merge_mesh_config(dict(mesh))[0])
    for key, item in objects.items():
        engine.set(key, item)
    added: dict[Key, Object] = {}
    remarks: list[str] = []
    for key in gateways:
        wanted = deployment(engine, key)
        rendered = gateway_manifests(wanted, injection, mesh) if wanted is not None else Rendered()
        added.update(_decoded(rendered))
        remarks += [f"{problem.level}: {problem}" for problem in rendered.problems]
    return Managed({**added, **objects}, tuple(remarks))


def _decoded(rendered: Rendered) -> Iterator[tuple[Key, Object]]:
    for document in rendered.documents:
        found = decode_object(document)
        if found.key is not None and found.object is not None and found.key.kind in _RUN_HERE:
            yield found.key, found.object
