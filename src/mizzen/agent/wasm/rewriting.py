"""Extension configurations as Envoy can use them: every remote Wasm module a file of this pod.

In: an encoded ECDS response. Out: the same with local files in it, or, where a module cannot be had, with an RBAC
filter that lets everything pass (`FAIL_OPEN`) or nothing. What the control plane told the agent in the module's
environment, logins among it, is taken out: it is neither Envoy's nor the module's business.
"""

import asyncio
import time
from pathlib import Path
from typing import Any, cast

from mizzen import observe, protos
from mizzen.agent import metrics
from mizzen.agent.wasm.modules import Modules, Policy, Wanted
from mizzen.errors import AgentError

EXTENSION = protos.TYPE_PREFIX + "envoy.config.core.v3.TypedExtensionConfig"

_FILTERS = protos.TYPE_PREFIX + "envoy.extensions.filters."
_LAYERS = {f"{_FILTERS}{layer}.wasm.v3.Wasm": layer for layer in ("http", "network")}
_AGENTS_OWN = "ISTIO_META_"
_PULL_SECRET = "ISTIO_META_WASM_IMAGE_PULL_SECRET"
_PULL_POLICY = "ISTIO_META_WASM_IMAGE_PULL_POLICY"
_VERSION = "ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"
_NO_CHECKSUM = "nil"
"""What Istio's control plane writes where Envoy's definition demands something."""

_core_v3 = protos.package("envoy.config.core.v3")
_discovery = protos.package("envoy.service.discovery.v3")
_http_rbac_v3 = protos.package("envoy.extensions.filters.http.rbac.v3")
_network_rbac_v3 = protos.package("envoy.extensions.filters.network.rbac.v3")
_log = observe.scope("wasm")


class Rewriter:
    """Rewrites responses; knows which files are in use."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._used: dict[str, Path] = {}

    async def rewrite(self, data: bytes) -> bytes:
        """The response to pass on; the same bytes where nothing has to be fetched."""
        response = _discovery.DeltaDiscoveryResponse.FromString(data)
        for name in response.removed_resources:
            self._used.pop(name, None)
        changed = await asyncio.gather(*(self._rewrite(resource) for resource in response.resources))
        return protos.encode(response) if any(changed) else data

    async def keep_house(self, interval: float) -> None:
        """Purges now and then, until cancelled."""
        while True:
            await asyncio.sleep(interval)
            self._modules.purge(set(self._used.values()))

    async def _rewrite(self, resource: Any) -> bool:
        """Whether the resource was changed."""
        config = _core_v3.TypedExtensionConfig.FromString(resource.resource.value)
        layer = _LAYERS.get(config.typed_config.type_url)
        if layer is None:
            return False
        filter_: Any = protos.unpack(config.typed_config)
        plugin = filter_.config
        if not plugin.vm_config.code.HasField("remote"):
            metrics.WASM_CONVERSIONS.labels("no_remote_load").inc()
            return _keep_from_envoy(config, filter_, resource)
        started = time.monotonic()
        try:
            path = await self._modules.get(_read_wanted(config.name, plugin.vm_config))
        except AgentError as failed:
            metrics.WASM_CONVERSIONS.labels("fetch_failure").inc()
            allows = _fails_open(plugin)
            _log.warning("%s: %s; %s passes", config.name, failed, "everything" if allows else "nothing")
            self._used.pop(config.name, None)
            filter_ = _stand_in(layer, allows=allows)
        else:
            metrics.WASM_CONVERSIONS.labels("success").inc()
            self._used[config.name] = path
            plugin.vm_config.code.CopyFrom(_core_v3.AsyncDataSource(local={"filename": str(path)}))
            _forget_own(plugin.vm_config)
        metrics.WASM_CONVERSION_MILLISECONDS.observe((time.monotonic() - started) * 1000)
        config.typed_config.CopyFrom(protos.pack(filter_))
        resource.resource.value = protos.encode(config)
        return True


def _read_wanted(plugin: str, machine: Any) -> Wanted:
    """What the control plane says about the module, in the message and in the environment."""
    environment = machine.environment_variables.key_values
    remote = machine.code.remote
    if environment.get(_PULL_SECRET) == "":
        raise AgentError("its image pull secret is missing")
    policy = environment.get(_PULL_POLICY, "")
    return Wanted(
        plugin=plugin,
        version=environment.get(_VERSION, ""),
        url=remote.http_uri.uri,
        checksum="" if remote.sha256 == _NO_CHECKSUM else remote.sha256,
        policy=cast(Policy, policy if policy in ("IfNotPresent", "Always") else ""),
        logins=environment.get(_PULL_SECRET, ""),
    )


def _fails_open(plugin: Any) -> bool:
    policies = type(plugin).DESCRIPTOR.fields_by_name["failure_policy"].enum_type.values_by_number
    return policies[plugin.failure_policy].name == "FAIL_OPEN" or bool(plugin.fail_open)


def _keep_from_envoy(config: Any, filter_: Any, resource: Any) -> bool:
    """Take out of an extension that needs no module what is for the agent alone; whether there was anything."""
    machine = filter_.config.vm_config
    if not any(name.startswith(_AGENTS_OWN) for name in machine.environment_variables.key_values):
        return False
    _forget_own(machine)
    config.typed_config.CopyFrom(protos.pack(filter_))
    resource.resource.value = protos.encode(config)
    return True


def _forget_own(machine: Any) -> None:
    variables = machine.environment_variables
    for name in [name for name in variables.key_values if name.startswith(_AGENTS_OWN)]:
        del variables.key_values[name]
    if not variables.key_values and not variables.host_env_keys:
        machine.ClearField("environment_variables")


def _stand_in(layer: str, *, allows: bool) -> Any:
    """The RBAC filter in place of a module: without rules it asks nothing, with none that allows it refuses."""
    rules: dict[str, Any] = {} if allows else {"rules": {}}
    if layer == "http":
        return _http_rbac_v3.RBAC(**rules)
    return _network_rbac_v3.RBAC(stat_prefix=f"wasm-default-{'allow' if allows else 'deny'}", **rules)
