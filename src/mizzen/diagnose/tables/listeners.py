"""`proxy-config listener`: the listeners of a dump, filtered, and their table of filter chains.

In: the ListenersConfigDump section. Out: listener messages in istioctl's order and one row a filter chain: what it
matches and where it leads. Listeners without an active state (refused, or only warming) are not shown.
"""

import json

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json, MissingSection
from mizzen.diagnose.table import Row, Table
from mizzen.diagnose.tables import addresses, match
from mizzen.diagnose.tables.ordering import sort_like_go
from mizzen.errors import DecodeError

_HTTP = "envoy.filters.network.http_connection_manager"
_TCP = "envoy.filters.network.tcp_proxy"
_BLACK_HOLE = "BlackHoleCluster"

_PROTOCOL_NAMES = {
    ("http/1.0", "http/1.1", "h2c", "istio-http/1.0", "istio-http/1.1", "istio-h2"): "HTTP TLS",
    ("istio", "istio-http/1.0", "istio-http/1.1", "istio-h2"): "Istio HTTP Plain",
    ("istio-peer-exchange", "istio"): "TCP TLS",
    ("http/1.0", "http/1.1", "h2c"): "HTTP",
}
"""ALPN lists that istioctl knows by a name."""


class ListenerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener must have; every part that is set must hold."""

    address: str = ""
    port: int = 0
    kind: str = ""
    """`HTTP`, `TCP`, `HTTP+TCP` or `UNKNOWN`, in any case."""

    def keeps(self, listener: Json) -> bool:
        """Addresses compare whole and in any case, additional ones included; the port is the main one."""
        if self.address and self.address.lower() not in (a.lower() for a in _addresses(listener)):
            return False
        if self.port and self.port != _port(listener):
            return False
        return not self.kind or self.kind.lower() == describe_kind(listener).lower()


def select_listeners(source: Dump, keep: ListenerFilter) -> list[Json]:
    """The active and static listeners that the filter keeps, in the dump's order; raises DecodeError when the dump has
    none at all."""
    try:
        section = source.section("Listeners")
    except MissingSection as missing:
        raise DecodeError(f"listener dump: {missing}") from missing
    active = (dump.message(entry, "active_state", "listener") for entry in dump.items(section, "dynamic_listeners"))
    static = (dump.message(entry, "listener") for entry in dump.items(section, "static_listeners"))
    listeners = [listener for listener in (*active, *static) if listener]
    if not listeners:
        raise DecodeError("no listeners found")
    return [listener for listener in listeners if keep.keeps(listener)]


def build_table(listeners: list[Json], *, verbose: bool = True, named: bool = False) -> Table:
    """One row a filter chain, or one a listener when not `verbose`, sorted; `named` puts a NAME column in front."""
    columns: Row = ("ADDRESSES", "PORT", "MATCH", "DESTINATION") if verbose else ("ADDRESSES", "PORT", "TYPE")
    rows: list[Row] = []
    for listener in sort_like_go(listeners, lambda a, b: _key(a) < _key(b)):
        where = (",".join(_addresses(listener)), str(_port(listener)))
        prefix = (f"listener/{dump.text(listener, 'name')}", *where) if named else where
        tails = _chain_rows(listener) if verbose else [(describe_kind(listener),)]
        rows.extend((*prefix, *tail) for tail in tails)
    return Table(columns=("NAME", *columns) if named else columns, rows=tuple(rows), padding=1)


def describe_kind(listener: Json) -> str:
    """`HTTP`, `TCP`, `HTTP+TCP` or `UNKNOWN`, by the filters of all chains; the black hole counts for none."""
    http = tcp = False
    for chain in _chains(listener):
        for filter_ in dump.items(chain, "filters"):
            http = http or filter_.get("name") == _HTTP
            tcp = tcp or (filter_.get("name") == _TCP and not _is_black_hole(filter_))
    return "+".join(word for word, present in (("HTTP", http), ("TCP", tcp)) if present) or "UNKNOWN"


def describe_chain_match(chain: Json) -> str:
    """What a connection must have to take this chain; `ALL` without a condition."""
    condition = dump.message(chain, "filter_chain_match")
    pieces = []
    if names := dump.texts(condition, "server_names"):
        pieces.append(f"SNI: {','.join(names)}")
    if transport := dump.text(condition, "transport_protocol"):
        pieces.append(f"Trans: {transport}")
    if protocols := dump.texts(condition, "application_protocols"):
        pieces.append(f"App: {_PROTOCOL_NAMES.get(tuple(protocols), ','.join(protocols))}")
    destination = dump.number(condition, "destination_port")
    port = f":{destination}" if dump.field(condition, "destination_port") is not None else ""
    ranges = [
        f"{dump.text(r, 'address_prefix')}/{dump.number(r, 'prefix_len')}"
        for r in dump.items(condition, "prefix_ranges")
    ]
    if ranges or port:
        pieces.append(f"Addr: {','.join(ranges) or '*'}{port}")
    return "; ".join(pieces) or "ALL"


def describe_destination(chain: Json) -> str:
    """Where the chain leads, by the first of its filters that decides."""
    for filter_ in dump.items(chain, "filters"):
        config = dump.message(filter_, "typed_config")
        if filter_.get("name") == _HTTP:
            return _describe_http(config)
        if filter_.get("name") == _TCP and not _is_black_hole(filter_):
            return match.describe_cluster(dump.text(config, "cluster"))
    return "Non-HTTP/Non-TCP"


def _describe_http(config: Json) -> str:
    inline = dump.field(config, "route_config")
    if isinstance(inline, dict):
        return match.describe_inline(inline)
    named = dump.text(config, "rds", "route_config_name")
    return f"Route: {named}" if named else "HTTP"


def _is_black_hole(filter_: Json) -> bool:
    return _BLACK_HOLE in json.dumps(dump.message(filter_, "typed_config"))


def _chain_rows(listener: Json) -> list[Row]:
    rows = [(describe_chain_match(chain), describe_destination(chain)) for chain in _chains(listener)]
    return list(sort_like_go(rows, lambda a, b: a[1] > b[1]))


def _chains(listener: Json) -> list[Json]:
    default = dump.message(listener, "default_filter_chain")
    return [*dump.items(listener, "filter_chains"), *([default] if default else [])]


def _addresses(listener: Json) -> list[str]:
    more = (dump.message(entry, "address") for entry in dump.items(listener, "additional_addresses"))
    return [addresses.host(address) for address in (dump.message(listener, "address"), *more)]


def _port(listener: Json) -> int:
    return addresses.port(dump.message(listener, "address"))


def _key(listener: Json) -> tuple[int, str, str]:
    return _port(listener), addresses.host(dump.message(listener, "address")), describe_kind(listener)
