"""Extension configurations: what filters fetch by name, from EnvoyFilters and from Wasm extensions.

In: the names asked for, the proxy's patches of EXTENSION_CONFIG and its extensions. Out: the resources of those names.
What nobody asks for is not sent, whatever its context. Fetching the module is the agent's business; it reads what it
needs from the environment written here, the image pull secret included.
Golden cases: networking/ef-extension-config, networking/wasm-plugins.
"""

import json
from collections.abc import Iterator
from typing import Any

from mizzen import protos
from mizzen.api.kube.data import Secret
from mizzen.api.meta import Key
from mizzen.api.policy import WasmConfig
from mizzen.compile import resource
from mizzen.compile.patches import trial
from mizzen.compile.patches.values import patches
from mizzen.compile.resource import Resource, ResourceSet, encode_resource
from mizzen.incremental import Engine, attempt, query
from mizzen.model import wasm
from mizzen.model.envoy_filters import PatchId
from mizzen.model.proxy import Dialect
from mizzen.model.wasm import Extension

_core_v3 = protos.package("envoy.config.core.v3")
_known = protos.package("google.protobuf")

_PULL_SECRET = "ISTIO_META_WASM_IMAGE_PULL_SECRET"
_PULL_POLICY = "ISTIO_META_WASM_IMAGE_PULL_POLICY"
_RESOURCE_VERSION = "ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"
_REGISTRY_LOGIN = ".dockerconfigjson"
_SECRET_SCHEME = "kubernetes://"
_SCHEMES = ("http://", "https://", "oci://", "file://")
_FAILURE = {"FAIL_CLOSE": "FAIL_CLOSED", "FAIL_OPEN": "FAIL_OPEN", "FAIL_RELOAD": "FAIL_RELOAD"}
_FETCH_TIMEOUT = {"seconds": 30}


@query
def configurations(
    db: Engine,
    names: frozenset[str],
    ids: tuple[PatchId, ...],
    extensions: tuple[Extension, ...],
    dialect: Dialect,
    with_logins: bool,
) -> ResourceSet:
    """The extension configurations of these names; of two of one name that of the EnvoyFilter, and the first, stays.

    Logins of registries are for proxies that have proved who they are; others are told that there are none.
    """
    found: dict[str, Resource] = {}
    for patch in patches(db, ids):
        if patch.operation != "ADD" or patch.value.name not in names:
            continue
        if (reason := trial.refusal(patch.value, dialect)) is not None:
            db.remark(trial.build_refusal(patch, reason))
            continue
        found.setdefault(patch.value.name, encode_resource(patch.value.name, patch.value))
    for each in _fetched(db, names, extensions, with_logins):
        found.setdefault(each.name, each)
    return ResourceSet(resource.EXTENSION, found.values())


def _fetched(
    db: Engine, names: frozenset[str], extensions: tuple[Extension, ...], with_logins: bool
) -> Iterator[Resource]:
    for extension in extensions:
        if extension.resource_name in names:
            built = attempt(configuration, db, extension, with_logins)
            if built is not None:
                yield built


@query
def configuration(db: Engine, extension: Extension, with_logins: bool) -> Resource | None:
    """The Wasm configuration of an extension; None for one whose code stands in the filter."""
    found = wasm.wasm_config(db, extension.key)
    if found is None:
        return None
    config, version = found
    plugin: dict[str, Any] = {
        "name": extension.qualified_name,
        "root_id": config.plugin_name,
        "configuration": _configuration(config),
        "failure_policy": _FAILURE[config.fail_strategy],
        "vm_config": {
            "runtime": "envoy.wasm.runtime.v8",
            "code": _code(config),
            "environment_variables": _environment(db, extension.key.namespace, config, version, with_logins),
        },
    }
    kind = protos.message_class(f"envoy.extensions.filters.{extension.layer}.wasm.v3.Wasm")
    message = _core_v3.TypedExtensionConfig(name=extension.resource_name, typed_config=protos.pack(kind(config=plugin)))
    return encode_resource(extension.resource_name, message)


def _configuration(config: WasmConfig) -> Any:
    """What the plugin is told: JSON text with sorted keys; an empty `Any` where there is nothing to tell."""
    if not config.plugin_config:
        return {}
    text = json.dumps(_plain(config.plugin_config), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return protos.pack(_known.StringValue(value=text))


def _plain(value: Any) -> Any:
    """JSON as protobuf writes it: whole numbers without a fraction."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _code(config: WasmConfig) -> dict[str, Any]:
    """Where the module is: a file of the proxy's, or an address that the agent fetches from and replaces by a file."""
    if config.url.startswith("file://"):
        return {"local": {"filename": config.url.removeprefix("file://")}}
    url = config.url if config.url.startswith(_SCHEMES) else f"oci://{config.url}"
    return {"remote": {"http_uri": {"uri": url, "cluster": "_", "timeout": _FETCH_TIMEOUT}, "sha256": config.sha256}}


def _environment(db: Engine, namespace: str, config: WasmConfig, version: str, with_logins: bool) -> dict[str, Any]:
    values = {_RESOURCE_VERSION: version}
    if config.image_pull_secret:
        values[_PULL_SECRET] = pull_secret(db, namespace, config.image_pull_secret) if with_logins else ""
    if config.image_pull_policy != "UNSPECIFIED_POLICY":
        values[_PULL_POLICY] = config.image_pull_policy
    written = config.vm_config.env if config.vm_config is not None else ()
    values |= {each.name: each.value for each in written if each.value_from == "INLINE"}
    return {
        "host_env_keys": [each.name for each in written if each.value_from == "HOST"],
        "key_values": values,
    }


@query
def pull_secret(db: Engine, namespace: str, name: str) -> str:
    """The registry logins in an image pull secret of the extension's own namespace; empty where there are none.

    An empty text tells the agent that a secret was asked for and is missing, so that it does not fetch without one.
    """
    owner, slash, bare = name.removeprefix(_SECRET_SCHEME).rpartition("/")
    if slash and owner != namespace:
        return ""
    secret: Secret | None = db.input(Key("Secret", namespace, bare))
    data = secret.get(_REGISTRY_LOGIN) if secret is not None else None
    return data.decode(errors="replace") if data is not None else ""
