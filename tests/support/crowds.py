"""Many proxies at a control plane, without as many streams."""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from adsclient import node
from control_planes import Plane

from mizzen.compile.resource import CLUSTER, ENDPOINT, EXTENSION, LISTENER, ROUTE, SECRET, ResourceSet
from mizzen.model.proxy import parse_node
from mizzen.xds.status import Connection
from mizzen.xds.watch import Watch

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, EXTENSION)


def member(number: int, *, name: str = "", **rejections: Any) -> Connection:
    """A proxy that has accepted six types, but for those that `rejections` names by type."""
    name = name or f"crowd-{number:04}"
    who = parse_node(node(name, "crowd", ip=f"10.8.{number // 250}.{number % 250 + 1}"))
    watches = {type_url: _accepted(type_url) for type_url in TYPES}
    for type_url, rejection in rejections.items():
        watches[type_url].rejection = rejection
    session: Any = SimpleNamespace(watches=watches)
    stream: Any = SimpleNamespace(close=lambda: None)
    return Connection(
        id=f"{name}.crowd-{number}",
        proxy=who,
        address="10.8.0.1:5000",
        connected_at=1_700_000_000.0,
        delta=True,
        identity=None,
        version="1.32.0",
        session=session,
        stream=stream,
    )


def _accepted(type_url: str) -> Watch:
    watch = Watch(type_url, wildcard=True, names=frozenset())
    watch.sent = watch.accepted = ResourceSet(type_url, ())
    watch.nonce = watch.acked_nonce = "1"
    watch.sent_at = 1_700_000_000.0
    return watch


@contextlib.contextmanager
def crowd(plane: Plane, *members: Connection) -> Iterator[None]:
    """These proxies are connected, too, as far as anybody can see."""
    connections = plane.control_plane.discovery.connections
    for each in members:
        connections.add(each)
    try:
        yield
    finally:
        for each in members:
            connections.remove(each)
