"""The Secrets of an authority, in the control plane's namespace.

In: a client. Out: what a Secret holds; Secrets that are made where there is none, and changed as they were last read
and no other: who is slower than another replica is told so, and reads again. Nothing of what they hold gets into a
message.
"""

from collections.abc import Mapping

import msgspec

from mizzen.errors import AuthorityError
from mizzen.sources.kube.client import MERGE_PATCH, Client, Refused

_ABSENT, _CONFLICT = 404, 409
_QUERY = {"fieldManager": "mizzen-authority"}


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    data: Mapping[str, bytes] | None = None

    def __repr__(self) -> str:
        return "_Secret([redacted])"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A Secret as it was read."""

    name: str
    where: str
    """What to call it in messages."""
    version: str
    data: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"Found({self.where}, version={self.version})"


class AuthoritySecrets:
    """Reads and writes them."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._path = f"/api/v1/namespaces/{namespace}/secrets"

    async def read(self, name: str) -> Found | None:
        """The Secret; None where there is none. Raises SourceError, or AuthorityError for what is none."""
        try:
            body = await self._client.get(f"{self._path}/{name}")
        except Refused as refusal:
            if refusal.status == _ABSENT:
                return None
            raise
        return self._decode(name, body)

    async def create(self, name: str, kind: str, data: Mapping[str, bytes]) -> Found | None:
        """Make the Secret; None where somebody else was quicker."""
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": {"app": "istiod"}},
            "type": kind,
            "data": data,
        }
        return await self._write(name, "POST", self._path, body)

    async def replace(self, found: Found, data: Mapping[str, bytes]) -> Found | None:
        """Change these keys of what was read; None where somebody else has written meanwhile, or removed it."""
        body = {"metadata": {"resourceVersion": found.version}, "data": data}
        return await self._write(found.name, "PATCH", f"{self._path}/{found.name}", body)

    async def _write(self, name: str, method: str, path: str, body: object) -> Found | None:
        content_type = MERGE_PATCH if method == "PATCH" else "application/json"
        try:
            answer = await self._client.call(method, path, body, query=_QUERY, content_type=content_type)
        except Refused as refusal:
            if refusal.status == _CONFLICT or (method == "PATCH" and refusal.status == _ABSENT):
                return None
            raise
        return self._decode(name, answer)

    def _decode(self, name: str, body: bytes) -> Found:
        where = f"Secret {self._namespace}/{name}"
        try:
            read = msgspec.json.decode(body, type=_Secret)
        except (msgspec.DecodeError, UnicodeError):
            # Without the cause: it could quote a key.
            raise AuthorityError(f"{where} cannot be read") from None
        return Found(name=name, where=where, version=read.metadata.resource_version, data=read.data or {})
