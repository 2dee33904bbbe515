"""Modules in OCI registries.

In: an image reference and the logins of an image pull secret. Out: the module and the digest of the image's manifest.
Read are the artifacts and the images that Wasm modules are published as: a layer of the module's own media type, or a
last layer that holds a file `….wasm`. Registries are asked as the distribution protocol has it: first without a login,
then with the token (or the password) that they demand.
"""

import asyncio
import base64
import hashlib
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from mizzen.agent.wasm.downloads import Downloads, Reply, unpack
from mizzen.errors import AgentError

_DEFAULT_REGISTRY = "index.docker.io"
_DEFAULT_REGISTRY_API = "registry-1.docker.io"
_MODULE_LAYER = "application/vnd.module.wasm.content.layer.v1+wasm"
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_SYSTEMS = ("linux", "wasi", "wasip1", "unknown", "")
_REFERENCE = re.compile(r"(?P<name>[^@]+?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


Answer = TypeVar("Answer")


class _Platform(msgspec.Struct, frozen=True):
    os: str = ""


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A layer of an image, or an image of an index."""

    digest: str
    media_type: str = ""
    platform: _Platform | None = None


class _Manifest(msgspec.Struct, frozen=True):
    """An image or an index of images."""

    layers: tuple[_Part, ...] = ()
    manifests: tuple[_Part, ...] = ()


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


class _Login(msgspec.Struct, frozen=True):
    auth: str = ""
    username: str = ""
    password: str = ""


class _Logins(msgspec.Struct, frozen=True):
    """A .dockerconfigjson."""

    auths: dict[str, _Login] = {}


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """An image: where, which, and which version of it."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def version(self) -> str:
        return self.digest or self.tag

    @property
    def moves(self) -> bool:
        """Whether another image may stand under this name tomorrow, by custom."""
        return not self.digest and self.tag == "latest"


def parse_reference(url: str) -> Reference:
    """`oci://[REGISTRY/]REPOSITORY[:TAG][@DIGEST]`, with Docker's registry and the tag `latest` where none is named."""
    text = url.removeprefix("oci://")
    host, slash, rest = text.partition("/")
    if not slash or not (host == "localhost" or {".", ":"} & set(host)):
        host, rest = _DEFAULT_REGISTRY, text
    match = _REFERENCE.fullmatch(rest)
    if match is None:
        raise AgentError(f"{url} is no image")
    name = match["name"]
    if host in (_DEFAULT_REGISTRY, "docker.io"):
        host = _DEFAULT_REGISTRY
        name = name if "/" in name else f"library/{name}"
    digest = match["digest"] or ""
    return Reference(registry=host, repository=name, tag=match["tag"] or ("" if digest else "latest"), digest=digest)


def find_login(logins: str, registry: str) -> str:
    """The `user:password`, in base64, that a .dockerconfigjson has for a registry; empty without one."""
    for server, login in _decode(logins.encode(), _Logins, "the image pull secret").auths.items():
        host = server.partition("://")[2] or server
        if host.partition("/")[0] in (registry, _alias(registry)):
            return login.auth or base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
    return ""


def _decode(content: bytes, kind: type[Answer], what: str) -> Answer:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise AgentError(f"{what} cannot be read: {bad}") from bad


def _alias(registry: str) -> str:
    return "docker.io" if registry == _DEFAULT_REGISTRY else registry


class Images:
    """Fetches modules from registries."""

    def __init__(self, downloads: Downloads) -> None:
        self._downloads = downloads

    async def fetch(self, reference: Reference, logins: str) -> tuple[bytes, str]:
        """The module, and the SHA-256 of the image's manifest."""
        asking = _Asking(self._downloads, reference, find_login(logins, reference.registry) if logins else "")
        manifest, digest = await asking.get_manifest(reference.version)
        if manifest.manifests:
            manifest, _ = await asking.get_manifest(_choose(manifest.manifests))
        if not manifest.layers:
            raise AgentError(f"{reference.repository}:{reference.version} has no layer")
        own = [layer for layer in manifest.layers if layer.media_type == _MODULE_LAYER]
        content = await asking.get_blob((own or manifest.layers)[-1].digest)
        return await asyncio.to_thread(unpack, content), digest


def _choose(images: Sequence[_Part]) -> str:
    """The image of an index: a module is the same on every machine, so the first that is for Linux or for any."""
    suitable = [each for each in images if each.platform is None or each.platform.os in _SYSTEMS]
    return (suitable or images)[0].digest


class _Asking:
    """Questions about one image, with the authorisation that its registry asked for."""

    def __init__(self, downloads: Downloads, reference: Reference, login: str) -> None:
        self._downloads = downloads
        self._reference = reference
        self._login = login
        self._authorisation = ""
        host = _DEFAULT_REGISTRY_API if reference.registry == _DEFAULT_REGISTRY else reference.registry
        scheme = "http" if downloads.is_insecure(reference.registry) else "https"
        self._base = f"{scheme}://{host}/v2/{reference.repository}"

    async def get_manifest(self, version: str) -> tuple[_Manifest, str]:
        reply = await self._get(f"{self._base}/manifests/{version}", accept=", ".join((*_INDEXES, *_MANIFESTS)))
        digest = hashlib.sha256(reply.body).hexdigest()
        if version.startswith("sha256:") and version != f"sha256:{digest}":
            raise AgentError(f"{self._reference.repository}@{version} has the digest sha256:{digest}")
        return _decode(reply.body, _Manifest, f"the manifest of {self._reference.repository}:{version}"), digest

    async def get_blob(self, digest: str) -> bytes:
        reply = await self._get(f"{self._base}/blobs/{digest}")
        if digest != f"sha256:{hashlib.sha256(reply.body).hexdigest()}":
            raise AgentError(f"layer {digest} of {self._reference.repository} is not what its digest says")
        return reply.body

    async def _get(self, address: str, *, accept: str = "*/*") -> Reply:
        reply = await self._ask(address, accept)
        if reply.status == 401 and not self._authorisation:
            self._authorisation = await self._authorise(reply.headers.get("www-authenticate", ""))
            reply = await self._ask(address, accept)
        if reply.status != 200:
            raise AgentError(f"{address} answers {reply.status}")
        return reply

    async def _ask(self, address: str, accept: str) -> Reply:
        headers = {"Accept": accept}
        if self._authorisation:
            headers["Authorization"] = self._authorisation
        return await self._downloads.get(address, headers)

    async def _authorise(self, challenge: str) -> str:
        """The value of `Authorization` that answers a challenge."""
        kind, _, rest = challenge.partition(" ")
        basic = {"Authorization": f"Basic {self._login}"} if self._login else {}
        if kind.lower() == "basic" and basic:
            return basic["Authorization"]
        asked: Mapping[str, str] = dict(_CHALLENGE.findall(rest))
        if kind.lower() != "bearer" or "realm" not in asked:
            raise AgentError(f"{self._reference.registry} wants a login that there is none for")
        query = {"service": asked.get("service", ""), "scope": f"repository:{self._reference.repository}:pull"}
        reply = await self._downloads.get(f"{asked['realm']}?{urllib.parse.urlencode(query)}", basic)
        if reply.status != 200:
            raise AgentError(f"{self._reference.registry} gives no token: {asked['realm']} answers {reply.status}")
        token = _decode(reply.body, _Token, f"the token of {self._reference.registry}")
        return f"Bearer {token.token or token.access_token}"
