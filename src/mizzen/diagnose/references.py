"""Which resources the printed form of others asks for by name.

In: listeners and clusters as protobuf JSON. Out: names: routes over RDS, endpoints over EDS, extensions over ECDS and
secrets over SDS, whatever message they stand in. `mizzen compile` follows them as Envoy would.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mizzen.diagnose.dump import Json


class References(msgspec.Struct, frozen=True, kw_only=True):
    """Names by what is asked for; each sorted."""

    routes: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def find_references(clusters: Iterable[Json], listeners: Iterable[Json]) -> References:
    """All names that the clusters and listeners ask for."""
    known = list(clusters)
    found = _Names()
    for message in (*known, *listeners):
        found.collect(message)
    return References(
        routes=_sorted(found.routes),
        endpoints=_sorted({_eds_name(c) for c in known if c.get("type") == "EDS"}),
        extensions=_sorted(found.extensions),
        secrets=_sorted(found.secrets),
    )


class _Names:
    """One walk over everything: a mesh has a hundred thousand messages, so a message is looked at once."""

    def __init__(self) -> None:
        self.routes: set[str] = set()
        self.extensions: set[str] = set()
        self.secrets: set[str] = set()

    def collect(self, message: Mapping[str, Any]) -> None:
        for field, value in message.items():
            if isinstance(value, dict):
                if field == "rds":
                    self.routes.add(value.get("routeConfigName", ""))
                elif field == "configDiscovery":
                    self.extensions.add(message.get("name", ""))
                elif field == "sdsConfig":
                    self.secrets.add(message.get("name", ""))
                self.collect(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, dict):
                        self.collect(item)


def _eds_name(cluster: Json) -> str:
    config = cluster.get("edsClusterConfig")
    stated = config.get("serviceName") if isinstance(config, Mapping) else None
    return str(stated or cluster.get("name", ""))


def _sorted(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name))
