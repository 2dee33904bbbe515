"""Telemetry: tracing, metrics and access logs of selected workloads."""

from collections.abc import Sequence

from mizzen.api.policy import CustomTag, MetricsOverrides, ProviderRef, Telemetry, Tracing
from mizzen.api.validate.faults import Faults, at, error, warning
from mizzen.api.validate.values.expressions import expression_fault
from mizzen.api.validate.values.selectors import check_attachment, check_match_labels


def check_telemetry(telemetry: Telemetry, path: str) -> Faults:
    """All rules of a Telemetry."""
    spec = telemetry.spec
    yield from check_match_labels(spec.selector, f"{path}.selector")
    yield from check_attachment(spec.selector, spec.target_ref, spec.target_refs, path)
    for index, metrics in enumerate(spec.metrics):
        here = f"{path}.metrics[{index}]"
        yield from _check_providers(metrics.providers, here)
        for place, override in enumerate(metrics.overrides):
            yield from _check_override(override, f"{here}.overrides[{place}]")
    if len(spec.tracing) > 1:
        yield warning(f"{path}.tracing", "multiple tracing is not currently supported")
    for index, tracing in enumerate(spec.tracing):
        yield from _check_tracing(tracing, f"{path}.tracing[{index}]")
    for index, logging in enumerate(spec.access_logging):
        here = f"{path}.accessLogging[{index}]"
        yield from _check_providers(logging.providers, here)
        if logging.filter is not None:
            fault = expression_fault(logging.filter.expression)
            message = fault and f"must be a valid CEL expression, {fault}"
            yield from at(f"{here}.filter.expression", message)


def _check_providers(providers: Sequence[ProviderRef], path: str) -> Faults:
    for index, provider in enumerate(providers):
        if not provider.name:
            yield error(f"{path}.providers[{index}].name", "providers.name may not be empty")


def _check_override(override: MetricsOverrides, path: str) -> Faults:
    for name, change in override.tag_overrides.items():
        here = f"{path}.tagOverrides[{name}]"
        if not name:
            yield warning(here, "tagOverrides.name may not be empty")
        if change.operation == "UPSERT" and not change.value:
            yield error(f"{here}.value", "tagOverrides.value must be set when operation is UPSERT")
        if change.operation == "REMOVE" and change.value:
            yield error(f"{here}.value", "tagOverrides.value may only be set when operation is UPSERT")
    if override.match is not None and override.match.custom_metric == "":
        yield error(f"{path}.match.customMetric", "customMetric may not be empty")


def _check_tracing(tracing: Tracing, path: str) -> Faults:
    if len(tracing.providers) > 1:
        yield warning(f"{path}.providers", "multiple providers is not currently supported")
    yield from _check_providers(tracing.providers, path)
    share = tracing.random_sampling_percentage
    if share is not None and not 0 <= share <= 100:
        message = "randomSamplingPercentage must be in range [0.0, 100.0]"
        yield error(f"{path}.randomSamplingPercentage", message)
    for name, tag in tracing.custom_tags.items():
        here = f"{path}.customTags[{name}]"
        if not name:
            yield error(here, "tag name may not be empty")
        yield from _check_tag(name, tag, here)


def _check_tag(name: str, tag: CustomTag, path: str) -> Faults:
    """The value of a tag, which comes from one place."""
    if tag.literal is not None:
        yield from at(f"{path}.literal.value", None if tag.literal.value else "literal tag value may not be empty")
    elif tag.header is not None:
        yield from at(f"{path}.header.name", None if tag.header.name else "header tag name may not be empty")
    elif tag.environment is not None:
        named = tag.environment.name
        yield from at(f"{path}.environment.name", None if named else "environment tag name may not be empty")
    elif tag.formatter is None:
        yield error(path, f"tag '{name}' may not have a nil value")
