"""What must be said to get a client from one set of resources to another, worked out once and encoded once.

In: two `ResourceSet`s (what a client holds, what it should hold). Out: a `Difference`, and its bytes as the body of a
DeltaDiscoveryResponse or DiscoveryResponse. Both are kept, bounded, for every other stream that makes the same step;
a stream only appends its nonce (`with_nonce`), which protobuf allows because fields may come in any order.
Who holds what, and when it is told, is `session`'s business.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from mizzen.compile.resource import Resource, ResourceSet
from mizzen.xds.requests import NO_NAMES, Names, Versions

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_VERSION, _RESOURCES, _TYPE_URL, _NONCE, _REMOVED = (number << 3 | 2 for number in (1, 2, 4, 5, 6))
_RESOURCE_VERSION, _RESOURCE_DATA, _RESOURCE_NAME = (number << 3 | 2 for number in (1, 2, 3))


class Difference:
    """The resources to send and the names to take away; what neither names stays as it is."""

    __slots__ = ("_additions", "_upserted", "removed", "type_url", "upserts", "version")

    def __init__(
        self, type_url: str, version: str, upserts: tuple[Resource, ...], removed: tuple[str, ...] = ()
    ) -> None:
        self.type_url = type_url
        self.version = version
        """Version of the set that the client holds afterwards."""
        self.upserts = upserts
        self.removed = removed
        self._upserted: Names | None = None
        self._additions: Difference | None = None

    @property
    def upserted(self) -> Names:
        """The names that it sends."""
        if self._upserted is None:
            self._upserted = frozenset(resource.name for resource in self.upserts)
        return self._upserted

    @property
    def touched(self) -> Names:
        """Every name that it speaks of."""
        return self.upserted.union(self.removed) if self.removed else self.upserted

    @property
    def additions(self) -> "Difference":
        """The same without its removals; one object, so that it is encoded once."""
        if self._additions is None:
            self._additions = Difference(self.type_url, self.version, self.upserts) if self.removed else self
        return self._additions

    @property
    def weight(self) -> int:
        """What it costs to keep, in resources."""
        return len(self.upserts) + len(self.removed) + 1

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

    def get(self, key: K, make: Callable[[], tuple[V, int]]) -> V:
        """The value under `key`; `make` gives it, with its weight, when it is not there."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
            return found[0]
        value, weight = make()
        self._values[key] = (value, weight)
        self._total += weight
        while self._total > self._limit and len(self._values) > 1:
            _, (_, dropped) = self._values.popitem(last=False)
            self._total -= dropped
        return value

    def items(self) -> list[tuple[K, V]]:
        """Everything kept, the least recently used first."""
        return [(key, value) for key, (value, _) in self._values.items()]

    def clear(self) -> None:
        """Drop everything."""
        self._values.clear()
        self._total = 0


Encode = Callable[[Difference], bytes]


class Kept(NamedTuple):
    """What is kept encoded of one type."""

    names: frozenset[str]
    size: int
    """Bytes of the bodies."""


class Responses:
    """Differences, unions and encoded bodies shared by all streams. Memory is bounded by the two limits."""

    def __init__(self, *, max_bytes: int = 64 << 20, max_resources: int = 1 << 20) -> None:
        """`max_bytes` bounds the encoded bodies that are kept, `max_resources` the resources that differences name."""
        self._differences: _Recent[Hashable, Difference] = _Recent(max_resources)
        self._alike: _Recent[Hashable, Difference] = _Recent(max_resources)
        self._unions: _Recent[Hashable, ResourceSet] = _Recent(max_resources)
        self._bodies: _Recent[tuple[Difference, Encode], bytes] = _Recent(max_bytes)
        self.compared = 0
        """Pairs of sets that were compared since the start."""
        self.encoded = 0
        """Bodies that were encoded since the start."""

    def difference(
        self, held: ResourceSet | None, target: ResourceSet, scope: Names | None, extra: Names = NO_NAMES
    ) -> Difference:
        """From `held` (None: nothing) to `target`.

        `scope` limits whose absence is told (None: everybody's). Every name in `extra` is spoken of, changed or not:
        sent again, or taken away where the target lacks it.
        """
        key = (held.version if held is not None else None, target.version, scope, extra)
        return self._differences.get(key, lambda: self._compare(held, target, scope, extra))

    def _compare(
        self, held: ResourceSet | None, target: ResourceSet, scope: Names | None, extra: Names
    ) -> tuple[Difference, int]:
        self.compared += 1
        if held is None:
            upserts = tuple(target)
            removed = _absent(extra, target, scope)
        else:
            changed = {r.name: r for r in target.upserts_since(held)}
            changed.update((r.name, r) for r in target.among(extra))
            upserts = tuple(changed[name] for name in sorted(changed))
            removed = _absent({*target.names_gone_since(held), *extra}, target, scope)
        made = Difference(target.type_url, target.version, upserts, removed)
        return made, made.weight

    def since(self, held: Versions, target: ResourceSet, scope: Names | None, extra: Names = NO_NAMES) -> Difference:
        """As `difference`, from the versions that a reconnecting client says it holds."""
        key = (held.digest, target.version, scope, extra)
        return self._differences.get(key, lambda: self._compare_versions(held.of, target, scope, extra))

    def _compare_versions(
        self, versions: Mapping[str, str], target: ResourceSet, scope: Names | None, extra: Names
    ) -> tuple[Difference, int]:
        self.compared += 1
        upserts = tuple(r for r in target if r.name in extra or versions.get(r.name) != r.version)
        removed = _absent({*versions, *extra}, target, scope)
        # Clients that held different things may still need the same ones, and share the encoded response.
        key = (target.version, tuple(r.name for r in upserts), removed)
        made = Difference(target.type_url, target.version, upserts, removed)
        made = self._alike.get(key, lambda: (made, made.weight))
        return made, made.weight

    def union(self, preferred: ResourceSet, other: ResourceSet) -> ResourceSet:
        """All resources of both sets; of two with one name the first set's."""

        def build() -> tuple[ResourceSet, int]:
            more = [r for r in other if r.name not in preferred]
            union = ResourceSet(preferred.type_url, [*preferred, *more]) if more else preferred
            return union, len(union) + 1

        return self._unions.get((preferred.version, other.version), build)

    def kept(self) -> dict[str, Kept]:
        """The bodies that are kept now, by type."""
        found: dict[str, Kept] = {}
        for (difference, _), body in self._bodies.items():
            before = found.get(difference.type_url, Kept(NO_NAMES, 0))
            found[difference.type_url] = Kept(before.names | difference.upserted, before.size + len(body))
        return dict(sorted(found.items()))

    def clear(self) -> None:
        """Keep nothing; what is needed again is worked out again."""
        for cache in (self._differences, self._alike, self._unions, self._bodies):
            cache.clear()

    def delta_body(self, difference: Difference) -> bytes:
        """The difference as a DeltaDiscoveryResponse without nonce."""
        return self._body(difference, _encode_delta)

    def sotw_body(self, difference: Difference) -> bytes:
        """The difference's resources as a DiscoveryResponse without nonce."""
        return self._body(difference, _encode_sotw)

    def _body(self, difference: Difference, encode: Encode) -> bytes:
        def build() -> tuple[bytes, int]:
            self.encoded += 1
            body = encode(difference)
            return body, len(body)

        return self._bodies.get((difference, encode), build)


def with_nonce(body: bytes, nonce: str) -> bytes:
    """A response's body made complete for one stream."""
    return body + _field(_NONCE, nonce.encode())


def _absent(names: Iterable[str], target: ResourceSet, scope: Names | None) -> tuple[str, ...]:
    absent = target.lacks(names)
    return tuple(sorted(absent if scope is None else absent & scope))


def _encode_delta(difference: Difference) -> bytes:
    parts = [_field(_VERSION, difference.version.encode())]
    for resource in difference.upserts:
        head = _field(_RESOURCE_VERSION, resource.version.encode()) + _head(_RESOURCE_DATA, len(resource.data))
        tail = _field(_RESOURCE_NAME, resource.name.encode())
        parts += (_head(_RESOURCES, len(head) + len(resource.data) + len(tail)), head, resource.data, tail)
    parts.append(_field(_TYPE_URL, difference.type_url.encode()))
    parts.extend(_field(_REMOVED, name.encode()) for name in difference.removed)
    return b"".join(parts)


def _encode_sotw(difference: Difference) -> bytes:
    parts = [_field(_VERSION, difference.version.encode())]
    for resource in difference.upserts:
        parts += (_head(_RESOURCES, len(resource.data)), resource.data)
    parts.append(_field(_TYPE_URL, difference.type_url.encode()))
    return b"".join(parts)


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
