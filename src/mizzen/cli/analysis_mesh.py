"""The engine that `analyze` asks: manifests, the mesh config, and what the command line says, as inputs.

In: `Manifests` and settings. Out: an engine filled with them, and kept up to date with other manifests, so that only
what differs between two states is analysed again.
"""

import os
from typing import Any

import click
import msgspec

from mizzen import settings as process_settings
from mizzen.analysis import cluster
from mizzen.analysis import settings as analysis_settings
from mizzen.analysis.settings import Settings
from mizzen.api.mesh.merge import decode_mesh_networks
from mizzen.api.meta import Key, Object
from mizzen.cli import offline
from mizzen.cli.analysis_files import Manifests
from mizzen.control.mesh import MeshSettings, config_map_key
from mizzen.errors import SourceError
from mizzen.incremental import Engine
from mizzen.model import mesh
from mizzen.sources import documents
from mizzen.sources.origins import Origin


class Mesh:
    """Manifests under analysis."""

    def __init__(self, asked: Settings, mesh_file: str = "") -> None:
        self.engine = Engine()
        self._asked = asked
        self._mesh_file = mesh_file
        self._inputs: dict[Key, Any] = {}

    def put(self, manifests: Manifests) -> None:
        """Make the engine hold these manifests and nothing else."""
        wanted: dict[Key, Any] = dict(manifests.objects)
        wanted |= {cluster.conditions_key(key): value for key, value in manifests.conditions.items()}
        wanted |= self._settings(manifests)
        for key in self._inputs.keys() - wanted.keys():
            self.engine.remove(key)
        for key, value in wanted.items():
            self.engine.set(key, value)
        self._inputs = wanted

    def _settings(self, manifests: Manifests) -> dict[Key, Any]:
        config_map = _config_map(manifests, self._asked)
        read, _ = process_settings.load(os.environ)
        found: dict[Key, Any] = {
            analysis_settings.SETTINGS: self._asked,
            mesh.CONTROL_PLANE: offline.control_plane(read),
            mesh.MESH: _mesh_config(self._mesh_file, config_map),
        }
        networks = _networks(config_map)
        if networks is not None:
            found[analysis_settings.NETWORKS] = networks
        return found


def _config_map(manifests: Manifests, asked: Settings) -> Object | None:
    return manifests.objects.get(config_map_key(asked.istio_namespace, asked.revision))


def _mesh_config(path: str, config_map: Any) -> Any:
    """The mesh config of the file, or else of the ConfigMap, or else the default."""
    try:
        found = MeshSettings(path)
    except SourceError as bad:
        click.echo(f"Warning: {bad}; going on without it", err=True)
        found = MeshSettings()
        path = ""
    if not path and config_map is not None:
        found.follow(config_map, Origin(str(config_map.metadata.name)))
    return found.config


def _networks(config_map: Any) -> Any:
    text = config_map.data.get("meshNetworks") if config_map is not None else None
    if not text:
        return None
    try:
        raw = next((d.value for d in documents.parse_yaml(text) if d.value is not None), None)
        return decode_mesh_networks(raw)[0] if raw is not None else None
    except (documents.DocumentError, msgspec.MsgspecError):
        return None
