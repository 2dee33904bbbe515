"""Encoded xDS resources and immutable sets of them: what `compile` makes and `xds` serves.

In: protobuf messages. Out: `Resource`, whose version is a hash of its deterministic bytes, and `ResourceSet`, sorted by
name and shared by every proxy that is told the same. Nothing here knows what a resource means or who gets it.
"""

import hashlib
from collections.abc import Iterable, Iterator

from google.protobuf.message import Message

from mizzen import protos

CLUSTER = protos.TYPE_PREFIX + "envoy.config.cluster.v3.Cluster"
ENDPOINT = protos.TYPE_PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment"
LISTENER = protos.TYPE_PREFIX + "envoy.config.listener.v3.Listener"
ROUTE = protos.TYPE_PREFIX + "envoy.config.route.v3.RouteConfiguration"
SECRET = protos.TYPE_PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret"
EXTENSION = protos.TYPE_PREFIX + "envoy.config.core.v3.TypedExtensionConfig"
NAME_TABLE = protos.TYPE_PREFIX + "istio.networking.nds.v1.NameTable"
TRUST_BUNDLE = protos.TYPE_PREFIX + "istio.mesh.v1alpha1.ProxyConfig"

_HASH_BYTES = 8


class Resource:
    """One named resource, encoded once. Equal when name and version are: the version is a hash of `data`."""

    __slots__ = ("data", "name", "version")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        """The resource as an encoded `google.protobuf.Any`."""
        self.version = hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.version == other.version and self.name == other.name

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    def __repr__(self) -> str:
        return f"Resource({self.name!r}, version={self.version})"

    def message(self) -> Message:
        """The decoded resource; for printing and tests, never on the path of a push."""
        return protos.unpack(protos.message_class("google.protobuf.Any").FromString(self.data))


def encode_resource(name: str, message: Message) -> Resource:
    """The message as a resource of that name."""
    return Resource(name, protos.encode(protos.pack(message)))


class ResourceSet:
    """An immutable set of resources of one type, sorted by name. Two sets are equal when type and versions are."""

    __slots__ = ("_by_name", "names", "type_url", "version")

    def __init__(self, type_url: str, resources: Iterable[Resource]) -> None:
        by_name = {r.name: r for r in resources}
        self.type_url = type_url
        self.names: tuple[str, ...] = tuple(sorted(by_name))
        self._by_name = {name: by_name[name] for name in self.names}
        digest = hashlib.blake2b(type_url.encode(), digest_size=_HASH_BYTES)
        for resource in self._by_name.values():
            digest.update(f"{resource.name}\0{resource.version}\0".encode())
        self.version = digest.hexdigest()

    def get(self, name: str) -> Resource | None:
        """The resource of that name, if it is in the set."""
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceSet) and self.version == other.version and self.type_url == other.type_url

    def __hash__(self) -> int:
        return hash(self.version)

    def __repr__(self) -> str:
        return f"ResourceSet({self.type_url.rpartition('.')[2]}, {len(self)} resources, version={self.version})"
