"""Timeouts of routes in both dialects."""

from mizzen.compile.filters.timeouts import build_timeouts


def test_istio_holds_grpc_calls_to_their_deadline_within_the_routes_timeout():
    assert build_timeouts({"seconds": 5}, "istio") == {"timeout": {"seconds": 5}, "max_grpc_timeout": {"seconds": 5}}
    assert build_timeouts({}, "istio") == {"timeout": {}, "max_grpc_timeout": {}}


def test_upstream_envoy_holds_them_to_their_deadline_where_no_timeout_is_set():
    unlimited = {"timeout": {}, "max_stream_duration": {"grpc_timeout_header_max": {}}}
    assert build_timeouts({}, "envoy") == unlimited


def test_upstream_envoy_keeps_a_timeout_that_is_set():
    assert build_timeouts({"seconds": 5}, "envoy") == {"timeout": {"seconds": 5}}
