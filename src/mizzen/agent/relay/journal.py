"""The last good configuration, on disk: what Envoy has accepted, by type.

In: the control plane's responses, each once Envoy (or the agent, for its own subscriptions) has acknowledged it.
Out: the resources in force, when an Envoy starts while the control plane is away. One file a type: the accepted
responses one after the other, each behind its length, so that a change costs what it weighs. When a file has grown
to twice its content it is written anew. A torn end, from a process that died while writing, is left out.

The folder is private: a gateway's responses hold the keys of its servers. It lies beside Envoy's bootstrap, in memory
where Kubernetes mounts it. Configuration of another node (a pod's name used again) is thrown away.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from google.protobuf.message import DecodeError as WireError

from mizzen import observe, protos
from mizzen.agent.files import read_file, write_file

_LENGTH_BYTES = 4
_SMALLEST_REWRITE = 64 * 1024
_OWNER = "node"

_discovery = protos.package("envoy.service.discovery.v3")
_log = observe.scope("relay")


class Journal:
    """All accepted resources of one node."""

    def __init__(self, folder: Path, node_id: str) -> None:
        self._folder = folder
        self._types: dict[str, _File] = {}
        if read_file(folder / _OWNER) != node_id.encode():
            shutil.rmtree(folder, ignore_errors=True)
            write_file(folder / _OWNER, node_id.encode())

    def accept(self, type_url: str, response: bytes) -> None:
        """Take up an encoded DeltaDiscoveryResponse that was acknowledged."""
        try:
            self._file(type_url).append(response)
        except OSError as failed:
            _log.warning("cannot keep the last good configuration: %s", failed)

    def forget(self, type_url: str, names: Iterable[str]) -> None:
        """Leave out resources that Envoy no longer asks for."""
        gone = sorted(set(names) & self._file(type_url).names)
        if gone:
            self.accept(type_url, protos.encode(_discovery.DeltaDiscoveryResponse(removed_resources=gone)))

    def replace_at_next(self, type_url: str) -> None:
        """Let the next accepted response of this type be the first of a new state; until then the old one stays."""
        self._file(type_url).replace = True

    def holds(self, type_url: str) -> bool:
        """Whether any response of this type was ever accepted, even one without resources."""
        return not self._file(type_url).empty

    def load(self, type_url: str) -> Mapping[str, bytes]:
        """The resources in force by name, each an encoded `envoy.service.discovery.v3.Resource`."""
        return self._file(type_url).load()

    def _file(self, type_url: str) -> "_File":
        file = self._types.get(type_url)
        if file is None:
            file = self._types[type_url] = _File(self._folder / type_url.rpartition("/")[2])
        return file


class _File:
    """The accepted responses of one type; sizes are kept in memory, resources only on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._weights: dict[str, int] = {}
        self._weight = 0
        self._size = 0
        self.replace = False
        self.load()

    @property
    def names(self) -> set[str]:
        """The resources in force."""
        return set(self._weights)

    @property
    def empty(self) -> bool:
        """Whether nothing was accepted yet."""
        return not self._size

    def append(self, response: bytes) -> None:
        """Take up one accepted response."""
        if self.replace:
            self.replace = False
            self._weights.clear()
            self._weight = self._size = 0
            write_file(self._path, b"")
        record = len(response).to_bytes(_LENGTH_BYTES, "big") + response
        try:
            with open(self._path, "ab", opener=_open_private) as file:
                file.write(record)
        except OSError:
            # What follows a part of a record is not read again.
            with contextlib.suppress(OSError):
                os.truncate(self._path, self._size)
            raise
        self._size += len(record)
        self._count(response)
        if self._size > max(_SMALLEST_REWRITE, 2 * self._weight):
            self._rewrite()

    def _count(self, response: bytes) -> None:
        message = _discovery.DeltaDiscoveryResponse.FromString(response)
        for resource in message.resources:
            self._weight -= self._weights.get(resource.name, 0)
            self._weights[resource.name] = weight = resource.ByteSize()
            self._weight += weight
        for name in message.removed_resources:
            self._weight -= self._weights.pop(name, 0)

    def _rewrite(self) -> None:
        whole = _discovery.DeltaDiscoveryResponse()
        for data in self.load().values():
            whole.resources.add().ParseFromString(data)
        response = protos.encode(whole)
        record = len(response).to_bytes(_LENGTH_BYTES, "big") + response
        write_file(self._path, record)
        self._size = len(record)

    def load(self) -> dict[str, bytes]:
        """Read the file, and count anew what it holds."""
        content = read_file(self._path) or b""
        resources: dict[str, bytes] = {}
        end = 0
        while (start := end + _LENGTH_BYTES) <= len(content):
            stop = start + int.from_bytes(content[end:start], "big")
            if stop > len(content) or not _replay(content[start:stop], resources):
                break
            end = stop
        if end < len(content):
            with contextlib.suppress(OSError):
                os.truncate(self._path, end)
        self._weights = {name: len(data) for name, data in resources.items()}
        self._weight = sum(self._weights.values())
        self._size = end
        return resources


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _replay(response: bytes, resources: dict[str, bytes]) -> bool:
    """Apply one response to the state; False where it is not one."""
    try:
        message = _discovery.DeltaDiscoveryResponse.FromString(response)
    except WireError:
        return False
    for resource in message.resources:
        resources[resource.name] = protos.encode(resource)
    for name in message.removed_resources:
        resources.pop(name, None)
    return True
