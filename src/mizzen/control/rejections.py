"""What connected proxies refuse, as Problems of the objects behind it.

In: connections. Out: a Problem for each object that a refused resource was made of: the objects that its metadata
names, and the EnvoyFilters that patch it. Where nothing leads to an object the Problem names the resource alone.
Proxies are looked at one by one only after one of them has refused something or a refusing one has gone.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.compile import snapshot
from mizzen.compile.resource import CLUSTER, EXTENSION, LISTENER, ROUTE, Resource
from mizzen.diagnose.trace.world import parse_config_path
from mizzen.incremental import Engine, attempt
from mizzen.model import envoy_filters
from mizzen.xds import kinds, metrics
from mizzen.xds.requests import Rejection
from mizzen.xds.status import Connection, Connections, Event
from mizzen.xds.watch import Watch

REJECTED = "rejected"
_PARTS: Mapping[str, tuple[str, ...]] = {
    CLUSTER: ("clusters",),
    LISTENER: ("listeners", "routes"),
    ROUTE: ("routes",),
    EXTENSION: ("extensions",),
}
"""The patches of an EnvoyFilter that reach a type."""


class Rejections:
    """Follows what proxies refuse."""

    def __init__(self, db: Engine, connections: Connections) -> None:
        self._db = db
        self._connections = connections
        self._count = -1.0
        self._refused: dict[tuple[str, str], tuple[Connection, Rejection]] = {}
        """By connection and type."""
        self._problems: tuple[Problem, ...] = ()
        self._departed = False
        connections.listen(self._hear)

    def _hear(self, event: Event, _: Connection) -> None:
        self._departed = self._departed or event is Event.DISCONNECTED

    def find_problems(self) -> tuple[Problem, ...]:
        """What is refused now, each fault of an object once however many proxies refuse it."""
        count = metrics.count_rejections()
        mended = any(not _holds(url, *refused) for (_, url), refused in self._refused.items())
        if count != self._count or mended or (self._departed and self._refused):
            self._count, self._departed = count, False
            self._refused = dict(self._scan())
            told = (_problems(self._db, each[0], url, each[1]) for (_, url), each in self._refused.items())
            self._problems = tuple(dict.fromkeys(problem for problems in told for problem in problems))
        return self._problems

    def _scan(self) -> Iterator[tuple[tuple[str, str], tuple[Connection, Rejection]]]:
        for connection in self._connections:
            for type_url, watch in connection.session.watches.items():
                if watch.rejection is not None:
                    yield (connection.id, type_url), (connection, watch.rejection)


def _holds(type_url: str, connection: Connection, rejection: Rejection) -> bool:
    watch = connection.session.watches.get(type_url)
    return watch is not None and watch.rejection is rejection


def _problems(db: Engine, connection: Connection, type_url: str, rejection: Rejection) -> Iterator[Problem]:
    watch = connection.session.watches[type_url]
    word = kinds.short_name(type_url).upper()
    patching = _patching(db, connection, type_url)
    for name in watch.culprits or ("",):
        resource = watch.sent.get(name) if watch.sent is not None else None
        objects = dict.fromkeys(objects_behind(resource) if resource is not None else ())
        if patching and (resource is None or _is_patched(db, connection, watch, resource)):
            objects |= dict.fromkeys(patching)
        what = f"{word} {name}" if name else f"a response of {word}"
        why = "refused by Envoy" if len(objects) <= 1 else "may be why Envoy refuses"
        text = f"{what} is {why}: {rejection}" if len(objects) <= 1 else f"{why} {what}: {rejection}"
        for key in objects or (None,):
            yield Problem(key=key, code=REJECTED, message=text)


def _patching(db: Engine, connection: Connection, type_url: str) -> tuple[Key, ...]:
    """The EnvoyFilters whose patches reach resources of the type at this proxy."""
    chosen = envoy_filters.select(db, connection.proxy)
    return tuple(dict.fromkeys(patch.key for part in _PARTS.get(type_url, ()) for patch in getattr(chosen, part)))


def _is_patched(db: Engine, connection: Connection, watch: Watch, sent: Resource) -> bool:
    names = None if watch.wildcard else watch.names
    before = attempt(snapshot.pristine, db, connection.proxy, watch.type_url, names)
    return before is None or before.get(sent.name) != sent


def objects_behind(resource: Resource) -> tuple[Key, ...]:
    """The objects that a resource's metadata names, wherever in it they stand."""
    return tuple(dict.fromkeys(_named_in(resource.message())))


def _named_in(message: Any) -> Iterator[Key]:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.full_name == "envoy.config.core.v3.Metadata":
            yield from _named(value)
        elif field.message_type.GetOptions().map_entry or field.message_type.full_name == "google.protobuf.Any":
            continue
        else:
            for each in value if field.is_repeated else (value,):
                yield from _named_in(each)


def _named(metadata: Any) -> Iterator[Key]:
    if "istio" not in metadata.filter_metadata:
        return
    key = parse_config_path(metadata.filter_metadata["istio"].fields["config"].string_value)
    if key is not None:
        yield key
