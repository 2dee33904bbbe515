"""Image references, logins, and modules out of a registry."""

import json

import pytest
from module_servers import MODULE, MODULE_LAYER, TAR_LAYER, Registry, logins, packed, serving

from mizzen.agent.wasm.downloads import Downloads
from mizzen.agent.wasm.images import Images, find_login, parse_reference
from mizzen.errors import AgentError

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("url", "registry", "repository", "version", "moves"),
    [
        ("oci://ghcr.io/team/plugin:v1", "ghcr.io", "team/plugin", "v1", False),
        ("oci://ghcr.io/team/plugin", "ghcr.io", "team/plugin", "latest", True),
        ("oci://localhost:5000/plugin:latest", "localhost:5000", "plugin", "latest", True),
        ("oci://localhost/plugin:v1", "localhost", "plugin", "v1", False),
        ("oci://plugin:v2", "index.docker.io", "library/plugin", "v2", False),
        ("oci://team/plugin", "index.docker.io", "team/plugin", "latest", True),
        ("oci://docker.io/plugin:v1", "index.docker.io", "library/plugin", "v1", False),
        (f"oci://ghcr.io/team/plugin@{DIGEST}", "ghcr.io", "team/plugin", DIGEST, False),
        (f"oci://ghcr.io/team/plugin:latest@{DIGEST}", "ghcr.io", "team/plugin", DIGEST, False),
    ],
)
def test_references(url, registry, repository, version, moves):
    found = parse_reference(url)
    assert (found.registry, found.repository, found.version, found.moves) == (registry, repository, version, moves)


def test_what_is_no_reference_is_named():
    with pytest.raises(AgentError, match="is no image"):
        parse_reference("oci://ghcr.io/team/plugin@sha256:abc")


def test_logins_are_found_by_registry():
    assert find_login(logins("ghcr.io"), "ghcr.io") == find_login(logins("https://ghcr.io/v2/"), "ghcr.io") != ""
    assert find_login(logins("https://index.docker.io/v1/"), "index.docker.io") != ""
    assert find_login(logins("ghcr.io"), "quay.io") == ""
    parts = json.dumps({"auths": {"ghcr.io": {"username": "reader", "password": "secret"}}})
    assert find_login(parts, "ghcr.io") == find_login(logins("ghcr.io"), "ghcr.io")
    with pytest.raises(AgentError, match="the image pull secret cannot be read"):
        find_login("auths", "ghcr.io")


async def fetch(registry: Registry, version: str = ":v1", login: bool = False) -> tuple[bytes, str]:
    async with serving(registry) as (address, session):
        images = Images(Downloads(session, insecure=(address,), retries=0))
        reference = parse_reference(f"oci://{address}/team/plugin{version}")
        return await images.fetch(reference, logins(address) if login else "")


@pytest.mark.parametrize(("layer", "media_type"), [(MODULE, MODULE_LAYER), (packed(), TAR_LAYER)])
async def test_a_module_is_a_layer_or_lies_in_one(layer, media_type):
    registry = Registry()
    digest = registry.push("v1", layer, media_type)
    assert await fetch(registry) == (MODULE, digest.removeprefix("sha256:"))


async def test_a_digest_names_the_manifest():
    registry = Registry()
    digest = registry.push("v1", MODULE, MODULE_LAYER)
    assert (await fetch(registry, f"@{digest}"))[0] == MODULE
    registry.content[f"manifests/{digest}"] += b" "
    with pytest.raises(AgentError, match="has the digest"):
        await fetch(registry, f"@{digest}")


async def test_an_index_leads_to_an_image():
    registry = Registry()
    image = registry.push("v1-linux", MODULE, MODULE_LAYER)
    entries = [
        {"digest": DIGEST, "platform": {"os": "windows", "architecture": "amd64"}},
        {"digest": image, "platform": {"os": "linux", "architecture": "arm64"}},
    ]
    digest = registry.publish("v1", json.dumps({"manifests": entries}).encode())
    assert await fetch(registry) == (MODULE, digest.removeprefix("sha256:"))


@pytest.mark.parametrize("way", ["Bearer", "Basic"])
async def test_a_registry_gets_the_login_that_it_asks_for(way):
    registry = Registry(guarded=way)
    registry.push("v1", MODULE, MODULE_LAYER)
    assert (await fetch(registry, login=True))[0] == MODULE
    assert registry.requests.count("/v2/team/plugin/manifests/v1") == 2
    with pytest.raises(AgentError, match=r"gives no token|wants a login"):
        await fetch(registry)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"{}", "has no layer"),
        (b"<html>", "the manifest of team/plugin:v1 cannot be read"),
        (b'{"config":' + b"[" * 100_000, "the manifest of team/plugin:v1 cannot be read"),
        (b'{"layers": [{"size": 1}]}', "the manifest of team/plugin:v1 cannot be read"),
        (json.dumps({"layers": [{"digest": DIGEST}]}).encode(), "answers 404"),
    ],
)
async def test_a_manifest_that_leads_nowhere(manifest, message):
    registry = Registry()
    registry.publish("v1", manifest)
    with pytest.raises(AgentError, match=message):
        await fetch(registry)


async def test_a_layer_must_be_what_its_digest_says():
    registry = Registry()
    registry.push("v1", MODULE, MODULE_LAYER)
    blob = next(name for name in registry.content if name.startswith("blobs/"))
    registry.content[blob] = MODULE + b"more"
    with pytest.raises(AgentError, match="is not what its digest says"):
        await fetch(registry)
