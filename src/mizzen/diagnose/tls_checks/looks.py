"""What a walk looked at of all that a proxy holds, and whether it would have seen the same at another proxy.

In: a proxy's `Holdings`. Out: `Looks`: the same holdings, which note what is looked up in them, found or not. What
namespaces are told is much the same, and a connection meets one listener, virtual host and cluster of hundreds.
"""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import sockets, virtual_hosts
from mizzen.diagnose.trace.sockets import Socket
from mizzen.diagnose.trace.world import Holdings, World

_KINDS = ("clusters", "listeners", "endpoints", "secrets", "extensions")
_HOSTS, _DOMAINS = "virtualHosts", "domains"


class _Noted(Mapping[str, Json]):
    """Resources of a kind, and those of them that were looked up."""

    def __init__(self, resources: Mapping[str, Json]) -> None:
        self._resources = resources
        self.seen: dict[str, Json | None] = {}
        self.is_listed = False

    def __getitem__(self, name: str) -> Json:
        found = self.seen[name] = self._resources.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        self.is_listed = True
        return iter(self._resources)

    def __len__(self) -> int:
        self.is_listed = True
        return len(self._resources)


class _NotedListeners(_Noted, sockets.Listening):
    """Listeners, and the sockets at which they were looked for."""

    def __init__(self, held: Holdings) -> None:
        super().__init__(held.listeners)
        self._held = held
        self.sockets: dict[Socket, list[str]] = {}

    def names_at(self, socket: Socket) -> list[str]:
        """By name."""
        found = self.sockets[socket] = self._held.listeners_at(socket)
        return found


class Looks:
    """One walk's."""

    def __init__(self, held: Holdings) -> None:
        self._listeners = _NotedListeners(held)
        self._routes = _Noted(held.routes)
        others = {kind: _Noted(getattr(held, kind)) for kind in _KINDS if kind != "listeners"}
        self._noted: dict[str, _Noted] = {"listeners": self._listeners, **others}
        self.held = msgspec.structs.replace(held, **self._noted, routes=self._routes)

    def same_at(self, world: World, other: Holdings, authorities: Collection[str]) -> bool:
        """Whether the same was to be seen at the other proxy; of route configurations by a request to these names."""
        if any(each.is_listed for each in (*self._noted.values(), self._routes)):
            return False
        return (
            all(other.listeners_at(socket) == names for socket, names in self._listeners.sockets.items())
            and all(
                _equal(found, getattr(other, kind).get(name))
                for kind, noted in self._noted.items()
                for name, found in noted.seen.items()
            )
            and all(
                _route_alike(world, found, other.routes.get(name), authorities)
                for name, found in self._routes.seen.items()
            )
        )


def _equal(mine: Json | None, other: Json | None) -> bool:
    return mine is other or mine == other


def _route_alike(world: World, mine: Json | None, other: Json | None, authorities: Collection[str]) -> bool:
    """Whether two route configurations have the same virtual host for these names, and say the same beside them."""
    if mine is other or mine is None or other is None:
        return mine is other
    return _without(mine, _HOSTS) == _without(other, _HOSTS) and all(
        _host(world, mine, name) == _host(world, other, name) for name in authorities
    )


def _host(world: World, configuration: Json, authority: str) -> Json | None:
    """The virtual host, without domains other than that for which it was chosen."""
    domains = world.read_from(configuration, virtual_hosts.by_domain)
    chosen = virtual_hosts.choose(configuration, domains, authority)
    return None if chosen is None else {**chosen.host, _DOMAINS: [chosen.domain]}


def _without(message: Json, field: str) -> dict[str, object]:
    return {name: value for name, value in message.items() if name != field}
