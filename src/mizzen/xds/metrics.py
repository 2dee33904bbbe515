"""The metrics of serving, under Istio's names and with its buckets."""

import collections

from mizzen.observe import Counter, Gauge, Histogram
from mizzen.xds import kinds

_QUEUE_BUCKETS = (0.1, 0.5, 1, 3, 5, 10, 20, 30)
_PUSH_BUCKETS = (0.01, *_QUEUE_BUCKETS)

CONNECTED = Gauge("pilot_xds", "Number of proxies connected to this control plane using XDS.", ("version",))
PUSHES = Counter("pilot_xds_pushes", "Responses sent, by type; `…_senderr` counts those that could not be.", ("type",))
PUSH_TIME = Histogram("pilot_xds_push_time", "Seconds to build and send one response.", _PUSH_BUCKETS, ("type",))
SEND_TIME = Histogram("pilot_xds_send_time", "Seconds to send one response.", _PUSH_BUCKETS)
CONFIG_SIZE = Histogram(
    "pilot_xds_config_size_bytes", "Bytes of one response.", (1, 1e4, 1e6, 4e6, 1e7, 4e7), ("type",)
)
RECEIVED_MAX = Gauge("pilot_xds_recv_max", "Bytes of the largest request received.")
CONVERGENCE = Histogram(
    "pilot_proxy_convergence_time", "Seconds from a change to the last response that it caused.", _QUEUE_BUCKETS
)
QUEUE_TIME = Histogram("pilot_proxy_queue_time", "Seconds from a change to the start of its push.", _QUEUE_BUCKETS)
DEBOUNCE_TIME = Histogram("pilot_debounce_time", "Seconds from the first change to its commit.", _PUSH_BUCKETS)
TRIGGERS = Counter("pilot_push_triggers", "Pushes to proxies, by the reason of the change.", ("type",))
UPDATES = Counter("pilot_inbound_updates", "Changes received from the sources, by Istio's four types.", ("type",))
CAUSED_PUSHES = Counter(
    "mizzen_caused_pushes", "Pushes to proxies in which a change of that kind took part.", ("kind", "change", "proxy")
)
CAUSED_BYTES = Counter(
    "mizzen_caused_bytes", "Bytes sent because of changes; those of one push share evenly.", ("kind", "change", "proxy")
)
REJECTS = Counter("pilot_total_xds_rejects", "Responses that a proxy rejected.", ("type",))
INTERNAL_ERRORS = Counter("pilot_total_xds_internal_errors", "Resources that could not be compiled.")
SECRET_ERRORS = Counter(
    "pilot_sds_certificate_errors_total", "Secrets asked for that are not there or not for who asks."
)
EXPIRED_NONCES = Counter("pilot_xds_expired_nonce", "Requests that answered an outdated response.", ("type",))

_REJECTS_OF = {
    word: Gauge(
        f"pilot_xds_{word}_reject", f"{word.upper()} responses that connected proxies rejected.", ("node", "err")
    )
    for word in ("cds", "eds", "lds", "rds")
}


class _OfType:
    """The series of one type, looked up once: a push touches four of them."""

    __slots__ = ("push_time", "pushes", "size")

    def __init__(self, word: str) -> None:
        self.pushes = PUSHES.labels(word)
        self.push_time = PUSH_TIME.labels(word)
        self.size = CONFIG_SIZE.labels(word)


_of_type: dict[str, _OfType] = {}


def count_response(type_url: str, size: int, build_seconds: float, send_seconds: float) -> None:
    """One response was sent."""
    series = _of_type.get(type_url)
    if series is None:
        series = _of_type[type_url] = _OfType(kinds.short_name(type_url))
    series.pushes.inc()
    series.size.observe(size)
    series.push_time.observe(build_seconds + send_seconds)
    SEND_TIME.observe(send_seconds)


_UPDATE_TYPES = {"endpoint": "eds", "service": "svc"}
_SERVICE_GONE = "svcdelete"


def count_update(reason: str, *, is_removal: bool) -> None:
    """One change of an input was received."""
    kind = _UPDATE_TYPES.get(reason, "config")
    UPDATES.labels(_SERVICE_GONE if kind == "svc" and is_removal else kind).inc()


class _Largest:
    """The largest value seen."""

    value = 0


_largest_request = _Largest()


def count_request(size: int) -> None:
    """One request was received."""
    if size > _largest_request.value:
        _largest_request.value = size
        RECEIVED_MAX.set(size)


_VERSIONS, _VERSION_LENGTH = 20, 64
"""Versions without proxies stay as 0, but a version is what a client calls itself: none of them once there are many."""
_connected: collections.Counter[str] = collections.Counter()


def count_connected(version: str, change: int) -> None:
    """A proxy of that version came (1) or went (-1)."""
    shown = version[:_VERSION_LENGTH]
    _connected[shown] += change
    if _connected[shown] or len(_connected) <= _VERSIONS:
        CONNECTED.labels(shown).set(_connected[shown])
    else:
        del _connected[shown]
        CONNECTED.remove(shown)


def count_caused(kind: str, change: str, proxy: str, size: int) -> None:
    """A proxy of that type was sent so many bytes because objects of a kind changed in one way."""
    CAUSED_PUSHES.labels(kind, change, proxy).inc()
    CAUSED_BYTES.labels(kind, change, proxy).inc(size)


def count_send_error(type_url: str) -> None:
    """One response could not be sent."""
    PUSHES.labels(f"{kinds.short_name(type_url)}_senderr").inc()


def count_rejections() -> float:
    """Responses rejected since the start."""
    return REJECTS.total()


_rejections: dict[tuple[str, str, str], int] = {}
"""Type, node and code of every series there is, with what connected streams have added to it."""


class Rejections:
    """What one stream's client has rejected. It goes with the stream; what another stream of the same proxy has added
    to the same series stays: there are no more series than connected proxies need."""

    __slots__ = ("_counted", "_node")

    def __init__(self, node: str) -> None:
        self._node = node
        self._counted: dict[tuple[str, str, str], int] = {}

    def count(self, type_url: str, error: str) -> None:
        """One response was rejected, with that code."""
        word = kinds.short_name(type_url)
        REJECTS.labels(word).inc()
        if word in _REJECTS_OF:
            series = (word, self._node, error)
            self._counted[series] = self._counted.get(series, 0) + 1
            _add(series, 1)

    def forget(self) -> None:
        """The stream has ended."""
        for series, count in self._counted.items():
            _add(series, -count)
        self._counted.clear()


def _add(series: tuple[str, str, str], count: int) -> None:
    word, *labels = series
    total = _rejections.pop(series, 0) + count
    if total:
        _rejections[series] = total
        _REJECTS_OF[word].labels(*labels).set(total)
    else:
        _REJECTS_OF[word].remove(*labels)
