"""Which resources the printed form of others asks for by name.

In: listeners and clusters as protobuf JSON. Out: names: routes over RDS, endpoints over EDS, extensions over ECDS and
secrets over SDS, whatever message they stand in. `mizzen compile` follows them as Envoy would.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mizzen.diagnose.dump import Json

_SECRET_FIELDS = (
    "tlsCertificateSdsSecretConfigs",
    "validationContextSdsSecretConfig",
    "sdsSecretConfig",
    "sdsConfig",
)


class References(msgspec.Struct, frozen=True, kw_only=True):
    """Names by what is asked for; each sorted."""

    routes: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def find_references(clusters: Iterable[Json], listeners: Iterable[Json]) -> References:
    """All names that the clusters and listeners ask for."""
    routes: set[str] = set()
    extensions: set[str] = set()
    secrets: set[str] = set()
    known = list(clusters)
    for message in _messages((*known, *listeners)):
        if isinstance(rds := message.get("rds"), Mapping):
            routes.add(str(rds.get("routeConfigName", "")))
        if "configDiscovery" in message:
            extensions.add(str(message.get("name", "")))
        for field in _SECRET_FIELDS:
            secrets.update(_secret_names(message.get(field)))
    return References(
        routes=_sorted(routes),
        endpoints=_sorted({_eds_name(c) for c in known if c.get("type") == "EDS"}),
        extensions=_sorted(extensions),
        secrets=_sorted(secrets),
    )


def _messages(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object inside the value, itself included."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            yield item
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)


def _eds_name(cluster: Json) -> str:
    config = cluster.get("edsClusterConfig")
    stated = config.get("serviceName") if isinstance(config, Mapping) else None
    return str(stated or cluster.get("name", ""))


def _secret_names(value: Any) -> Iterator[str]:
    """The names of SdsSecretConfigs; other fields of these names hold other things."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping) and isinstance(item.get("name"), str):
            yield item["name"]


def _sorted(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name))
