"""What the control plane would send a proxy against what the proxy has: `proxy-status POD`.

In: two dumps, the control plane's and Envoy's. Out: one `Comparison` each for clusters, listeners and routes, with a
unified difference where they differ. Both sides are brought to one spelling and order first; versions and times are
left out. Endpoints and secrets are not compared: they change without anybody's mistake.
"""

import datetime
import difflib
import json
from typing import Any

import msgspec

from mizzen.diagnose import dump, spelling
from mizzen.diagnose.dump import Dump, Json

_CONTEXT_LINES = 7


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of resource on both sides."""

    kind: str
    """`Clusters`, `Listeners` or `Routes`."""
    difference: str
    """Unified difference, empty when both sides agree."""
    loaded: datetime.datetime | None = None
    """When Envoy loaded its routes; None for the other kinds."""


def compare(sent: Dump, actual: Dump) -> tuple[Comparison, ...]:
    """Clusters, listeners and routes of both sides."""
    return (
        Comparison(kind="Clusters", difference=_difference("Clusters", _clusters(sent), _clusters(actual))),
        Comparison(kind="Listeners", difference=_difference("Listeners", _listeners(sent), _listeners(actual))),
        Comparison(
            kind="Routes", difference=_difference("Routes", _routes(sent), _routes(actual)), loaded=_loaded(actual)
        ),
    )


def _difference(kind: str, sent: list[Any], actual: list[Any]) -> str:
    lines = difflib.unified_diff(
        _lines(sent), _lines(actual), f"Istiod {kind}", f"Envoy {kind}", n=_CONTEXT_LINES, lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)


def _lines(value: list[Any]) -> list[str]:
    return json.dumps(value, indent=3, sort_keys=True, ensure_ascii=False).splitlines()


def _clusters(source: Dump) -> list[Any]:
    entries = dump.items(source.section("Clusters"), "dynamic_active_clusters")
    return _normalized(dump.message(entry, "cluster") for entry in entries)


def _listeners(source: Dump) -> list[Any]:
    entries = dump.items(source.section("Listeners"), "dynamic_listeners")
    return _normalized(dump.message(entry, "active_state", "listener") for entry in entries)


def _routes(source: Dump) -> list[Any]:
    entries = dump.items(source.section("Routes"), "dynamic_route_configs")
    routes = _normalized(dump.message(entry, "route_config") for entry in entries)
    for route in routes:
        route.get("virtualHosts", []).sort(key=lambda host: host.get("name", ""))
    return routes


def _normalized(messages: Any) -> list[Any]:
    """Messages that are there, by name, in one spelling and with one form for whole numbers."""
    found = [_whole_numbers(spelling.respell(message)) for message in messages if message]
    return sorted(found, key=lambda message: str(message.get("name", "")))


def _whole_numbers(value: Any) -> Any:
    """1.0 as 1: writers of protobuf JSON differ there."""
    if isinstance(value, dict):
        return {name: _whole_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _loaded(actual: Dump) -> datetime.datetime | None:
    times = [_time(entry) for entry in dump.items(actual.section("Routes"), "dynamic_route_configs")]
    return max((when for when in times if when), default=None)


def _time(entry: Json) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(dump.text(entry, "last_updated"))
    except ValueError:
        return None
