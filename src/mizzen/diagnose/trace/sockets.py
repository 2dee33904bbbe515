"""Which listeners stand at an address and port.

In: listeners by name, as protobuf JSON. Out: their names by socket. Several may share one: that none of them is opened,
or only one, is decided elsewhere.
"""

import abc
from collections.abc import Iterator, Mapping

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json

Socket = tuple[str, int]
"""Address and port."""


class Listening(abc.ABC):
    """Listeners that know it by themselves."""

    @abc.abstractmethod
    def names_at(self, socket: Socket) -> list[str]:
        """The names of those at the socket, in order."""


def names_by_socket(listeners: Mapping[str, Json]) -> dict[Socket, list[str]]:
    """The names at each socket, in their order."""
    found: dict[Socket, list[str]] = {}
    for name, listener in listeners.items():
        for socket in dict.fromkeys(_sockets(listener)):
            found.setdefault(socket, []).append(name)
    return found


def _sockets(listener: Json) -> Iterator[Socket]:
    for holder in (listener, *dump.items(listener, "additional_addresses")):
        socket = dump.message(holder, "address", "socket_address")
        yield dump.text(socket, "address"), dump.number(socket, "port_value")
