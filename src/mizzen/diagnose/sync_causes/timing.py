"""Where the time of pushes goes, by the control plane's own metrics.

In: the text of `/metrics`. Out: `Timing`s of the stages between a change and its acknowledgement, with a name for the
setting or the resource that each is bounded by, and what else says how busy the control plane is. Quantiles are upper
bounds of the buckets that they fall in.
"""

import math
import re
from collections.abc import Iterator, Mapping

import msgspec

_SAMPLE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)")
_BOUND = re.compile(r'(?:^|,)\s*le="([^"]*)"')
_CAUSE = re.compile(r'(?:^|,)\s*type="([^"]*)"')
_SHOWN = 5
_STAGES = (
    ("pilot_debounce_time", "changes wait for more changes", "PILOT_DEBOUNCE_AFTER and PILOT_DEBOUNCE_MAX"),
    ("pilot_proxy_queue_time", "pushes wait for their turn", "CPU, and PILOT_PUSH_THROTTLE"),
    ("pilot_xds_push_time", "responses are built and sent", "CPU, and the size of what is sent"),
    ("pilot_proxy_convergence_time", "from a change to its last response", "all of these together"),
    ("mizzen_loop_lag_seconds", "the event loop is late", "CPU"),
)
_WHOLE = "pilot_proxy_convergence_time"
_HIGH = 0.99
_SLOW_SECONDS = 1.0


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """One stage."""

    metric: str
    meaning: str
    bounded_by: str
    count: int
    mean: float
    high: float
    """Seconds that 99 of 100 stay below; infinite beyond the last bucket."""

    def __str__(self) -> str:
        high = "some beyond all buckets" if math.isinf(self.high) else f"99 % within {self.high:g} s"
        return f"{self.metric}: mean {self.mean:.3g} s, {high}, of {self.count} ({self.meaning})"

    @property
    def is_slow(self) -> bool:
        """Whether it takes longer than a healthy control plane needs."""
        return self.high > _SLOW_SECONDS


def read_timings(text: str) -> tuple[Timing, ...]:
    """The stages of which the metrics say something."""
    samples = list(_samples(text))
    return tuple(found for stage in _STAGES if (found := _timing(samples, *stage)) is not None)


def slowest(timings: tuple[Timing, ...]) -> Timing | None:
    """The stage that takes most of the time, if any is slow."""
    slow = [timing for timing in timings if timing.is_slow and timing.metric != _WHOLE]
    return max(slow, key=lambda timing: timing.mean, default=None)


def read_load(text: str, now: float) -> tuple[str, ...]:
    """How busy it is: CPU since its start, and pushes by what caused them. `now` is in seconds since the epoch."""
    samples = list(_samples(text))
    return tuple(line for line in (_cpu(samples, now), _causes(samples)) if line)


Sample = tuple[str, str, float]


def _cpu(samples: list[Sample], now: float) -> str:
    known = {name: value for name, labels, value in samples if name.startswith("process_") and not labels}
    used, started = known.get("process_cpu_seconds_total"), known.get("process_start_time_seconds")
    if used is None or started is None or now <= started:
        return ""
    return f"process_cpu_seconds_total: {used / (now - started):.2f} of a core on average since its start"


def _causes(samples: list[Sample]) -> str:
    counts: dict[str, float] = {}
    for name, labels, value in samples:
        cause = _CAUSE.search(labels) if name == "pilot_push_triggers" else None
        if cause is not None and value:
            counts[cause[1]] = counts.get(cause[1], 0.0) + value
    most = sorted(counts.items(), key=lambda pair: -pair[1])[:_SHOWN]
    return "pilot_push_triggers: " + ", ".join(f"{cause} {count:g}" for cause, count in most) if most else ""


def _samples(text: str) -> Iterator[Sample]:
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found is not None:
            try:
                yield found["name"], found["labels"] or "", float(found["value"])
            except ValueError:
                continue


def _timing(samples: list[Sample], metric: str, meaning: str, bounded_by: str) -> Timing | None:
    count = sum(value for name, _, value in samples if name == f"{metric}_count")
    if not count:
        return None
    buckets: dict[float, float] = {}
    for name, labels, value in samples:
        bound = _BOUND.search(labels) if name == f"{metric}_bucket" else None
        if bound is not None:
            edge = float(bound[1])
            buckets[edge] = buckets.get(edge, 0.0) + value
    total = sum(value for name, _, value in samples if name == f"{metric}_sum")
    return Timing(
        metric=metric,
        meaning=meaning,
        bounded_by=bounded_by,
        count=int(count),
        mean=total / count,
        high=_quantile(buckets, count),
    )


def _quantile(buckets: Mapping[float, float], count: float) -> float:
    return next((edge for edge, value in sorted(buckets.items()) if value >= _HIGH * count), math.inf)
