"""Encoded xDS resources and immutable sets of them: what `compile` makes and `xds` serves.

In: protobuf messages. Out: `Resource`, whose version is a hash of its deterministic bytes, and `ResourceSet`, sorted by
name and shared by every proxy that is told the same. Nothing here knows what a resource means or who gets it.
"""

import functools
import hashlib
import heapq
import operator
import weakref
from collections.abc import Iterable, Iterator

from google.protobuf.message import Message

from mizzen import protos

CLUSTER = protos.TYPE_PREFIX + "envoy.config.cluster.v3.Cluster"
ENDPOINT = protos.TYPE_PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment"
LISTENER = protos.TYPE_PREFIX + "envoy.config.listener.v3.Listener"
ROUTE = protos.TYPE_PREFIX + "envoy.config.route.v3.RouteConfiguration"
VIRTUAL_HOST = protos.TYPE_PREFIX + "envoy.config.route.v3.VirtualHost"
SECRET = protos.TYPE_PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret"
EXTENSION = protos.TYPE_PREFIX + "envoy.config.core.v3.TypedExtensionConfig"
NAME_TABLE = protos.TYPE_PREFIX + "istio.networking.nds.v1.NameTable"
TRUST_BUNDLE = protos.TYPE_PREFIX + "istio.mesh.v1alpha1.ProxyConfig"

_HASH_BYTES = 8
_MARK_BYTES = 12
_ALL_BITS = (1 << _MARK_BYTES * 8) - 1


class Resource:
    """One named resource, encoded once. Equal when name and version are: the version is a hash of `data`."""

    __slots__ = ("__weakref__", "data", "mark", "name", "version")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        """The resource as an encoded `google.protobuf.Any`."""
        self.version = hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()
        self.mark: int | None = None
        """Its share in the version of a set, once it is in one."""

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
    """An immutable set of resources of one type, sorted by name. Two sets are equal when type and versions are.

    A large set is put together from smaller ones (`join`), which many sets share: what differs between two is found in
    the parts that they do not share. How it was put together is nobody's business but memory's: the version is a sum
    over the resources, the same in whatever parts they come.
    """

    __slots__ = ("__weakref__", "_by_name", "_joined", "_mark", "_size", "_versions", "type_url", "version")

    def __init__(self, type_url: str, resources: Iterable[Resource]) -> None:
        """Of two resources with one name the last stays."""
        by_name = {r.name: r for r in resources}
        self.type_url = type_url
        self._by_name = {name: by_name[name] for name in sorted(by_name)}
        self._complete((), sum(_mark(r) for r in self._by_name.values()))

    @classmethod
    def join(cls, type_url: str, parts: Iterable["ResourceSet"]) -> "ResourceSet":
        """The union of sets that have no name in common."""
        flat = tuple(part for joined in parts for part in joined.parts if part._by_name)
        if len(flat) == 1:
            return flat[0]
        made = cls.__new__(cls)
        made.type_url = type_url
        made._by_name = {}
        made._complete(flat, sum(part._mark for part in flat))
        return made

    def _complete(self, joined: tuple["ResourceSet", ...], mark: int) -> None:
        # Never itself: an outdated set has to go at once, not when somebody looks for cycles.
        self._joined = joined
        self._mark = mark & _ALL_BITS
        self._versions: dict[str, str] | None = None
        self._size: int | None = None
        self.version = f"{self._mark ^ _type_mark(self.type_url):0{_MARK_BYTES * 2}x}"

    @property
    def parts(self) -> tuple["ResourceSet", ...]:
        """Itself, or the sets that it was joined from."""
        return self._joined or (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self.iter_names()))

    def iter_names(self) -> Iterator[str]:
        """All names, in no order."""
        return (name for part in self.parts for name in part._by_name)

    def versions(self) -> dict[str, str]:
        """Name → version, as a client says what it holds; not to be changed."""
        if self._versions is None:
            versions = {name: resource.version for name, resource in self._by_name.items()}
            if self._by_name:
                self._versions = versions
            for part in self._joined:
                versions |= part.versions()
            return versions
        return self._versions

    @property
    def size(self) -> int:
        """Bytes of all resources."""
        if self._size is None:
            self._size = sum(len(r.data) for part in self.parts for r in part._by_name.values())
        return self._size

    def get(self, name: str) -> Resource | None:
        """The resource of that name, if it is in the set."""
        return _find(self.parts, name)

    def among(self, names: frozenset[str]) -> Iterator[Resource]:
        """The resources with these names, in no order."""
        for part in self.parts:
            for name in part._by_name.keys() & names:
                yield part._by_name[name]

    def lacks(self, names: Iterable[str]) -> set[str]:
        """Those of the names that no resource has."""
        left = set(names)
        for part in self.parts if left else ():
            left -= part._by_name.keys() & left
        return left

    def upserts_since(self, held: "ResourceSet") -> Iterator[Resource]:
        """The resources that `held` lacks or has in another version, in no order."""
        now, before = self._unshared(held)
        for part in now:
            for resource in part._by_name.values():
                old = _find(before, resource.name)
                if old is not resource and (old is None or old.version != resource.version):
                    yield resource

    def names_gone_since(self, held: "ResourceSet") -> Iterator[str]:
        """The names that `held` has and this set has not, in no order."""
        now, before = self._unshared(held)
        return (name for part in before for name in part._by_name if _find(now, name) is None)

    def _unshared(self, other: "ResourceSet") -> tuple[list["ResourceSet"], list["ResourceSet"]]:
        """The parts that only one of the two has: what is in both is in no other part of either."""
        mine, others = ({id(part): part for part in each.parts} for each in (self, other))
        return (
            [part for key, part in mine.items() if key not in others],
            [part for key, part in others.items() if key not in mine],
        )

    def __iter__(self) -> Iterator[Resource]:
        """Sorted by name."""
        if self._by_name:
            return iter(self._by_name.values())
        return heapq.merge(*(part._by_name.values() for part in self.parts), key=operator.attrgetter("name"))

    def __len__(self) -> int:
        return sum(len(part._by_name) for part in self.parts)

    def __contains__(self, name: object) -> bool:
        return any(name in part._by_name for part in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceSet) and self.version == other.version and self.type_url == other.type_url

    def __hash__(self) -> int:
        return hash(self.version)

    def __repr__(self) -> str:
        return f"ResourceSet({self.type_url.rpartition('.')[2]}, {len(self)} resources, version={self.version})"


_known: weakref.WeakValueDictionary[tuple[str, str], Resource] = weakref.WeakValueDictionary()
_known_sets: weakref.WeakValueDictionary[tuple[str, str], ResourceSet] = weakref.WeakValueDictionary()


def shared(resource: Resource) -> Resource:
    """The one resource for all that equal it: most of what is made for each namespace is the same for many."""
    return _known.setdefault((resource.name, resource.version), resource)


def shared_set(found: ResourceSet) -> ResourceSet:
    """The one set for all that equal it, of those that are parts of larger ones."""
    return _known_sets.setdefault((found.type_url, found.version), found)


def _find(parts: Iterable[ResourceSet], name: str) -> Resource | None:
    for part in parts:
        found = part._by_name.get(name)
        if found is not None:
            return found
    return None


def _mark(resource: Resource) -> int:
    """What a resource adds to the version of its set."""
    if resource.mark is None:
        resource.mark = _digest(f"{resource.name}\0{resource.version}")
    return resource.mark


@functools.cache
def _type_mark(type_url: str) -> int:
    return _digest(type_url)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_MARK_BYTES).digest())
