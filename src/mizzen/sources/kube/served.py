"""Which of our kinds an API server has, and at which version.

In: a Client. Out: a `Resource` for each kind that is served, at the first version of ours that the server has; a kind
of which the server has only versions that we do not know is not served. A group that cannot be asked right now (an
aggregated server that is down) counts as before.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from mizzen.api.kinds import KINDS, Kind
from mizzen.sources.kube.client import Client, Refused

SERVED_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind.group not in ("apps", "batch"))
"""The kinds that decide what proxies are told; who made a pod stands in the pod."""

_NOISE = ("helm.sh/release.v1", "kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")


class Resource(NamedTuple):
    """A kind at the version that it is read at."""

    kind: Kind
    version: str
    namespace: str = ""
    """Of one namespace alone."""
    selector: str = ""
    """Of these labels alone, as the server takes selectors in a query."""

    @property
    def path(self) -> str:
        """The path of the objects: of all namespaces, if not of one."""
        inside = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{_root(self.kind.group)}/{self.version}/{inside}{self.kind.plural}"

    def path_to(self, namespace: str, name: str) -> str:
        """The path of one object."""
        inside = f"namespaces/{namespace}/" if namespace else ""
        return f"{_root(self.kind.group)}/{self.version}/{inside}{self.kind.plural}/{name}"

    @property
    def query(self) -> Mapping[str, str]:
        """Leaves out what is never read: Helm keeps whole releases in Secrets."""
        query = {"labelSelector": self.selector} if self.selector else {}
        if self.kind.kind == "Secret":
            query["fieldSelector"] = ",".join(f"type!={name}" for name in _NOISE)
        return query


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Group(msgspec.Struct, frozen=True):
    versions: tuple[_Version, ...] = ()


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Resources(msgspec.Struct, frozen=True):
    resources: tuple[_Named, ...] = ()


def _root(group: str) -> str:
    return f"/apis/{group}" if group else "/api"


async def find_served(
    client: Client, kinds: Iterable[Kind] = SERVED_KINDS, before: Mapping[str, Resource] | None = None
) -> dict[str, Resource]:
    """By the kind's name. Raises SourceError when the server cannot be asked at all."""
    wanted: dict[str, list[Kind]] = {}
    for kind in kinds:
        wanted.setdefault(kind.group, []).append(kind)
    found: dict[str, Resource] = {}
    for group, members in wanted.items():
        try:
            found |= await _find_in(client, group, members)
        except Refused as refusal:
            if refusal.status != 503 or before is None:
                raise
            found |= {kind.name: before[kind.name] for kind in members if kind.name in before}
    return found


async def _find_in(client: Client, group: str, kinds: list[Kind]) -> dict[str, Resource]:
    try:
        body = await client.get(_root(group))
    except Refused as refusal:
        if refusal.status == 404:
            return {}
        raise
    if group:
        versions = [one.version for one in msgspec.json.decode(body, type=_Group).versions]
    else:
        versions = ["v1"]
    names = {version: await _names(client, group, version) for version in versions if _is_known(version, kinds)}
    found: dict[str, Resource] = {}
    for kind in kinds:
        version = next((one for one in kind.versions if kind.plural in names.get(one, ())), None)
        if version is not None:
            found[kind.name] = Resource(kind, version)
    return found


def _is_known(version: str, kinds: list[Kind]) -> bool:
    return any(version in kind.versions for kind in kinds)


async def _names(client: Client, group: str, version: str) -> frozenset[str]:
    try:
        body = await client.get(f"{_root(group)}/{version}")
    except Refused as refusal:
        if refusal.status == 404:  # Gone since we asked for the group.
            return frozenset()
        raise
    return frozenset(one.name for one in msgspec.json.decode(body, type=_Resources).resources)
