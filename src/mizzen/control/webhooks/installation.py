"""What the cluster says about injection now: the injector's ConfigMap, the mesh config, the nodes.

In: the objects that the control plane follows. Out: an `InjectionConfig` for a pod. The ConfigMap is
`istio-sidecar-injector` (`istio-sidecar-injector-REVISION`) of the control plane's namespace; without it the built-in
choices hold, and one that cannot be read leaves the last good one in force. Whether sidecars are native goes by the
kubelets as in Istio: that of the pod's own node if it has one, else all of them.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from mizzen import observe, settings
from mizzen.api.kube.cluster import Node
from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import Key, Object
from mizzen.control.options import Options
from mizzen.errors import DecodeError
from mizzen.inject.values import InjectionConfig, decode_injector
from mizzen.inject.workload import mapping
from mizzen.sources.kube.source import KubeSource

_log = observe.scope("injector")

_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_FIRST_NATIVE = (1, 33)
"""The first Kubernetes whose kubelets surely keep init containers running beside the others."""


def config_map_key(namespace: str, revision: str) -> Key:
    """The ConfigMap with the injector's values."""
    suffix = "" if revision in ("", "default") else f"-{revision}"
    return Key("ConfigMap", namespace, f"istio-sidecar-injector{suffix}")


def follow_installation(source: KubeSource, options: Options, config: settings.Settings) -> "Installation":
    """The choices for the objects that a control plane serves."""
    base = InjectionConfig(
        istio_namespace=config.instance.namespace,
        revision=config.instance.revision,
        cluster_domain=options.domain,
        cluster_id=options.cluster_id,
    )
    return Installation(source.objects, lambda: source.of_kind("Node"), base, config.injection.native_sidecars)


class Installation:
    """Reads the choices of an installation whenever they have changed."""

    def __init__(
        self,
        objects: Mapping[Key, Object],
        nodes: Callable[[], Iterable[Object]],
        base: InjectionConfig,
        native: bool | None,
    ) -> None:
        """`base` holds what is known without a ConfigMap; `native` is the operator's word, None if there is none."""
        self._objects, self._nodes, self._base, self._native = objects, nodes, base, native
        self._key = config_map_key(base.istio_namespace, base.revision)
        self._map: ConfigMap | None = None
        self._config = base
        self._is_missing_told = False

    def config_for(self, pod: Mapping[str, Any]) -> InjectionConfig:
        """The choices that hold for a pod."""
        native = self._is_native(pod)
        return msgspec.structs.replace(self._read(), native_sidecars=native)

    def _read(self) -> InjectionConfig:
        found = self._objects.get(self._key)
        if not isinstance(found, ConfigMap):
            if not self._is_missing_told:
                _log.warning("there is no %s; sidecars are injected by built-in values", self._key)
            self._map, self._config, self._is_missing_told = None, self._base, True
            return self._config
        if found is self._map:
            return self._config
        self._map, self._is_missing_told = found, False
        try:
            config = decode_injector({"data": dict(self._map.data)}, self._base)
        except DecodeError as error:
            _log.error("%s: %s; the last good values stay in force", self._key, error)
            return self._config
        # By its revision a control plane is found; what the values say of it was meant for their templates.
        self._config = msgspec.structs.replace(config, revision=self._base.revision)
        return self._config

    def _is_native(self, pod: Mapping[str, Any]) -> bool:
        if self._native is not None:
            return self._native
        bound = self._objects.get(Key("Node", "", str(mapping(pod, "spec").get("nodeName") or "")))
        if isinstance(bound, Node):
            return is_native(bound)
        return all(map(is_native, self._nodes()))


def is_native(node: Object) -> bool:
    """Whether a node's kubelet keeps sidecars as init containers; not if it does not say its version."""
    status = node.status if isinstance(node, Node) else None
    info = status.node_info if status is not None else None
    return info is not None and _keeps_sidecars(info.kubelet_version)


@functools.lru_cache(maxsize=256)
def _keeps_sidecars(version: str) -> bool:
    found = _VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) >= _FIRST_NATIVE
