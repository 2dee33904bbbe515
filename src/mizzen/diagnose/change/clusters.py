"""Changes of clusters: services and subsets that come and go, balancing, limits, ejection, TLS towards upstreams.

In: a cluster on both sides, None where it is absent. Out: `Change`s. A cluster `DIRECTION|PORT|SUBSET|HOST` is named by
what it stands for.
"""

from collections.abc import Iterator
from typing import Any

from mizzen.diagnose import dump
from mizzen.diagnose.change.changes import Change, changed, generic, worded
from mizzen.diagnose.change.fields import differences, show
from mizzen.diagnose.dump import Json
from mizzen.model import names

_WORDS = {
    "type": "discovery",
    "connectTimeout": "connect timeout",
    "lbPolicy": "load balancing",
}
_PARTS = {
    "outlierDetection": "outlier detection",
    "circuitBreakers": "connection pool limits",
    "upstreamConnectionOptions": "TCP keepalive",
    "commonLbConfig": "locality balancing",
    "ringHashLbConfig": "load balancing",
    "maglevLbConfig": "load balancing",
    "loadBalancingPolicy": "load balancing",
    "typedExtensionProtocolOptions": "HTTP options",
    "healthChecks": "health checks",
}
TLS_FIELDS = ("transportSocket", "transportSocketMatches")
_UNSAID = ("metadata",)
"""What only tells where a cluster comes from."""


def describe(name: str) -> str:
    """`HOST:PORT`, with direction and subset where there are such."""
    key = _parts(name)
    if key is None:
        return name
    where = f"{key.host}:{key.port}" if key.host else f"port {key.port}"
    stated = f"{where} subset {key.subset}" if key.subset else where
    return stated if key.direction == names.OUTBOUND else f"{key.direction} {stated}"


def _parts(name: str) -> names.SubsetKey | None:
    """None also for the twins of clusters that gateways choose by server name: each goes by its own name."""
    return names.parse_subset_key(name) if "|" in name else None


def compare(name: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    """What changes for this cluster."""
    subject = describe(name)
    if old is None or new is None:
        key = _parts(name)
        text = "subset gone" if new is None and key is not None and key.subset else ""
        yield Change(kind="cluster", subject=subject, action="added" if old is None else "removed", text=text)
        return
    yield from changed("cluster", subject, worded(_texts(old, new), old, new))


def _texts(old: Json, new: Json) -> Iterator[str]:
    before, after = tls_mode(old), tls_mode(new)
    tls = [field for field in TLS_FIELDS if old.get(field) != new.get(field)]
    if before != after:
        yield f"TLS {before} → {after}"
    elif tls:
        yield from generic(field for each in tls for field in differences(old.get(each), new.get(each), each))
    rest = {name for name in (*old, *new) if old.get(name) != new.get(name)} - {*TLS_FIELDS, *_UNSAID}
    for name in sorted(rest):
        if name in _WORDS:
            yield f"{_WORDS[name]} {show(old.get(name))} → {show(new.get(name))}"
            continue
        word = _PARTS.get(name, "")
        if word and (old.get(name) is None or new.get(name) is None):
            yield f"{word} {'added' if old.get(name) is None else 'removed'}"
            continue
        yield from generic(differences(old.get(name), new.get(name), word or name))


def tls_mode(cluster: Json) -> str:
    """How connections to this cluster are secured, in one word or two."""
    matches = [_socket_mode(dump.message(each, "transport_socket")) for each in dump.items(cluster, _MATCHES)]
    if matches:
        modes = sorted(set(matches) - {"plain"})
        return f"{'/'.join(modes)} where the endpoint has it" if "plain" in matches else "/".join(modes)
    return _socket_mode(dump.message(cluster, "transport_socket"))


_MATCHES = "transport_socket_matches"


def _socket_mode(socket: Json) -> str:
    config: Any = dump.message(socket, "typed_config")
    while dump.message(config, "transport_socket"):
        config = dump.message(config, "transport_socket", "typed_config")
    context = dump.message(config, "common_tls_context")
    if not context:
        return "plain"
    secrets = list(dump.items(context, "tls_certificate_sds_secret_configs"))
    if any(dump.text(each, "name") == "default" for each in secrets):
        return "mesh mTLS"
    return "MUTUAL" if secrets or dump.field(context, "tls_certificates") else "SIMPLE"
