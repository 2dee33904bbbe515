"""What Envoy's protobuf definitions demand of messages."""

from typing import Any

import pytest
from envoy_patches import HTTP, TYPE, fault, manager, message, rbac, tcp_proxy

from mizzen.compile.patches.refusals import constraints

ROUTE = "envoy.config.route.v3.Route"
RATE_LIMIT = "envoy.config.route.v3.RateLimit"
REDIRECT_POLICY = "envoy.config.route.v3.InternalRedirectPolicy"
HEADER = "envoy.config.core.v3.HeaderValue"
STRUCT = TYPE + "udpa.type.v1.TypedStruct"
ADDRESS = {"socketAddress": {"address": "::", "portValue": 1}}


def _violation(kind: str, /, **fields: Any) -> str | None:
    return constraints.violation(message(kind, **fields))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("cluster", {"name": "x", "type": "STATIC", "connectTimeout": "0.1s"}),
        (ROUTE, {"match": {"prefix": "/"}, "route": {"cluster": "c"}}),
        (ROUTE, {"match": {"prefix": "/"}, "route": {"weightedClusters": {"clusters": [{"name": "c", "weight": 1}]}}}),
        ("listener", {"address": ADDRESS, "filterChains": [{"filters": [rbac(), manager(fault())]}]}),
        (RATE_LIMIT, {"actions": [{"remoteAddress": {}}], "hitsAddend": {"format": "%BYTES_RECEIVED%"}}),
        (RATE_LIMIT, {"actions": [{"remoteAddress": {}}], "hitsAddend": {"number": 3}}),
        (HEADER, {"key": "x", "value": "y"}),
    ],
)
def test_what_is_well_formed_has_no_violation(kind: str, fields: dict[str, Any]):
    assert _violation(kind, **fields) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": ""}, "name: must not be empty"),
        ({"connectTimeout": "0s"}, "connect_timeout: must be greater than 0s"),
        ({"dnsRefreshRate": "0.001s"}, "dns_refresh_rate: must be greater than 0.001s"),
        ({"type": 99}, "type: 99 is no value of DiscoveryType"),
        ({"loadAssignment": {}}, "load_assignment.cluster_name: must not be empty"),
        (
            {"outlierDetection": {"enforcingConsecutive5xx": 101}},
            "outlier_detection.enforcing_consecutive_5xx: must be at most 100",
        ),
        (
            {"healthChecks": [{"timeout": "1s", "interval": "1s", "healthyThreshold": 1, "unhealthyThreshold": 1}]},
            "health_checks[0].health_checker: one of its members is required",
        ),
        (
            {"healthChecks": [{"interval": "1s", "healthyThreshold": 1, "tcpHealthCheck": {}}]},
            "health_checks[0].timeout: required",
        ),
        (
            {"circuitBreakers": {"thresholds": [{"retryBudget": {"budgetPercent": {"value": 101}}}]}},
            "circuit_breakers.thresholds[0].retry_budget.budget_percent.value: must be at most 100",
        ),
        (
            {"loadAssignment": {"clusterName": "x", "endpoints": [{"priority": 129}]}},
            "load_assignment.endpoints[0].priority: must be at most 128",
        ),
        ({"metadata": {"filterMetadata": {"": {}}}}, "metadata.filter_metadata[]: must not be empty"),
    ],
)
def test_a_cluster_that_is_refused(fields: dict[str, Any], reason: str):
    assert _violation("cluster", **{"name": "x", "type": "STATIC", **fields}) == reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"match": {}}, "match.path_specifier: one of its members is required"),
        (
            {"match": {"safeRegex": {"regex": "("}}},
            "match.safe_regex.regex: '(' is not a regular expression that Envoy takes",
        ),
        ({"match": {"safeRegex": {}}}, "match.safe_regex.regex: must not be empty"),
        ({"match": {"pathSeparatedPrefix": "/a?"}}, "match.path_separated_prefix: '/a?' does not match ^[^?#]+[^?#/]$"),
        ({"match": {"prefix": "/", "headers": [{}]}}, "match.headers[0].name: must not be empty"),
        ({"requestHeadersToRemove": ["a\nb"]}, "request_headers_to_remove[0]: 'a\\nb' cannot stand in an HTTP header"),
        (
            {"requestHeadersToAdd": [{"header": {"key": "x" * 16385}}]},
            "request_headers_to_add[0].header.key: must have at most 16384 bytes",
        ),
        (
            {"route": {"weightedClusters": {"clusters": []}}},
            "route.weighted_clusters.clusters: must have at least 1 elements",
        ),
        (
            {"route": {"cluster": "c", "retryPolicy": {"retryBackOff": {}}}},
            "route.retry_policy.retry_back_off.base_interval: required",
        ),
        (
            {"typedPerFilterConfig": {"b": {"@type": HTTP + "buffer.v3.Buffer"}}},
            "typed_per_filter_config[b].max_request_bytes: required",
        ),
    ],
)
def test_a_route_that_is_refused(fields: dict[str, Any], reason: str):
    assert _violation(ROUTE, **{"match": {"prefix": "/"}, "route": {"cluster": "c"}, **fields}) == reason


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        (
            RATE_LIMIT,
            {"actions": [{"remoteAddress": {}}], "hitsAddend": {"format": "BYTES"}},
            "hits_addend.format: must begin with '%' and end with '%'",
        ),
        (RATE_LIMIT, {"actions": [{"remoteAddress": {}}], "stage": 11}, "stage: must be at most 10"),
        (
            RATE_LIMIT,
            {"actions": [{"dynamicMetadata": {}}]},
            "actions[0].dynamic_metadata: deprecated, and no longer accepted",
        ),
        (
            REDIRECT_POLICY,
            {"responseHeadersToCopy": ["a", "b", "a"]},
            "response_headers_to_copy: holds an element twice",
        ),
        (HEADER, {"key": "x", "value": "a\u0000b"}, "value: 'a\\x00b' cannot stand in an HTTP header"),
        (
            HEADER,
            {"key": "x", "rawValue": "YWFh" * 5462},
            "raw_value: must have at most 16384 bytes",
        ),
        (
            "envoy.config.core.v3.SchemeHeaderTransformation",
            {"schemeToOverwrite": "ftp"},
            "scheme_to_overwrite: 'ftp' is none of the allowed values",
        ),
        (
            "envoy.extensions.transport_sockets.tls.v3.SubjectAltNameMatcher",
            {"matcher": {"exact": "x"}},
            "san_type: 0 is none of the allowed values",
        ),
        (
            "envoy.config.listener.v3.ListenerFilterChainMatchPredicate",
            {"anyMatch": False},
            "any_match: must be true",
        ),
        (
            "envoy.config.accesslog.v3.ResponseFlagFilter",
            {"flags": ["NR", "XX"]},
            "flags[1]: 'XX' is none of the allowed values",
        ),
        (
            "xds.type.matcher.v3.Matcher.MatcherTree.MatchMap",
            {},
            "map: must have at least 1 elements",
        ),
        (
            "envoy.service.rate_limit_quota.v3.BucketId",
            {"bucket": {"a": ""}},
            "bucket[a]: must not be empty",
        ),
        (
            "envoy.config.common.matcher.v3.HttpGenericBodyMatch.GenericTextMatch",
            {"binaryMatch": ""},
            "binary_match: must not be empty",
        ),
        (
            "envoy.extensions.filters.http.api_key_auth.v3.KeySource",
            {"cookie": "x" * 1025},
            "cookie: must have at most 1024 characters",
        ),
        (
            "envoy.config.listener.v3.QuicProtocolOptions",
            {"saveCmsgConfig": [{"level": 1}, {"level": 2}]},
            "save_cmsg_config: must have at most 1 elements",
        ),
        ("envoy.config.core.v3.TypedExtensionConfig", {"name": "x"}, "typed_config: required"),
        ("envoy.config.core.v3.RateLimitSettings", {"fillRate": 0}, "fill_rate: must be greater than 0"),
        ("envoy.config.listener.v3.FilterChainMatch", {"destinationPort": 0}, "destination_port: must be at least 1"),
    ],
)
def test_other_messages_that_are_refused(kind: str, fields: dict[str, Any], reason: str):
    assert _violation(kind, **fields) == reason


def test_what_stands_in_an_any_is_checked_as_its_type():
    found = _violation("listener", address=ADDRESS, filterChains=[{"filters": [rbac(statPrefix="")]}])
    assert found == "filter_chains[0].filters[0].typed_config.stat_prefix: must not be empty"


def _struct(name: str, **value: Any) -> str | None:
    config = {"@type": STRUCT, "typeUrl": TYPE + name, "value": value}
    return _violation("envoy.config.listener.v3.Filter", name="f", typedConfig=config)


def test_what_stands_in_a_typed_struct_is_checked_as_its_type():
    kind = "envoy.extensions.filters.network.rbac.v3.RBAC"
    assert _struct(kind, stat_prefix="x", of_tomorrow=1) is None
    assert _struct(kind) == "typed_config.stat_prefix: must not be empty"
    wrong = _struct(kind, stat_prefix={"a": 1})
    assert wrong is not None
    assert wrong.startswith(f"typed_config.not a {kind}")


def test_a_type_that_is_not_known_is_left_to_envoy():
    assert _struct("no.such.Type", anything=1) is None
    assert _violation("envoy.config.listener.v3.Filter", name="f", typedConfig={}) is None
    packed = message("envoy.config.listener.v3.Filter", name="f")
    packed.typed_config.type_url = TYPE + "no.such.Type"
    assert constraints.violation(packed) is None


def test_the_prefix_that_a_scope_stands_in_for_may_be_empty():
    log = {"name": "s", "typedConfig": {"@type": TYPE + "envoy.extensions.access_loggers.stats.v3.Config"}}
    assert _violation("envoy.config.listener.v3.Filter", **tcp_proxy(accessLog=[log])) is None
