"""The tracing block of an HTTP connection manager.

In: `Tracing`, what the mesh config, the proxy's own config and Telemetry decide for one side of a proxy. Out: the
message, without a provider where the tracer is the bootstrap's own. Golden cases: base, telemetry/tracing-legacy,
telemetry/tracing-providers, telemetry/tracing-tags.
"""

import functools
from typing import Any, Literal

import msgspec

from mizzen import protos
from mizzen.compile.filters.tracers import Tracer, build_tracer

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")

_DRY_RUN = "istio.authorization.dry_run"
_RBAC = "envoy.filters.http.rbac"


class Tag(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A custom tag of every span: where its value comes from, and what it is when that yields nothing."""

    name: str
    kind: Literal["literal", "environment", "header", "formatter"]
    value: str
    default: str = ""


class Tracing(msgspec.Struct, frozen=True, kw_only=True):
    """How requests of one side are traced."""

    sampling: float = 1.0
    """Per cent of requests that start a trace."""
    tags: tuple[Tag, ...] = ()
    dry_run_tags: bool = True
    """Whether spans carry the verdicts of dry-run policies."""
    max_path_tag_length: int = 0
    tracer: Tracer | None = None
    """None means the bootstrap's tracer."""
    spawn_upstream_span: bool = False
    no_context_propagation: bool = False


def _dry_run_tags() -> dict[str, dict[str, Any]]:
    paths = {
        "allow_policy.name": "istio_dry_run_allow_shadow_effective_policy_id",
        "allow_policy.result": "istio_dry_run_allow_shadow_engine_result",
        "deny_policy.name": "istio_dry_run_deny_shadow_effective_policy_id",
        "deny_policy.result": "istio_dry_run_deny_shadow_engine_result",
    }
    return {
        f"{_DRY_RUN}.{name}": {
            "metadata": {"kind": {"request": {}}, "metadata_key": {"key": _RBAC, "path": [{"key": path}]}}
        }
        for name, path in paths.items()
    }


def _tag(tag: Tag) -> dict[str, Any]:
    match tag.kind:
        case "literal":
            return {"literal": {"value": tag.value}}
        case "environment":
            return {"environment": {"name": tag.value, "default_value": tag.default}}
        case "header":
            return {"request_header": {"name": tag.value, "default_value": tag.default}}
        case "formatter":
            return {"value": tag.value}


@functools.lru_cache(maxsize=1024)
def build_tracing(tracing: Tracing) -> Any:
    """The `HttpConnectionManager.Tracing` message; tags stand sorted by name."""
    tags = {tag.name: _tag(tag) for tag in tracing.tags}
    if tracing.dry_run_tags:
        tags |= _dry_run_tags()
    fields: dict[str, Any] = {}
    if tracing.max_path_tag_length:
        fields["max_path_tag_length"] = {"value": tracing.max_path_tag_length}
    if tracing.spawn_upstream_span:
        fields["spawn_upstream_span"] = {"value": True}
    if tracing.no_context_propagation:
        fields["no_context_propagation"] = True
    message = _hcm_v3.HttpConnectionManager.Tracing(
        client_sampling={"value": 100},
        random_sampling={"value": tracing.sampling},
        overall_sampling={"value": 100},
        custom_tags=[{"tag": name, **tags[name]} for name in sorted(tags)],
        **fields,
    )
    if tracing.tracer is not None:
        message.provider.CopyFrom(build_tracer(tracing.tracer))
    return message
