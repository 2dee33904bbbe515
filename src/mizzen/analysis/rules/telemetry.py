"""Telemetry: access logs without a provider, and a provider that is going away.

In: Telemetries, the mesh config. Out: IST0157, IST0002.
"""

from mizzen.analysis import catalogue
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.api.policy import Telemetry
from mizzen.incremental import Engine, query
from mizzen.model import mesh


@query
def _logs_by_default(db: Engine) -> bool:
    defaults = mesh.mesh_config(db).default_providers
    return defaults is not None and bool(defaults.access_logging)


@query
def check_providers(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Access logs that nobody writes."""
    found: Telemetry | None = db.input(key)
    if found is None or _logs_by_default(db):
        return ()
    return tuple(
        report(catalogue.INVALID_TELEMETRY_PROVIDER, key, key.name, key.namespace, path=f"spec.accessLogging[{index}]")
        for index, logging in enumerate(found.spec.access_logging)
        if not logging.providers and not logging.disabled
    )


@query
def _lightstep_providers(db: Engine) -> frozenset[str]:
    return frozenset(each.name for each in mesh.mesh_config(db).extension_providers if each.lightstep is not None)


@query
def check_lightstep(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Traces to Lightstep's own protocol."""
    found: Telemetry | None = db.input(key)
    if found is None:
        return ()
    return tuple(
        report(
            catalogue.DEPRECATED,
            key,
            f"The Lightstep provider {provider.name} is deprecated, please migrate to OpenTelemetry provider.",
            path=f"spec.tracing[{index}].providers",
        )
        for index, tracing in enumerate(found.spec.tracing)
        for provider in tracing.providers
        if provider.name in _lightstep_providers(db)
    )
