"""Plain objects under analysis in this process, without files: for tables of codes and for the engine's counts."""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from mizzen.analysis import analyzers, cluster, left_out, precheck, settings
from mizzen.analysis.findings import Finding
from mizzen.analysis.rules.services import REMOTE
from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import decode_mesh_networks, merge_mesh_config
from mizzen.api.meta import Key
from mizzen.incremental import Engine
from mizzen.model.mesh import MESH
from mizzen.sources.documents import parse_yaml

FAR = "far"
"""The remote cluster."""


def read_yaml(path: pathlib.Path) -> Any:
    """A file's one document, read as the product reads it."""
    return parse_yaml(path.read_text())[0].value


def put(engine: Engine, raw: Mapping[str, Any]) -> Key:
    """Make an object an input."""
    other = cluster.decode_cluster_object(raw)
    if other is not None:
        engine.set(*other)
        return other[0]
    decoded = decode_object(raw)
    assert decoded.object is not None, decoded.problems
    assert decoded.key is not None
    engine.set(decoded.key, decoded.object)
    conditions = cluster.read_conditions(raw)
    if conditions:
        engine.set(cluster.conditions_key(decoded.key), conditions)
    return decoded.key


def engine_of(
    objects: Iterable[Mapping[str, Any]],
    *,
    mesh: Mapping[str, Any] | None = None,
    networks: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    remote: Iterable[Mapping[str, Any]] = (),
) -> Engine:
    """An engine that holds all this."""
    engine = Engine()
    for raw in objects:
        put(engine, raw)
    remote = list(remote)
    for raw in remote:
        found = decode_object(raw)
        assert found.key is not None
        engine.set(Key(REMOTE, found.key.namespace, f"{FAR}/{found.key.name}"), found.object)
    engine.set(settings.SETTINGS, settings.Settings(clusters=(FAR,) if remote else ()))
    if mesh is not None:
        engine.set(MESH, merge_mesh_config(dict(mesh))[0])
    if networks is not None:
        engine.set(settings.NETWORKS, decode_mesh_networks(dict(networks))[0])
    if facts is not None:
        engine.set(settings.FACTS, settings.Facts(**facts))
    return engine


def find(
    engine: Engine, *, with_precheck: bool = False, more: Iterable[analyzers.Analyzer] = ()
) -> tuple[Finding, ...]:
    """Everything that is found."""
    found = analyzers.run(engine, (*analyzers.select(engine).executed, *more))
    found = (*found, *left_out.find(engine, found))
    return (*found, *precheck.check_all(engine)) if with_precheck else found
