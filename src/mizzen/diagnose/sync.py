"""Has every proxy what it was sent: the rows of `proxy-status`.

In: a control plane's `/debug/syncz`, or the `ClientConfig`s that it tells over ADS, and the time. Out: `ProxyStatus`
values, the three tables that istioctl has printed over the years (classic, condensed, all types), and its JSON form. A
state is the plain comparison of nonces that istiod makes; no age is held against a proxy.
"""

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from mizzen.diagnose.table import Table
from mizzen.errors import DecodeError

State = Literal["SYNCED", "NOT_SENT", "STALE", "ERROR"]

_CORE = {
    "CDS": ("type.googleapis.com/envoy.config.cluster.v3.Cluster", "cluster"),
    "LDS": ("type.googleapis.com/envoy.config.listener.v3.Listener", "listener"),
    "EDS": ("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "endpoint"),
    "RDS": ("type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "route"),
    "ECDS": ("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "extensionconfig"),
}
"""The five types of the classic table in its order, each with its prefix in the flat fields of syncz."""

_SHORT_NAMES = {
    **{url: short for short, (url, _) in _CORE.items()},
    "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret": "SDS",
    "type.googleapis.com/istio.networking.nds.v1.NameTable": "NDS",
    "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig": "PCDS",
    "type.googleapis.com/istio.workload.Workload": "WDS",
    "type.googleapis.com/istio.security.Authorization": "WADS",
}
_SUBSCRIBED_ORDER = ("CDS", "LDS", "EDS", "RDS")
_EPOCH = "0001-01-01T00:00:00Z"
_SECOND, _MINUTE, _HOUR, _DAY, _YEAR = 1, 60, 3600, 86400, 365 * 86400


class TypeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One resource type that one proxy watches."""

    type_url: str
    state: State
    acknowledged: bool = True
    """Whether the proxy has accepted anything of this type on its present connection."""
    sent: datetime.datetime | None = None
    """When the type was last sent."""
    error: str = ""
    """The proxy's own words when it refused the last push."""

    def text(self, now: datetime.datetime) -> str:
        """The cell of the table of all types: the state, and how long ago the type was sent."""
        word = self.state.replace("_", " ")
        if self.sent is None or self.state == "NOT_SENT":
            return word
        return f"{word} ({format_age((now - self.sent).total_seconds())})"

    def classic_text(self) -> str:
        """The cell of the classic table."""
        if self.state == "STALE" and not self.acknowledged:
            return "STALE (Never Acknowledged)"
        return self.state.replace("_", " ")


class ProxyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One connected proxy."""

    name: str
    """`POD.NAMESPACE`."""
    cluster: str
    control_plane: str
    version: str
    types: tuple[TypeStatus, ...]
    """Only watched types, sorted by type URL."""

    @property
    def namespace(self) -> str:
        """The proxy's namespace."""
        return self.name.rpartition(".")[2]

    def of(self, type_url: str) -> TypeStatus | None:
        """The state of that type; None when the proxy does not watch it."""
        return next((status for status in self.types if status.type_url == type_url), None)


def read_syncz(payload: Any, control_plane: str) -> list[ProxyStatus]:
    """The proxies of one control plane's `/debug/syncz`."""
    if not isinstance(payload, list):
        raise DecodeError("syncz: not a list of proxies")
    return [_proxy(entry, control_plane) for entry in payload if isinstance(entry, Mapping)]


def read_client_configs(configs: Iterable[Mapping[str, Any]], control_plane: str) -> list[ProxyStatus]:
    """The same from the `ClientConfig` messages (protobuf JSON) that a control plane tells over ADS."""
    return [_configured(config, control_plane) for config in configs]


def control_plane_name(identifier: str) -> str:
    """Who answered, by the identifier of an answer: `MISSING` where it has none, `INVALID` where that is no JSON."""
    if not identifier:
        return "MISSING"
    try:
        told = json.loads(identifier)
    except ValueError:
        return "INVALID"
    return _text(told, "ID") if isinstance(told, dict) else "INVALID"


def metadata_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a `ClientConfig` says of the proxy's node."""
    metadata = config.get("node", {}).get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def in_namespace(proxies: Iterable[ProxyStatus], namespace: str) -> list[ProxyStatus]:
    """The proxies of that namespace; all of them when it is empty."""
    return [proxy for proxy in proxies if not namespace or proxy.namespace == namespace]


def build_classic_table(proxies: Iterable[ProxyStatus]) -> Table:
    """The wide table with a column for each core type; a type that is not watched counts as not sent."""
    rows = []
    for proxy in sorted(proxies, key=lambda p: (p.cluster, p.name)):
        states = (proxy.of(url) for url, _ in _CORE.values())
        cells = (status.classic_text() if status else "NOT SENT" for status in states)
        rows.append((proxy.name, proxy.cluster, *cells, proxy.control_plane, proxy.version))
    return Table(columns=("NAME", "CLUSTER", *_CORE, "ISTIOD", "VERSION"), rows=tuple(rows))


def build_condensed_table(proxies: Iterable[ProxyStatus]) -> Table:
    """One line a proxy with the types it watches."""
    rows = (
        (p.name, p.cluster, p.control_plane, p.version, _subscribed(p)) for p in sorted(proxies, key=lambda p: p.name)
    )
    return Table(columns=("NAME", "CLUSTER", "ISTIOD", "VERSION", "SUBSCRIBED TYPES"), rows=tuple(rows))


def build_full_table(proxies: Sequence[ProxyStatus], now: datetime.datetime) -> Table:
    """A column for each type that any proxy watches, sorted by type URL, with the age of the last push."""
    core = {url for url, _ in _CORE.values()}
    urls = sorted(core.union(status.type_url for proxy in proxies for status in proxy.types))
    rows = []
    for proxy in sorted(proxies, key=lambda p: p.name):
        states = (proxy.of(url) for url in urls)
        cells = (status.text(now) if status else "IGNORED" for status in states)
        rows.append((proxy.name, proxy.cluster, *cells, proxy.control_plane, proxy.version))
    columns = ("NAME", "CLUSTER", *(short_name(url) for url in urls), "ISTIOD", "VERSION")
    return Table(columns=columns, rows=tuple(rows))


def build_document(proxies: Iterable[ProxyStatus], identifier: Mapping[str, Any]) -> dict[str, Any]:
    """One control plane's answer as istioctl prints it for `-o json`."""
    return {
        "resources": [_client_config(proxy) for proxy in proxies],
        "typeUrl": "istio.io/debug/syncz",
        "controlPlane": {"identifier": json.dumps(identifier, separators=(",", ":"))},
    }


def format_age(seconds: float) -> str:
    """An age as Kubernetes writes it: two units while the first is small, one when it is not."""
    whole = max(int(seconds), 0)
    steps = (
        (2 * _MINUTE, _SECOND, "s", 0, ""),
        (10 * _MINUTE, _MINUTE, "m", _SECOND, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (48 * _HOUR, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    )
    for limit, unit, letter, small_unit, small_letter in steps:
        if whole < limit:
            rest = whole % unit // small_unit if small_unit else 0
            return f"{whole // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{whole // _YEAR}y"


def _proxy(entry: Mapping[str, Any], control_plane: str) -> ProxyStatus:
    version = _text(entry, "istio_version")
    older = _text(entry, "proxy_version")
    return ProxyStatus(
        name=_text(entry, "proxy"),
        cluster=_text(entry, "cluster_id"),
        control_plane=control_plane,
        version=version or (f"{older}*" if older else ""),
        types=tuple(sorted(_types(entry), key=lambda status: status.type_url)),
    )


def _configured(config: Mapping[str, Any], control_plane: str) -> ProxyStatus:
    metadata = metadata_of(config)
    known = (c for c in config.get("genericXdsConfigs", ()) if c.get("configStatus", "UNKNOWN") != "UNKNOWN")
    return ProxyStatus(
        name=_text(config.get("node", {}), "id"),
        cluster=_text(metadata, "CLUSTER_ID"),
        control_plane=control_plane,
        version=_text(metadata, "ISTIO_VERSION"),
        types=tuple(sorted(map(_configured_type, known), key=lambda status: status.type_url)),
    )


def _configured_type(config: Mapping[str, Any]) -> TypeStatus:
    return TypeStatus(
        type_url=_text(config, "typeUrl"),
        state=config["configStatus"],
        sent=_time(_text(config, "lastUpdated")),
        error=_text(config.get("errorState", {}), "details"),
    )


def _types(entry: Mapping[str, Any]) -> list[TypeStatus]:
    """The watched types, from the map that newer control planes fill, else from the flat fields."""
    resources = entry.get("resources")
    if isinstance(resources, Mapping):
        watched = {str(url): r for url, r in resources.items() if isinstance(r, Mapping)}
    else:
        watched = {
            url: {"sent": _text(entry, f"{prefix}_sent"), "acked": _text(entry, f"{prefix}_acked")}
            for url, prefix in _CORE.values()
        }
    return [_type(url, record) for url, record in watched.items()]


def _type(url: str, record: Mapping[str, Any]) -> TypeStatus:
    sent, acked, error = _text(record, "sent"), _text(record, "acked"), _text(record, "lastError")
    state: State
    if error:
        state = "ERROR"
    elif not sent:
        state = "NOT_SENT"
    else:
        state = "SYNCED" if sent == acked else "STALE"
    when = _time(_text(record, "sentTime"))
    return TypeStatus(type_url=url, state=state, acknowledged=bool(acked), sent=when, error=error)


def _time(text: str) -> datetime.datetime | None:
    if not text or text == _EPOCH:
        return None
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=datetime.UTC)


def _client_config(proxy: ProxyStatus) -> dict[str, Any]:
    metadata = {"CLUSTER_ID": proxy.cluster, "ISTIO_VERSION": proxy.version, "NAMESPACE": proxy.namespace}
    return {
        "@type": "type.googleapis.com/envoy.service.status.v3.ClientConfig",
        "node": {"id": proxy.name, "metadata": metadata},
        "genericXdsConfigs": [_generic(status) for status in proxy.types],
    }


def _generic(status: TypeStatus) -> dict[str, Any]:
    updated = status.sent.isoformat().replace("+00:00", "Z") if status.sent else _EPOCH
    value: dict[str, Any] = {
        "typeUrl": status.type_url,
        "lastUpdated": updated,
        "configStatus": status.state,
    }
    if status.error:
        value["errorState"] = {"lastUpdateAttempt": updated, "details": status.error}
    return value


def _subscribed(proxy: ProxyStatus) -> str:
    urls = [status.type_url for status in proxy.types]
    first = [url for name in _SUBSCRIBED_ORDER for url in urls if short_name(url) == name]
    names = [short_name(url) for url in (*first, *(url for url in urls if url not in first))]
    return f"{len(names)} ({','.join(names)})" if names else "0"


def short_name(url: str) -> str:
    """`CDS` of a type URL; the URL itself for types without such a name."""
    return _SHORT_NAMES.get(url, url)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
