"""Extension configurations on their way through the agent."""

import asyncio
import contextlib

import pytest
from eventually import eventually
from module_servers import MODULE, Files, serving

from mizzen import protos
from mizzen.agent.wasm.downloads import Downloads
from mizzen.agent.wasm.modules import Modules
from mizzen.agent.wasm.rewriting import EXTENSION, Rewriter

_core_v3 = protos.package("envoy.config.core.v3")
_discovery = protos.package("envoy.service.discovery.v3")
TYPES = {
    "http": "envoy.extensions.filters.http.wasm.v3.Wasm",
    "network": "envoy.extensions.filters.network.wasm.v3.Wasm",
}


@pytest.fixture
async def rewriting(tmp_path):
    """A rewriter, and the address of a server with one module."""
    async with serving(Files({"/m": MODULE})) as (address, session):
        modules = Modules(tmp_path, Downloads(session, retries=0), expiry=3600.0)
        yield Rewriter(modules), f"http://{address}"


def extension(name: str, uri: str, *, layer: str = "http", failure: str = "FAIL_CLOSED", **environment: str):
    remote = {"http_uri": {"uri": uri, "cluster": "_", "timeout": {"seconds": 30}}}
    machine = {
        "runtime": "envoy.wasm.runtime.v8",
        "code": {"remote": remote},
        "environment_variables": {"key_values": environment},
    }
    plugin = protos.message_class(TYPES[layer])(config={"name": name, "vm_config": machine, "failure_policy": failure})
    return _core_v3.TypedExtensionConfig(name=name, typed_config=protos.pack(plugin))


def response(*configs, **more) -> bytes:
    resources = [{"name": config.name, "version": "1", "resource": protos.pack(config)} for config in configs]
    return protos.encode(_discovery.DeltaDiscoveryResponse(type_url=EXTENSION, nonce="n", resources=resources, **more))


def contents(data: bytes) -> dict:
    """The filters in a response, by name."""
    found = _discovery.DeltaDiscoveryResponse.FromString(data)
    configs = [protos.unpack(resource.resource) for resource in found.resources]
    return {config.name: protos.unpack(config.typed_config) for config in configs}


@pytest.mark.parametrize("layer", ["http", "network"])
async def test_a_module_becomes_a_file_and_what_the_agent_was_told_is_taken_out(rewriting, layer, tmp_path):
    rewriter, server = rewriting
    told = {"ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION": "7", "ISTIO_META_WASM_IMAGE_PULL_POLICY": "Always"}
    sent = response(extension("a", f"{server}/m", layer=layer, OWN="kept", **told))
    machine = contents(await rewriter.rewrite(sent))["a"].config.vm_config
    (file,) = tmp_path.iterdir()
    assert machine.code.local.filename == str(file)
    assert dict(machine.environment_variables.key_values) == {"OWN": "kept"}


async def test_an_environment_with_nothing_of_the_plugins_own_goes_altogether(rewriting):
    rewriter, server = rewriting
    sent = response(extension("a", f"{server}/m", ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION="7"))
    assert not contents(await rewriter.rewrite(sent))["a"].config.vm_config.HasField("environment_variables")


@pytest.mark.parametrize(
    ("layer", "failure", "stands_in"),
    [
        ("http", "FAIL_CLOSED", {"rules": {}}),
        ("http", "FAIL_RELOAD", {"rules": {}}),
        ("http", "FAIL_OPEN", {}),
        ("network", "FAIL_CLOSED", {"rules": {}, "statPrefix": "wasm-default-deny"}),
        ("network", "FAIL_OPEN", {"statPrefix": "wasm-default-allow"}),
    ],
)
async def test_what_cannot_be_fetched_gives_way_and_its_neighbours_stay(rewriting, layer, failure, stands_in):
    rewriter, server = rewriting
    lost = extension("lost", f"{server}/missing", layer=layer, failure=failure)
    found = contents(await rewriter.rewrite(response(lost, extension("good", f"{server}/m"))))
    assert found["lost"].DESCRIPTOR.full_name == f"envoy.extensions.filters.{layer}.rbac.v3.RBAC"
    assert protos.to_json(found["lost"]) == stands_in
    assert found["good"].config.vm_config.code.local.filename


async def test_an_address_that_is_none_gives_way_as_well(rewriting):
    rewriter, server = rewriting
    sent = response(extension("lost", "http://host:99999/m"), extension("good", f"{server}/m"))
    found = contents(await rewriter.rewrite(sent))
    assert protos.to_json(found["lost"]) == {"rules": {}}
    assert found["good"].config.vm_config.code.local.filename


async def test_a_secret_that_is_missing_is_not_done_without(rewriting):
    rewriter, server = rewriting
    sent = response(extension("a", f"{server}/m", ISTIO_META_WASM_IMAGE_PULL_SECRET=""))
    assert protos.to_json(contents(await rewriter.rewrite(sent))["a"]) == {"rules": {}}


async def test_whatever_else_there_is_passes_byte_for_byte(rewriting):
    rewriter, _ = rewriting
    lua = protos.package("envoy.extensions.filters.http.lua.v3").Lua()
    other = _core_v3.TypedExtensionConfig(name="lua", typed_config=protos.pack(lua))
    local = protos.message_class(TYPES["http"])(config={"vm_config": {"code": {"local": {"filename": "/m.wasm"}}}})
    here = _core_v3.TypedExtensionConfig(name="here", typed_config=protos.pack(local))
    sent = response(other, here, removed_resources=["gone"])
    assert await rewriter.rewrite(sent) == sent


async def test_only_modules_in_use_outlive_their_time(tmp_path):
    clock = [0.0]
    async with serving(Files({"/a": MODULE, "/b": MODULE + b"\0"})) as (address, session):
        modules = Modules(tmp_path, Downloads(session, retries=0), expiry=10.0, clock=lambda: clock[0])
        rewriter = Rewriter(modules)
        await rewriter.rewrite(response(extension("a", f"http://{address}/a"), extension("b", f"http://{address}/b")))
        await rewriter.rewrite(response(removed_resources=["b"]))
        clock[0] = 100.0
        house = asyncio.create_task(rewriter.keep_house(0.01))
        try:
            await eventually(lambda: len(list(tmp_path.iterdir())) == 1)
        finally:
            house.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await house
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == MODULE


async def test_a_module_that_is_a_file_already_brings_envoy_no_logins(rewriting):
    rewriter, _ = rewriting
    told = extension("a", "", OWN="kept", ISTIO_META_WASM_IMAGE_PULL_SECRET="login")
    plugin = protos.unpack(told.typed_config)
    plugin.config.vm_config.code.CopyFrom(_core_v3.AsyncDataSource(local={"filename": "/m.wasm"}))
    told.typed_config.CopyFrom(protos.pack(plugin))
    machine = contents(await rewriter.rewrite(response(told)))["a"].config.vm_config
    assert machine.code.local.filename == "/m.wasm"
    assert dict(machine.environment_variables.key_values) == {"OWN": "kept"}
