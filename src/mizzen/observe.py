"""What operators see of a running Mizzen: metrics and logs.

Metrics: one registry of this process; `Counter`, `Gauge` and `Histogram` put themselves into it when a module
is imported. Names are Istio's, exactly: prometheus-client would append `_total` to counters, so `Counter` and
`render_metrics` are our own. Logs: one scope per concern (`scope("ads")`), a level for each
(`default:info,ads:debug`), as text or JSON lines. `Secret` holds what must never be printed; as a last
line of defence private keys and tokens are cut out of every line.
Serving `/metrics` over HTTP is elsewhere (`control`, `agent`).
"""

import datetime
import json
import logging
import math
import re
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import prometheus_client
from prometheus_client import core as prometheus
from prometheus_client import registry as prometheus_registry

from mizzen.errors import UsageError

REGISTRY = prometheus_client.CollectorRegistry(auto_describe=False)
METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
prometheus_client.ProcessCollector(registry=REGISTRY)


class _Count:
    """One time series of a Counter."""

    __slots__ = ("_lock", "value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Count `amount` more; a counter never goes down."""
        if amount < 0:
            raise ValueError("a counter never goes down")
        with self._lock:
            self.value += amount


class Counter(prometheus_registry.Collector):
    """A cumulative sum that is exported under exactly the name it is given."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        registry: prometheus_client.CollectorRegistry = REGISTRY,
    ) -> None:
        self.name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._lock = threading.Lock()
        self._series: dict[tuple[str, ...], _Count] = {}
        if not self._labels:
            self._series[()] = _Count()
        registry.register(self)

    def labels(self, *values: str, **named: str) -> _Count:
        """The time series of these label values, made when first asked for."""
        if named:
            values = tuple(str(named[label]) for label in self._labels)
        if len(values) != len(self._labels) or (named and len(named) != len(self._labels)):
            raise ValueError(f"{self.name} has the labels {self._labels}")
        with self._lock:
            found = self._series.get(values)
            if found is None:
                found = self._series[values] = _Count()
            return found

    def inc(self, amount: float = 1.0) -> None:
        """Count on a counter without labels."""
        self.labels().inc(amount)

    def value(self, *values: str) -> float:
        """What was counted so far for these label values."""
        with self._lock:
            series = self._series.get(values)
        return series.value if series else 0.0

    def total(self) -> float:
        """What was counted so far for all label values."""
        with self._lock:
            return sum(series.value for series in self._series.values())

    def describe(self) -> Iterable[prometheus.Metric]:
        """The name alone, for the registry's check of duplicates."""
        yield prometheus.UnknownMetricFamily(self.name, self._documentation)

    def collect(self) -> Iterable[prometheus.Metric]:
        """All series, sorted by label values."""
        metric = prometheus.Metric(self.name, self._documentation, "counter")
        with self._lock:
            series = sorted(self._series.items())
        for values, count in series:
            metric.add_sample(self.name, dict(zip(self._labels, values, strict=True)), count.value)
        yield metric


def Gauge(
    name: str,
    documentation: str,
    labels: Sequence[str] = (),
    registry: prometheus_client.CollectorRegistry = REGISTRY,
) -> prometheus_client.Gauge:
    """A value that goes up and down."""
    return prometheus_client.Gauge(name, documentation, labels, registry=registry)


def replace_series(gauge: prometheus_client.Gauge, values: Mapping[tuple[str, ...], float]) -> None:
    """Let a gauge have these series, by label values, and no others.

    One that stays is never missing meanwhile: scrapes are answered in another thread.
    """
    held = {tuple(sample.labels.values()) for metric in gauge.collect() for sample in metric.samples}
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
    for labels in held - values.keys():
        gauge.remove(*labels)


def Histogram(
    name: str,
    documentation: str,
    buckets: Sequence[float],
    labels: Sequence[str] = (),
    registry: prometheus_client.CollectorRegistry = REGISTRY,
) -> prometheus_client.Histogram:
    """A distribution over buckets; `+Inf` is added."""
    return prometheus_client.Histogram(name, documentation, labels, buckets=tuple(buckets), registry=registry)


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _render_number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value)).removesuffix(".0")


def _render_sample(sample: prometheus.Sample) -> str:
    labels = ",".join(
        '{}="{}"'.format(label, _escape(value).replace('"', r"\"")) for label, value in sorted(sample.labels.items())
    )
    name = f"{sample.name}{{{labels}}}" if labels else sample.name
    return f"{name} {_render_number(sample.value)}"


def render_metrics(registry: prometheus_client.CollectorRegistry = REGISTRY) -> bytes:
    """All metrics in Prometheus' text format 0.0.4, each under the name of its samples."""
    lines: list[str] = []
    for metric in registry.collect():
        name = metric.name
        if metric.type == "counter" and metric.samples:
            name = metric.samples[0].name
        kind = "untyped" if metric.type == "unknown" else metric.type
        lines.append(f"# HELP {name} {_escape(metric.documentation)}")
        lines.append(f"# TYPE {name} {kind}")
        lines.extend(_render_sample(sample) for sample in metric.samples)
    return ("\n".join(lines) + "\n").encode()


class Secret:
    """Bytes that no log line, `repr` or traceback shows; `reveal` is the only way to them."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    def reveal(self) -> bytes:
        """The bytes; call it only where they are used."""
        return self._value

    def __repr__(self) -> str:
        return "[redacted]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a Secret is not pickled")


_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL)
_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


def redact(text: str) -> str:
    """`text` without PEM private keys and JSON web tokens."""
    if "PRIVATE KEY-----" in text:
        text = _PRIVATE_KEY.sub("[redacted]", text)
    if "eyJ" in text:
        text = _TOKEN.sub("[redacted]", text)
    return text


_ROOT = "mizzen"
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
    "none": logging.CRITICAL + 1,
}
_NAMES = {number: name for name, number in _LEVELS.items()}
LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
"""The level at which a Problem's level is logged."""


def scope(name: str = "default") -> logging.Logger:
    """The logger of a scope; `default` is also the parent of all others."""
    return logging.getLogger(_ROOT if name == "default" else f"{_ROOT}.{name}")


def parse_levels(text: str) -> dict[str, int]:
    """Scope → level of Istio's `--log_output_level`: `info`, or `default:info,ads:debug`."""
    levels: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, word = part.rpartition(":")
        if word not in _LEVELS:
            raise UsageError(f"unknown log level {word!r} in {text!r}; known are {', '.join(_LEVELS)}")
        levels[name or "default"] = _LEVELS[word]
    return levels


def set_levels(text: str) -> None:
    """Change the levels of the scopes that `text` names; `all` sets every scope seen so far."""
    levels = parse_levels(text)
    if "all" in levels:
        for name in scopes():
            scope(name).setLevel(levels["all"])
    for name, level in levels.items():
        if name != "all":
            scope(name).setLevel(level)


def scopes() -> dict[str, str]:
    """Every scope with the word of its level in force, sorted."""
    names = (name for name in logging.Logger.manager.loggerDict if name.startswith(f"{_ROOT}."))
    found = ["default", *sorted(name.removeprefix(f"{_ROOT}.") for name in names)]
    return {name: _level_word(scope(name).getEffectiveLevel()) for name in found}


def _level_word(level: int) -> str:
    return _NAMES.get(level, "info")


class _Lines(logging.Formatter):
    """One line per record, in Istio's column order: time, level, scope, message."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._json = as_json

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        time = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        name = record.name.removeprefix(f"{_ROOT}.") if record.name != _ROOT else "default"
        message = redact(record.getMessage())
        trace = redact(self.formatException(record.exc_info)) if record.exc_info else ""
        if self._json:
            entry = {"level": _level_word(record.levelno), "time": time, "scope": name, "msg": message}
            if trace:
                entry["stack"] = trace
            return json.dumps(entry, ensure_ascii=False)
        line = f"{time}\t{_level_word(record.levelno)}\t{name}\t{message}"
        return f"{line}\n{trace}" if trace else line


class _Handler(logging.StreamHandler[TextIO]):
    """The one handler that `set_up_logging` installs; its type tells it from others' handlers."""


def set_up_logging(levels: str = "default:info", as_json: bool = False, stream: TextIO | None = None) -> None:
    """Send every scope to `stream` (standard error) in one format; called once by each program.

    Libraries speak from level warning on, in the same format.
    """
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(_Lines(as_json))
    root = logging.getLogger()
    for earlier in [known for known in root.handlers if isinstance(known, _Handler)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    scope().setLevel(logging.INFO)
    set_levels(levels)
