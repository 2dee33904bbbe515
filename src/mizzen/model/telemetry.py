"""Telemetry: which Telemetry objects hold for a workload, and what they say together.

In: Telemetries, the mesh's default providers. Out: the keys of the Telemetries of one workload from the mesh to the
workload's own, and by these keys what is logged, counted and traced on the client and on the server side; workloads
with equal keys share it. Providers are names here; what they stand for in Envoy is `compile.listeners`.
Golden cases: telemetry/scope-precedence, telemetry/access-log-filters, telemetry/default-providers,
telemetry/metrics-overrides, telemetry/tracing-tags.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar, get_args

import msgspec

from mizzen.api.mesh.config import DefaultProviders
from mizzen.api.meta import Key
from mizzen.api.networking.selectors import PolicyTargetReference
from mizzen.api.policy import (
    AccessLogging,
    CustomTag,
    Metric,
    Metrics,
    MetricSelector,
    MetricsOverrides,
    ModeMatch,
    ProviderRef,
    Telemetry,
    TelemetryMode,
    TelemetrySpec,
    Tracing,
)
from mizzen.api.scalars import Duration
from mizzen.incremental import Engine, Index, query
from mizzen.model import attachments, mesh, objects
from mizzen.model.attachments import Audience

Mode = Literal["CLIENT", "SERVER"]
"""The side of a connection that reports: outbound traffic and gateways are clients, inbound traffic is a server."""

Keys = tuple[Key, ...]
Said = TypeVar("Said", AccessLogging, Metrics, Tracing)

_KIND = "Telemetry"
_ALL_METRICS = "ALL_METRICS"
_STANDARD_METRICS = tuple(sorted(set(get_args(Metric)) - {_ALL_METRICS}))

_by_label = Index(_KIND, "changed label", lambda _key, telemetry: set(_changed_labels(telemetry)))


# -- selection --------------------------------------------------------------------------------------------------------


@query
def telemetries(db: Engine, audience: Audience) -> Keys:
    """The Telemetries of a workload: the mesh's, its namespace's, then all that select it.

    Of several for a whole mesh or namespace the oldest counts alone; of those that select the workload the newest has
    the last word. One in the root namespace that selects workloads is for workloads of that namespace only.
    """
    found: list[Key] = []
    for namespace in dict.fromkeys((mesh.root_namespace(db), audience.namespace)):
        found += (_key(each) for each in (general(db, namespace),) if each is not None)
    for telemetry in _in_namespace(db, audience.namespace):
        selector = telemetry.spec.selector.match_labels if telemetry.spec.selector is not None else None
        if not is_general(telemetry) and attachments.is_for(
            audience, audience.namespace, selector, _references(telemetry)
        ):
            found.append(_key(telemetry))
    return tuple(found)


@query
def general(db: Engine, namespace: str) -> Telemetry | None:
    """The Telemetry of a whole namespace: the oldest that selects nothing."""
    return next((t for t in _in_namespace(db, namespace) if is_general(t)), None)


@query
def _in_namespace(db: Engine, namespace: str) -> tuple[Telemetry, ...]:
    """The Telemetries of a namespace, oldest first."""
    found: list[Telemetry] = [db.input(key) for key in objects.in_namespace(db, _KIND, namespace)]
    return tuple(sorted(found, key=lambda t: t.metadata.age_order))


def is_general(telemetry: Telemetry) -> bool:
    """Whether a Telemetry is for a whole namespace."""
    selector = telemetry.spec.selector
    return (selector is None or not selector.match_labels) and not _references(telemetry)


def _references(telemetry: Telemetry) -> tuple[PolicyTargetReference, ...]:
    spec = telemetry.spec
    return tuple(spec.target_refs) or ((spec.target_ref,) if spec.target_ref is not None else ())


def _key(telemetry: Telemetry) -> Key:
    return Key(_KIND, telemetry.metadata.namespace, telemetry.metadata.name)


def _specs(db: Engine, keys: Keys) -> Iterator[TelemetrySpec]:
    for key in keys:
        telemetry: Telemetry | None = db.input(key)
        if telemetry is not None:
            yield telemetry.spec


def _defaults(db: Engine) -> DefaultProviders:
    return mesh.mesh_config(db).default_providers or DefaultProviders()


def _names(providers: Iterable[ProviderRef]) -> tuple[str, ...]:
    return tuple(provider.name for provider in providers)


def _with_providers(entries: Iterable[Said], inherited: tuple[str, ...]) -> Iterator[tuple[Said, tuple[str, ...]]]:
    """Each entry with its providers: its own, or those of the entry before it."""
    for entry in entries:
        inherited = _names(entry.providers) or inherited
        yield entry, inherited


def _is_of(match: ModeMatch | MetricSelector | None, mode: Mode) -> bool:
    written: TelemetryMode = match.mode if match is not None else "CLIENT_AND_SERVER"
    return written in (mode, "CLIENT_AND_SERVER")


# -- access logs ------------------------------------------------------------------------------------------------------


class LogChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One provider that logs, and the CEL expression that a request must fulfil."""

    provider: str
    expression: str = ""


@query
def access_logs(db: Engine, keys: Keys, mode: Mode) -> tuple[LogChoice, ...] | None:
    """The providers that log on a side, sorted; None where nothing is said and the mesh's older settings hold."""
    default = tuple(_defaults(db).access_logging)
    levels = [spec.access_logging for spec in _specs(db, keys) if spec.access_logging]
    if not levels:
        return tuple(LogChoice(provider=name) for name in sorted(set(default))) if default else None
    wanted = set(default)
    filters: dict[str, str] = {}
    for level in levels:
        here = [entry for entry in level if _is_of(entry.match, mode)]
        for entry in here:
            expression = entry.filter.expression if entry.filter is not None else ""
            filters |= {name: expression for name in _names(entry.providers)}
        wanted = {name for entry in here for name in _names(entry.providers)} or wanted
    enabled: dict[str, bool] = {}
    for entry, providers in _with_providers((entry for level in levels for entry in level), default):
        if _is_of(entry.match, mode):
            enabled |= {name: not entry.disabled for name in providers if name in wanted}
    chosen = sorted(name for name, on in enabled.items() if on)
    return tuple(LogChoice(provider=name, expression=filters.get(name, "")) for name in chosen)


# -- metrics ----------------------------------------------------------------------------------------------------------


class TagChange(msgspec.Struct, frozen=True, kw_only=True):
    """One label of a metric: set to the value of a CEL expression, or removed where there is none."""

    label: str
    expression: str | None


class MetricChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed about one metric, under its name in the API or a custom one."""

    metric: str
    drop: bool = False
    tags: tuple[TagChange, ...] = ()
    """Sorted by label."""


class MetricChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One provider that counts."""

    provider: str
    changes: tuple[MetricChange, ...] = ()
    """Sorted by metric."""
    reporting_interval: Duration | None = None


@query
def any_changes(db: Engine, labels: tuple[str, ...]) -> bool:
    """Whether any Telemetry of the mesh changes one of these labels."""
    return any(db.lookup(_by_label, label) for label in labels)


def _changed_labels(telemetry: Telemetry) -> Iterator[str]:
    for entry in telemetry.spec.metrics:
        for override in entry.overrides:
            yield from override.tag_overrides


class _Collected:
    """What entries say about one provider on one side, as far as they were read."""

    def __init__(self) -> None:
        self.disabled = False
        """Whether all metrics are off; a later change of any metric turns them on again."""
        self.drops: dict[str, bool] = {}
        self.tags: dict[str, dict[str, TagChange]] = {}
        self.interval: Duration | None = None

    def read(self, entry: Metrics, mode: Mode) -> None:
        if entry.reporting_interval is not None:
            self.interval = entry.reporting_interval
        for override in entry.overrides:
            if not _is_of(override.match, mode):
                continue
            metrics = _metrics(override.match)
            self.disabled = bool(override.disabled) and metrics == _STANDARD_METRICS
            if not self.disabled:
                self._change(metrics, override)

    def _change(self, metrics: tuple[str, ...], override: MetricsOverrides) -> None:
        for metric in metrics:
            tags = self.tags.setdefault(metric, {})
            if override.disabled is not None:
                self.drops[metric] = override.disabled
            for label, change in override.tag_overrides.items():
                expression = None if change.operation == "REMOVE" else change.value
                tags[label] = TagChange(label=label, expression=expression)

    def changes(self) -> Iterator[MetricChange]:
        for metric in sorted(self.tags):
            tags = tuple(tag for _, tag in sorted(self.tags[metric].items()))
            yield MetricChange(metric=metric, drop=self.drops.get(metric, False), tags=tags)


def _metrics(match: MetricSelector | None) -> tuple[str, ...]:
    if match is not None and match.custom_metric:
        return (match.custom_metric,)
    if match is not None and match.metric is not None and match.metric != _ALL_METRICS:
        return (match.metric,)
    return _STANDARD_METRICS


@query
def metrics(db: Engine, keys: Keys, mode: Mode) -> tuple[MetricChoice, ...]:
    """The providers that count on a side, in the order in which they are named."""
    entries = [entry for spec in _specs(db, keys) for entry in spec.metrics]
    default = tuple(_defaults(db).metrics)
    wanted = next((_names(entry.providers) for entry in reversed(entries) if entry.providers), default)
    collected = {name: _Collected() for name in wanted}
    for entry, providers in _with_providers(entries, default):
        for name in providers:
            if name in collected:
                collected[name].read(entry, mode)
    return tuple(
        MetricChoice(provider=name, changes=tuple(found.changes()), reporting_interval=found.interval)
        for name, found in collected.items()
        if not found.disabled
    )


# -- traces -----------------------------------------------------------------------------------------------------------


class TraceChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about the traces of a side; None inherits from the proxy's own settings."""

    provider: str = ""
    """Empty where spans are not reported."""
    sampling: float | None = None
    tags: tuple[tuple[str, CustomTag], ...] | None = None
    """Sorted by name."""
    sample_by_request_id: bool = True
    istio_tags: bool = True
    propagates: bool = True


@query
def traces(db: Engine, keys: Keys, mode: Mode) -> TraceChoice | None:
    """How a side is traced; None where nothing is said and the proxy's older settings hold."""
    entries = [entry for spec in _specs(db, keys) for entry in spec.tracing]
    default = tuple(_defaults(db).tracing)
    if not entries and not default:
        return None
    choice = TraceChoice(provider=default[0] if default else "")
    reports = True
    for entry in entries:
        if not _is_of(entry.match, mode):
            continue
        if entry.disable_span_reporting is not None:
            reports = not entry.disable_span_reporting
        choice = _laid_over(choice, entry)
    return choice if reports and choice.provider else TraceChoice()


def _laid_over(choice: TraceChoice, entry: Tracing) -> TraceChoice:
    disabled = entry.disable_context_propagation
    written = {
        "provider": entry.providers[0].name if entry.providers else None,
        "sampling": entry.random_sampling_percentage,
        "tags": tuple(sorted(entry.custom_tags.items())) or None,
        "sample_by_request_id": entry.use_request_id_for_trace_sampling,
        "istio_tags": entry.enable_istio_tags,
        "propagates": None if disabled is None else not disabled,
    }
    return msgspec.structs.replace(choice, **{name: value for name, value in written.items() if value is not None})
