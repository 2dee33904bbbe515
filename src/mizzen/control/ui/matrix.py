"""Proxies × types: who has what it was sent, and who refused it.

In: the connections of `xds`. Out: totals by type and state over all proxies, and the rows of one window, with the
proxy's own words where it refused something. Rows that need attention come first when they are asked for by state.
A thousand proxies cost some milliseconds of a thread; what they hold is never looked at.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from mizzen.control.debug.console import Page, PageError, Query, Write
from mizzen.control.ui.paging import Window, read_window
from mizzen.xds import kinds
from mizzen.xds.status import Connection, Connections, proxy_id
from mizzen.xds.watch import State, Watch

_ERROR_SHOWN = 4000
"""Characters of a proxy's words."""
_WANTED = {
    "": frozenset(State),
    "troubled": frozenset((State.STALE, State.ERROR)),
    "stale": frozenset((State.STALE,)),
    "refused": frozenset((State.ERROR,)),
    "unsent": frozenset((State.NOT_SENT,)),
}
"""Which proxies are shown, by a word of the question: those with a type in one of these states."""


def page(connections: Connections) -> Page:
    """The page of data."""

    def read(query: Query) -> Write:
        window = read_window(query)
        wanted = _WANTED.get(query["state"])
        if wanted is None:
            raise PageError(400, f"state is one of {', '.join(filter(None, _WANTED))}")
        shown = list(connections)
        return lambda: build_matrix(shown, window, wanted)

    return Page("Proxies × types, in windows.", read)


def build_matrix(
    connections: Iterable[Connection], window: Window, wanted: frozenset[State] = frozenset(State)
) -> dict[str, Any]:
    """Totals and one window. A proxy that watches nothing is shown only where all are."""
    totals: dict[str, Counter[State]] = {}
    kept: list[Connection] = []
    count = 0
    everyone = wanted == frozenset(State)
    for connection in connections:
        count += 1
        states = {url: watch.state for url, watch in _watches(connection)}
        for url, state in states.items():
            totals.setdefault(url, Counter())[state] += 1
        if (everyone or not wanted.isdisjoint(states.values())) and window.keeps(*_texts(connection)):
            kept.append(connection)
    urls = kinds.in_order(totals)
    return {
        **window.frame(len(kept)),
        "proxies": count,
        "types": [{"name": _word(url), "states": _counts(totals[url])} for url in urls],
        "rows": [_row(connection, urls) for connection in window.cut(kept)],
    }


def _watches(connection: Connection) -> Iterator[tuple[str, Watch]]:
    """A copy: the stream may begin to watch another type meanwhile."""
    return iter(list(connection.session.watches.items()))


def _texts(connection: Connection) -> tuple[str, ...]:
    proxy = connection.proxy
    return connection.id, proxy.cluster_id, proxy.kind, connection.version, connection.address


def _word(type_url: str) -> str:
    return kinds.short_name(type_url).upper()


def _counts(states: Counter[State]) -> dict[str, int]:
    return {state.name: states[state] for state in State if states[state]}


def _row(connection: Connection, urls: list[str]) -> dict[str, Any]:
    proxy, watches = connection.proxy, dict(_watches(connection))
    return {
        "id": connection.id,
        "proxy": proxy_id(proxy),
        "kind": proxy.kind,
        "cluster": proxy.cluster_id,
        "version": connection.version,
        "dialect": proxy.dialect,
        "since": connection.connected_at,
        "cells": [_cell(watches.get(url)) for url in urls],
    }


def _cell(watch: Watch | None) -> dict[str, Any] | None:
    """One type of one proxy; None where the proxy does not watch it."""
    if watch is None:
        return None
    cell: dict[str, Any] = {"state": watch.state.name, "sent": watch.sent_at}
    if watch.sent is not None:
        cell |= {"resources": len(watch.sent), "version": watch.sent.version}
    if (rejection := watch.rejection) is not None:
        cell |= {"error": str(rejection)[:_ERROR_SHOWN], "culprits": list(watch.culprits)}
    return cell
