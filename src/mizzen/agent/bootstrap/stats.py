"""Which statistics Envoy keeps, and how their names split into labels.

In: the pod's annotations and ProxyConfig's extra inclusions. Out: the bootstrap's `statsConfig`.
The control plane ends the prefixes of its own clusters and connection managers with `;`, so that names with dots have
an end that an expression can find; the `;` is cut out with the label and never reaches Prometheus.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from mizzen.agent.bootstrap.proxy_config import ProxyConfig
from mizzen.errors import DecodeError

NAMESPACE = "wasmcustom"
"""First part of the names of custom statistics; Envoy prints what follows it without `envoy_` in front."""

_ADDRESS = r"(?:[0-9.]+|\[[0-9a-fA-F_.:]*\])_\d+"

# (label, expression); group 1 is cut out of the name, group 2 is the label's value.
_TAGS = (
    ("cluster_name", r"^cluster\.((.+?);\.)"),
    ("tcp_prefix", r"^tcp\.((.+?);?\.)\w+$"),
    ("response_code", r"_rq(_(\d{3}))$"),
    ("response_code_class", r"_rq(_(\dxx))$"),
    ("http_conn_manager_listener_prefix", r"^listener\..+?\.http\.((.+?);\.)"),
    ("http_conn_manager_prefix", r"^http\.((.+?);\.)"),
    ("listener_address", rf"^listener\.(({_ADDRESS})\.)"),
    ("mongo_prefix", r"^mongo\.((.+?)\.)(?:collection|cmd|cx_|op_|delays_|decoding_)"),
    ("thread_name", r"^server\.((.+?)\.)watchdog_(?:mega_)?miss$"),
    ("cache", r"\bcache\.(.+?)\."),
    ("component", r"\bcomponent\.(.+?)\."),
    ("tag", r"\btag\.(.+?);\."),
    ("wasm_filter", r"\bwasm_filter\.(.+?)\."),
    ("authz_enforce_result", r"\brbac(\.(allowed|denied))$"),
    ("authz_dry_run_action", r"(\.istio_dry_run_(allow|deny)_)"),
    ("authz_dry_run_result", r"(\.shadow_(allowed|denied))$"),
)

_PREFIXES = (
    "reporter=",
    "cluster_manager",
    "listener_manager",
    "server",
    "cluster.xds-grpc",
    "wasm",
    "component",
    "istio",
)
_SUFFIXES = ("rbac.allowed", "rbac.denied", "shadow_allowed", "shadow_denied")
_REGEXPS = (r"vhost\..*\.route\..*",)


def build_stats_config(
    annotations: Mapping[str, str], config: ProxyConfig, *, count_connections: bool
) -> dict[str, Any]:
    """The bootstrap's `statsConfig`; `count_connections` keeps what draining by active connections needs."""
    matcher = config.proxy_stats_matcher
    prefixes = [*_PREFIXES, *_listed(annotations, "Prefixes"), *matcher.inclusion_prefixes]
    suffixes = [*_SUFFIXES, *_listed(annotations, "Suffixes"), *matcher.inclusion_suffixes]
    if count_connections:
        suffixes.append("downstream_cx_active")
    regexps = [*_REGEXPS, *_listed(annotations, "Regexps"), *matcher.inclusion_regexps]
    patterns = [
        *({"prefix": prefix} for prefix in _unique(prefixes)),
        *({"suffix": suffix} for suffix in _unique(suffixes)),
        *({"safeRegex": {"regex": regexp}} for regexp in _unique(regexps)),
    ]
    stats: dict[str, Any] = {
        "useAllDefaultTags": False,
        "statsTags": [{"tagName": name, "regex": regex} for name, regex in _TAGS],
        "statsMatcher": {"inclusionList": {"patterns": patterns}},
    }
    histograms = _histograms(annotations)
    return {**stats, "histogramBucketSettings": histograms} if histograms else stats


def _listed(annotations: Mapping[str, str], kind: str) -> list[str]:
    text = annotations.get(f"sidecar.istio.io/statsInclusion{kind}", "")
    return [part for part in text.split(",") if part]


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _histograms(annotations: Mapping[str, str]) -> list[dict[str, Any]]:
    """Buckets by prefix of the statistic's name; the longest prefix is looked at first."""
    name = "sidecar.istio.io/statsHistogramBuckets"
    text = annotations.get(name, "")
    if not text:
        return []
    try:
        given = {str(prefix): [float(bound) for bound in bounds] for prefix, bounds in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError) as bad:
        raise DecodeError(f"expected a map of prefixes to lists of numbers: {bad}", name) from bad
    return [
        {"match": {"prefix": prefix}, "buckets": given[prefix]}
        for prefix in sorted(given, key=lambda prefix: (-len(prefix), prefix))
    ]


def parse_flush_interval(annotations: Mapping[str, str]) -> dict[str, str]:
    """How often histograms are flushed and unused statistics are dropped, where annotations say so."""
    fields = {
        "statsFlushInterval": annotations.get("sidecar.istio.io/statsFlushInterval", ""),
        "statsEvictionInterval": annotations.get("sidecar.istio.io/statsEvictionInterval", ""),
    }
    for field, text in fields.items():
        if text and not re.fullmatch(r"\d+(\.\d+)?s", text):
            raise DecodeError("expected seconds such as 5s", f"sidecar.istio.io/{field}")
    return {field: text for field, text in fields.items() if text}
