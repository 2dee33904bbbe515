"""ProxyConfig: Istio's defaults, later texts over earlier ones, the whole kept for the node."""

import pytest

from mizzen.agent.bootstrap import proxy_config
from mizzen.errors import DecodeError
from mizzen.inject import mesh


def test_defaults_are_istios() -> None:
    config = proxy_config.parse_proxy_config()
    assert (config.status_port, config.proxy_admin_port, config.discovery_address) == (
        15020,
        15000,
        "istiod.istio-system.svc:15012",
    )
    assert (config.drain_seconds, config.termination_drain_seconds) == (45, 5)
    assert dict(config.raw) == dict(proxy_config.DEFAULTS)


def test_what_the_injector_leaves_out_is_what_the_agent_takes_for_granted() -> None:
    assert dict(mesh.BUILT_IN) == dict(proxy_config.DEFAULTS)


def test_later_text_wins_and_objects_merge_field_by_field() -> None:
    config = proxy_config.parse_proxy_config(
        "proxyMetadata: {A: '1', B: '1'}\ntracing: {zipkin: {address: z:1}}\nconcurrency: 2",
        '{"proxyMetadata": {"B": "2"}, "tracing": {"sampling": 5}, "concurrency": 0}',
        "",
    )
    assert dict(config.proxy_metadata) == {"A": "1", "B": "2"}
    assert config.concurrency == 0
    assert config.raw["tracing"] == {"zipkin": {"address": "z:1"}, "sampling": 5}


def test_null_takes_a_field_back() -> None:
    config = proxy_config.parse_proxy_config("concurrency: 2", "concurrency: null")
    assert config.concurrency is None
    assert "concurrency" not in config.raw


def test_lists_are_replaced() -> None:
    config = proxy_config.parse_proxy_config(
        "proxyStatsMatcher: {inclusionPrefixes: [a, b]}", "proxyStatsMatcher: {inclusionPrefixes: [c]}"
    )
    assert config.proxy_stats_matcher.inclusion_prefixes == ("c",)


def test_fields_of_the_control_plane_are_kept_unjudged() -> None:
    config = proxy_config.parse_proxy_config("gatewayTopology: {numTrustedProxies: 2}")
    assert config.raw["gatewayTopology"] == {"numTrustedProxies": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("statusPort: high", "status"),
        ("[1, 2]", "expected an object"),
        ("a: [", "ProxyConfig"),
        ("terminationDrainDuration: soon", "'soon' is not a duration"),
        ("proxyMetadata: {A: {B: C}}", "ProxyConfig"),
    ],
)
def test_what_does_not_decode_says_where(text: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        proxy_config.parse_proxy_config(text)
