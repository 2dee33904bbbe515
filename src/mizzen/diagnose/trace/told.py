"""What one proxy would be told, worked out as far as somebody looks at it.

In: an engine, and what to ask it. Out: mappings for `Holdings`. A walk looks at few resources of a proxy, and the
proxies of a mesh are told much that is the same: a kind is compiled when something of it is first looked at, one that
Envoy asks for by name is asked for name by name, and a resource is printed once for all that are told it. Inputs must
not change between the first look and the last.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

from mizzen.compile.resource import Resource, ResourceSet
from mizzen.diagnose import snapshot
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import sockets
from mizzen.diagnose.trace.sockets import Socket

Names = frozenset[str]


class Printer:
    """What was printed already, for all proxies of a mesh."""

    def __init__(self) -> None:
        self._printed: dict[Resource, Json] = {}
        self._by_socket: dict[ResourceSet, Mapping[Socket, list[str]]] = {}

    def print(self, resource: Resource) -> Json:
        """The resource as protobuf JSON, which nobody may change."""
        found = self._printed.get(resource)
        if found is None:
            found = self._printed[resource] = snapshot.print_resource(resource)
        return found

    def by_socket(self, listeners: ResourceSet) -> Mapping[Socket, list[str]]:
        """The names of the listeners of each address and port."""
        found = self._by_socket.get(listeners)
        if found is None:
            found = self._by_socket[listeners] = sockets.names_by_socket({r.name: self.print(r) for r in listeners})
        return found


class Told(Mapping[str, Json]):
    """All resources of a kind."""

    def __init__(self, compile_kind: Callable[[], ResourceSet], printer: Printer) -> None:
        self._compile = compile_kind
        self._printer = printer

    @functools.cached_property
    def _found(self) -> ResourceSet:
        return self._compile()

    def __getitem__(self, name: str) -> Json:
        found = self._found.get(name)
        if found is None:
            raise KeyError(name)
        return self._printer.print(found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found.names)

    def __len__(self) -> int:
        return len(self._found)


class ToldListeners(Told, sockets.Listening):
    """All listeners; most are parts that many proxies share, of which it is known which address each listens at."""

    def names_at(self, socket: Socket) -> list[str]:
        """By name."""
        return sorted(name for part in self._found.parts for name in self._printer.by_socket(part).get(socket, ()))


class Asked(Mapping[str, Json]):
    """The resources of a kind that others name; each may be looked up by whoever holds something that names it."""

    def __init__(
        self, compile_names: Callable[[Names], ResourceSet], names: Callable[[], Iterable[str]], printer: Printer
    ) -> None:
        self._compile = compile_names
        self._names = names
        self._printer = printer
        self._found: dict[str, Resource | None] = {}

    @functools.cached_property
    def _all(self) -> ResourceSet:
        return self._compile(frozenset(self._names()))

    def __getitem__(self, name: str) -> Json:
        if name not in self._found:
            self._found[name] = self._compile(frozenset({name})).get(name)
        found = self._found[name]
        if found is None:
            raise KeyError(name)
        return self._printer.print(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all.names)

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __len__(self) -> int:
        return len(self._all)
