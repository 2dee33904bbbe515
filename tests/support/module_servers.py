"""Servers of Wasm modules for tests of the agent: plain HTTP, and a registry as the distribution protocol has it."""

import base64
import contextlib
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

MODULE = b"\0asm\1\0\0\0"
USER, PASSWORD = "reader", "secret"
MODULE_LAYER = "application/vnd.module.wasm.content.layer.v1+wasm"
TAR_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


class Files:
    """Answers by path; `failures` is how many requests are told to come again first."""

    def __init__(self, files: dict[str, bytes], failures: int = 0) -> None:
        self.files = files
        self.failures = failures
        self.requests: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        if self.failures:
            self.failures -= 1
            return web.Response(status=503)
        content = self.files.get(request.path)
        return web.Response(status=404) if content is None else web.Response(body=content)


class Registry:
    """One repository, `team/plugin`; with `guarded` only for who brings the token that the login gives."""

    def __init__(self, *, guarded: str = "") -> None:
        self.guarded = guarded
        self.address = ""
        self.content: dict[str, bytes] = {}
        self.requests: list[str] = []

    def push(self, tag: str, layer: bytes, media_type: str) -> str:
        """Publishes an image of one layer; its digest."""
        digest = self._store("blobs", layer)
        manifest = {"schemaVersion": 2, "layers": [{"mediaType": media_type, "digest": digest, "size": len(layer)}]}
        return self.publish(tag, json.dumps(manifest).encode())

    def publish(self, tag: str, manifest: bytes) -> str:
        """Publishes a manifest; its digest."""
        self.content[f"manifests/{tag}"] = manifest
        return self._store("manifests", manifest)

    def _store(self, kind: str, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.content[f"{kind}/{digest}"] = content
        return digest

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        expected = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
        if request.path == "/token":
            known = request.headers.get("Authorization") == expected
            assert request.query["scope"] == "repository:team/plugin:pull"
            return web.json_response({"token": "open sesame"}) if known else web.Response(status=403)
        wanted = {"": None, "Basic": expected, "Bearer": "Bearer open sesame"}[self.guarded]
        if wanted is not None and request.headers.get("Authorization") != wanted:
            realm = f'realm="http://{self.address}/token",service="tests"'
            return web.Response(status=401, headers={"WWW-Authenticate": f"{self.guarded} {realm}"})
        content = self.content.get(request.path.removeprefix("/v2/team/plugin/"))
        return web.Response(status=404) if content is None else web.Response(body=content)


@contextlib.asynccontextmanager
async def serving(server: Files | Registry) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """host:port of the server, and a session to ask it with."""
    application = web.Application()
    application.router.add_get("/{path:.*}", server.answer)
    async with TestServer(application) as running, aiohttp.ClientSession() as session:
        address = f"{running.host}:{running.port}"
        if isinstance(server, Registry):
            server.address = address
        yield address, session


def archive(**files: bytes) -> bytes:
    """A tar archive; `__` in a name stands for a dot."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "."))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def logins(*servers: str) -> str:
    """An image pull secret with the right login for these servers."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    return json.dumps({"auths": {server: {"auth": login} for server in servers}})


def packed(module: bytes = MODULE) -> bytes:
    """The layer of an ordinary image."""
    return gzip.compress(archive(plugin__wasm=module))
