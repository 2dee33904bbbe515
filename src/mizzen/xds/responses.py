"""What must be said to get a client from one set of resources to another, worked out once and encoded once.

In: two `ResourceSet`s (what a client holds, what it should hold). Out: a `Difference`, and its bytes as a
DeltaDiscoveryResponse or DiscoveryResponse. Differences are kept, bounded, for every other stream that makes the same
step. So are the encoded resources, in the parts that sets share: a message is what is kept of its parts, one after the
other, and a nonce. Who holds what, and when it is told, is `session`'s business.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from typing import Generic, NamedTuple, TypeVar

from mizzen.compile.resource import Resource, ResourceSet
from mizzen.xds.requests import NO_NAMES, Names, Versions

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_VERSION, _RESOURCES, _TYPE_URL, _NONCE, _REMOVED = (number << 3 | 2 for number in (1, 2, 4, 5, 6))
_RESOURCE_VERSION, _RESOURCE_DATA, _RESOURCE_NAME = (number << 3 | 2 for number in (1, 2, 3))
_LARGE = 4096
"""Bytes of a resource on average, from which on to keep another copy costs more than it saves."""

_RESOURCE_BYTES, _NAME_BYTES = 300, 100
"""About what an object weighs besides its data: a resource with its name and place, a name in a set and encoded."""


class Difference:
    """The resources to send and the names to take away; what neither names stays as it is."""

    __slots__ = ("_additions", "_told", "removed", "upserts", "version")

    def __init__(self, version: str, upserts: ResourceSet, removed: tuple[str, ...] = ()) -> None:
        self.version = version
        """Version of the set that the client holds afterwards."""
        self.upserts = upserts
        self.removed = removed
        self._additions: Difference | None = None
        self._told: bytes | None = None

    @property
    def type_url(self) -> str:
        """The type of all of it."""
        return self.upserts.type_url

    @property
    def touched(self) -> Names:
        """Every name that it speaks of."""
        return frozenset((*self.upserts.iter_names(), *self.removed))

    @property
    def additions(self) -> "Difference":
        """The same without its removals."""
        if self._additions is None:
            self._additions = Difference(self.version, self.upserts) if self.removed else self
        return self._additions

    def without(self, names: Names) -> "Difference":
        """The same without the removals of these names."""
        left = tuple(name for name in self.removed if name not in names)
        return Difference(self.version, self.upserts, left) if left else self.additions

    @property
    def told(self) -> bytes:
        """Its removals as the fields of a DeltaDiscoveryResponse."""
        if self._told is None:
            self._told = b"".join(_field(_REMOVED, name.encode()) for name in self.removed)
        return self._told

    def __bool__(self) -> bool:
        return bool(self.upserts or self.removed)

    def __repr__(self) -> str:
        return f"Difference(+{len(self.upserts)} -{len(self.removed)}, version={self.version})"


class _Recent(Generic[K, V]):
    """Values by key, the least recently used dropped when all together weigh too much."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.hits = self.misses = self.evictions = 0
        """Since the start."""

    def get(self, key: K, make: Callable[[], tuple[V, int]]) -> V:
        """The value under `key`; `make` gives it, with its weight, when it is not there."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
            self.hits += 1
            return found[0]
        self.misses += 1
        value, weight = make()
        self._values[key] = (value, weight)
        self._total += weight
        while self._total > self._limit and len(self._values) > 1:
            _, (_, dropped) = self._values.popitem(last=False)
            self._total -= dropped
            self.evictions += 1
        return value

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> list[tuple[K, V]]:
        """Everything kept, the least recently used first."""
        return [(key, value) for key, (value, _) in self._values.items()]

    def clear(self) -> None:
        """Drop everything."""
        self._values.clear()
        self._total = 0


Encode = Callable[[Resource], tuple[bytes, ...]]


class Kept(NamedTuple):
    """What is kept encoded of one type."""

    names: frozenset[str]
    size: int
    """Bytes of the bodies."""


class Use(NamedTuple):
    """How the bodies that are kept are used."""

    size: int
    hits: int
    misses: int
    evictions: int


class Responses:
    """Differences, unions and encoded resources shared by all streams, and bounded in memory."""

    def __init__(self, *, max_bytes: int = 64 << 20) -> None:
        """`max_bytes` bounds each of the three with all that nobody else may hold any more: outdated resources too."""
        self._differences: _Recent[Hashable, Difference] = _Recent(max_bytes)
        self._unions: _Recent[Hashable, ResourceSet] = _Recent(max_bytes)
        self._bodies: _Recent[tuple[ResourceSet, Encode], bytes] = _Recent(max_bytes)
        self.compared = 0
        """Pairs of sets that were compared since the start."""
        self.encoded = 0
        """Parts of sets that were encoded since the start."""

    def difference(
        self, held: ResourceSet | None, target: ResourceSet, scope: Names | None, extra: Names = NO_NAMES
    ) -> Difference:
        """From `held` (None: nothing) to `target`.

        `scope` limits whose absence is told (None: everybody's). Every name in `extra` is spoken of, changed or not:
        sent again, or taken away where the target lacks it.
        """
        if held is None:
            # Nothing to compare, and not kept: it would keep the whole target.
            return _difference(target, target, _in_scope(target.lacks(extra), scope))
        key = (held.version, target.version, scope, extra)
        return self._differences.get(key, lambda: _weigh(self._compare(held, target, scope, extra), scope, extra))

    def _compare(self, held: ResourceSet, target: ResourceSet, scope: Names | None, extra: Names) -> Difference:
        self.compared += 1
        changed = ResourceSet(target.type_url, (*target.upserts_since(held), *target.among(extra)))
        return _difference(target, changed, _in_scope(target.lacks((*target.names_gone_since(held), *extra)), scope))

    def since(self, held: Versions, target: ResourceSet, scope: Names | None, extra: Names = NO_NAMES) -> Difference:
        """As `difference`, from the versions that a reconnecting client says it holds."""
        key = (held.digest, target.version, scope, extra)
        return self._differences.get(
            key, lambda: _weigh(self._compare_versions(held.of, target, scope, extra), scope, extra)
        )

    def _compare_versions(
        self, held: Mapping[str, str], target: ResourceSet, scope: Names | None, extra: Names
    ) -> Difference:
        self.compared += 1
        current = target.versions()
        # A crowd that comes back mostly holds all of it, which the first comparison tells at once.
        changed = {name for name, _ in current.items() - held.items()} if current != held else set()
        wanted = frozenset(changed | (extra & current.keys()))
        upserts = target
        if len(wanted) != len(current):
            upserts = ResourceSet(target.type_url, target.among(wanted))
        return _difference(target, upserts, _in_scope((held.keys() | extra) - current.keys(), scope))

    def union(self, preferred: ResourceSet, other: ResourceSet) -> ResourceSet:
        """All resources of both sets; of two with one name the first set's."""

        def build() -> tuple[ResourceSet, int]:
            more = [r for r in other if r.name not in preferred]
            union = ResourceSet(preferred.type_url, [*preferred, *more]) if more else preferred
            return union, _size(union)

        return self._unions.get((preferred.version, other.version), build)

    def kept(self) -> dict[str, Kept]:
        """The bodies that are kept now, by type."""
        found: dict[str, Kept] = {}
        for (part, _), body in self._bodies.items():
            before = found.get(part.type_url, Kept(NO_NAMES, 0))
            found[part.type_url] = Kept(before.names.union(part.iter_names()), before.size + len(body))
        return dict(sorted(found.items()))

    @property
    def use(self) -> Use:
        """Bodies kept now; reads and evictions since the start."""
        bodies = self._bodies
        return Use(len(bodies), bodies.hits, bodies.misses, bodies.evictions)

    def clear(self) -> None:
        """Keep nothing; what is needed again is worked out again."""
        for cache in (self._differences, self._unions, self._bodies):
            cache.clear()

    def delta(self, difference: Difference, nonce: str) -> bytes:
        """The difference as a DeltaDiscoveryResponse; an empty nonce takes no bytes."""
        return b"".join((*self._message(difference, nonce, _encode_versioned), difference.told))

    def sotw(self, difference: Difference, nonce: str) -> bytes:
        """The difference's resources as a DiscoveryResponse."""
        return b"".join(self._message(difference, nonce, _encode_plain))

    def _message(self, difference: Difference, nonce: str, encode: Encode) -> Iterator[bytes]:
        """What both variants have in common: protobuf allows the fields in any order."""
        yield _field(_VERSION, difference.version.encode())
        yield _field(_TYPE_URL, difference.type_url.encode())
        for part in difference.upserts.parts:
            yield from self._pieces(part, encode)
        if nonce:
            yield _field(_NONCE, nonce.encode())

    def _pieces(self, part: ResourceSet, encode: Encode) -> Iterable[bytes]:
        """The part's bytes: kept in one piece where there are many small ones, else as they are."""
        if part.size > _LARGE * len(part):
            return (piece for resource in part for piece in encode(resource))

        def build() -> tuple[bytes, int]:
            self.encoded += 1
            body = b"".join(piece for resource in part for piece in encode(resource))
            # The key keeps the part, which may be outdated.
            return body, 2 * len(body)

        return (self._bodies.get((part, encode), build),)


def _difference(target: ResourceSet, upserts: ResourceSet, removed: Iterable[str]) -> Difference:
    return Difference(target.version, upserts, tuple(sorted(removed)))


def _weigh(difference: Difference, scope: Names | None, extra: Names) -> tuple[Difference, int]:
    """The difference and the bytes of all that it keeps, with the names that it is kept by."""
    names = len(difference.removed) + len(extra) + (len(scope) if scope is not None else 0)
    return difference, _size(difference.upserts) + _NAME_BYTES * names


def _size(resources: ResourceSet) -> int:
    return _RESOURCE_BYTES + sum(len(each.data) + _RESOURCE_BYTES for part in resources.parts for each in part)


def _in_scope(names: Set[str], scope: Names | None) -> Set[str]:
    return names if scope is None else names & scope


def _encode_versioned(resource: Resource) -> tuple[bytes, ...]:
    """One entry of a DeltaDiscoveryResponse's resources."""
    head = _field(_RESOURCE_VERSION, resource.version.encode()) + _head(_RESOURCE_DATA, len(resource.data))
    tail = _field(_RESOURCE_NAME, resource.name.encode())
    return _head(_RESOURCES, len(head) + len(resource.data) + len(tail)), head, resource.data, tail


def _encode_plain(resource: Resource) -> tuple[bytes, ...]:
    """One entry of a DiscoveryResponse's resources."""
    return _head(_RESOURCES, len(resource.data)), resource.data


def _field(tag: int, payload: bytes) -> bytes:
    return _head(tag, len(payload)) + payload


def _head(tag: int, length: int) -> bytes:
    """Tag and length of a length-delimited field."""
    if length < 1 << 7:
        return bytes((tag, length))
    if length < 1 << 14:
        return bytes((tag, length & 127 | 128, length >> 7))
    head = bytearray((tag,))
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head)
