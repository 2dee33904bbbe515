"""What the manifests hold now, and what a mesh on this machine adds to it: the answers to "what is KEY?".

In: the objects of the manifests as their source delivers them, and the mesh's root certificates. Out: look-ups for
pods (ConfigMaps, Secrets, Namespaces), the mesh config, nodes, and the objects that make pods. Where the manifests say
nothing, a local mesh has its own word: a mesh config with DNS capture and access logs, one node, the ConfigMap with
the roots and the one with revocation lists in every namespace.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import yaml

from mizzen.api.kube.cluster import Node
from mizzen.api.kube.data import ConfigMap
from mizzen.api.kube.services import EndpointSlice, Service
from mizzen.api.kube.workloads import CronJob, Job
from mizzen.api.meta import Key, Object, ObjectMeta, key_of
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.local import publish
from mizzen.local.isolation import Isolation

ROOT_CONFIG_MAP = "istio-ca-root-cert"
REVOCATION_CONFIG_MAP = "istio-ca-crl"
MESH_CONFIG = Key("ConfigMap", publish.SYSTEM_NAMESPACE, "istio")
HOLDS_UNRUN = (Job, CronJob)
"""Kinds that make pods and that a local mesh does not run."""

DEFAULT_MESH_CONFIG = """\
accessLogFile: /dev/stdout
defaultProviders:
  metrics: [prometheus]
enablePrometheusMerge: true
rootNamespace: istio-system
trustDomain: cluster.local
defaultConfig:
  concurrency: 1
  proxyMetadata:
    ISTIO_META_DNS_CAPTURE: "true"
"""


def mesh_text(objects: Mapping[Key, Object]) -> str:
    """The mesh config that these manifests come to, as YAML."""
    found = objects.get(MESH_CONFIG)
    return found.data.get("mesh", "") if isinstance(found, ConfigMap) else DEFAULT_MESH_CONFIG


class Inventory:
    """The objects of one moment; replaced as a whole by `take`."""

    def __init__(
        self, isolation: Isolation, agent_address: str, roots: Callable[[], str], revocations: Callable[[], str]
    ) -> None:
        self.objects: Mapping[Key, Object] = {}
        self.taken = False
        self._isolation = isolation
        self._agent_address = agent_address
        self._distributed = {
            ROOT_CONFIG_MAP: ("root-cert.pem", roots),
            # Empty without any: a file that is in a pod is only ever replaced.
            REVOCATION_CONFIG_MAP: ("ca-crl.pem", revocations),
        }
        self._mesh: tuple[str, Mapping[str, Any]] = ("", {})

    def take(self, objects: Mapping[Key, Object]) -> None:
        """These are the manifests' objects now."""
        self.objects = objects
        self.taken = True

    def look_up(self, key: Key) -> Object | None:
        """An object of the manifests, or what the authority distributes under the names that Istio gives it."""
        if key.kind == "ConfigMap" and key.name in self._distributed and key not in self.objects:
            metadata = ObjectMeta(name=key.name, namespace=key.namespace)
            name, content = self._distributed[key.name]
            return ConfigMap(metadata=metadata, data={name: content()})
        return self.objects.get(key)

    @property
    def brings_mesh_config(self) -> bool:
        return MESH_CONFIG in self.objects

    def mesh_config(self) -> Mapping[str, Any]:
        """The mesh config for injection, with what this way of isolation needs of every sidecar."""
        text = mesh_text(self.objects)
        if self._mesh[0] != text:
            try:
                parsed = yaml.safe_load(text)
            except yaml.YAMLError:
                parsed = None  # The control plane says so; here the last good one stays.
            if isinstance(parsed, dict):
                self._mesh = (text, parsed)
        return self._adapt(self._mesh[1])

    def _adapt(self, mesh: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._isolation.users:
            return mesh
        default = {**(mesh.get("defaultConfig") or {}), "discoveryAddress": self._agent_address}
        if self._isolation is Isolation.NONE:
            default["interceptionMode"] = "NONE"
            metadata = {**(default.get("proxyMetadata") or {})}
            metadata.pop("ISTIO_META_DNS_CAPTURE", None)
            default["proxyMetadata"] = metadata
        return {**mesh, "defaultConfig": default}

    def node_of(self, selector: Mapping[str, str], name: str) -> str:
        """Where a pod runs: the node it names, the first that its selector takes, else this machine."""
        if name or not selector:
            return name or publish.NODE_NAME
        for key, item in sorted(self.objects.items()):
            if isinstance(item, Node) and selector.items() <= item.metadata.labels.items():
                return key.name
        return publish.NODE_NAME

    def services(self) -> tuple[Service, ...]:
        return tuple(item for _, item in sorted(self.objects.items()) if isinstance(item, Service))

    def entries(self) -> tuple[ServiceEntry, ...]:
        return tuple(item for _, item in sorted(self.objects.items()) if isinstance(item, ServiceEntry))

    def named_hosts(self) -> tuple[Object, ...]:
        """What else the resolver must know: endpoints and outside hosts that the manifests write themselves."""
        kinds = (EndpointSlice, ServiceEntry)
        return tuple(item for _, item in sorted(self.objects.items()) if isinstance(item, kinds))

    def unrun(self) -> tuple[Key, ...]:
        """Objects that would make pods in a cluster and make none here."""
        return tuple(sorted(key for key, item in self.objects.items() if isinstance(item, HOLDS_UNRUN)))


class Additions(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses that the objects of a local mesh carry."""

    hub: str
    control_plane: str
    """Where the control plane listens for pods."""
    control_plane_ip: str
    """The address of its Service."""


def build_additions(inventory: Inventory, addresses: Additions) -> tuple[Object, ...]:
    """What the manifests leave to the mesh: node, control plane, and a mesh config if they bring none."""
    objects: list[Object] = [publish.build_node(addresses.hub)]
    objects += publish.build_control_plane(addresses.control_plane, addresses.control_plane_ip)
    if not inventory.brings_mesh_config:
        objects.append(publish.build_mesh_config(DEFAULT_MESH_CONFIG))
    known = inventory.objects.keys()
    return tuple(item for item in objects if key_of(item) not in known)
