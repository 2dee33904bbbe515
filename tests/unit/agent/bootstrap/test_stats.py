"""Statistics: the labels cut out of names, and what is kept."""

import re

import pytest

from mizzen.agent.bootstrap import stats
from mizzen.agent.bootstrap.proxy_config import parse_proxy_config
from mizzen.errors import DecodeError


def cut(name: str) -> tuple[str, dict[str, str]]:
    """The name and labels that Envoy makes of a statistic's name: each expression sees the whole name."""
    labels: dict[str, str] = {}
    removed: list[tuple[int, int]] = []
    for tag in build()["statsTags"]:
        found = re.search(tag["regex"], name)
        if found:
            groups = found.groups()
            labels[tag["tagName"]] = groups[1] if len(groups) > 1 else groups[0]
            removed.append(found.span(1))
    kept = "".join(c for i, c in enumerate(name) if not any(start <= i < end for start, end in removed))
    return kept, labels


def build(annotations=(), config="", count_connections=False):
    return stats.build_stats_config(dict(annotations), parse_proxy_config(config), count_connections=count_connections)


def patterns(**given) -> list[dict]:
    return build(**given)["statsMatcher"]["inclusionList"]["patterns"]


@pytest.mark.parametrize(
    ("name", "kept", "labels"),
    [
        (
            "cluster.outbound|80|v1|cart.shop.svc.cluster.local;.upstream_rq_503",
            "cluster.upstream_rq",
            {"cluster_name": "outbound|80|v1|cart.shop.svc.cluster.local", "response_code": "503"},
        ),
        ("cluster.xds-grpc;.upstream_cx_total", "cluster.upstream_cx_total", {"cluster_name": "xds-grpc"}),
        (
            "http.inbound_0.0.0.0_8080;.downstream_rq_2xx",
            "http.downstream_rq",
            {"http_conn_manager_prefix": "inbound_0.0.0.0_8080", "response_code_class": "2xx"},
        ),
        (
            "http.inbound_0.0.0.0_8080;.rbac.istio_dry_run_allow_.shadow_denied",
            "http.rbac",
            {
                "http_conn_manager_prefix": "inbound_0.0.0.0_8080",
                "authz_dry_run_action": "allow",
                "authz_dry_run_result": "denied",
            },
        ),
        ("tcp.10.0.0.1_9000.rbac.allowed", None, {"authz_enforce_result": "allowed"}),
        (
            "tcp.outbound|9000||ledger.pay.svc.cluster.local.downstream_cx_total",
            "tcp.downstream_cx_total",
            {"tcp_prefix": "outbound|9000||ledger.pay.svc.cluster.local"},
        ),
        ("tcp.InboundPassthroughCluster;.cx", "tcp.cx", {"tcp_prefix": "InboundPassthroughCluster"}),
        (
            "listener.0.0.0.0_15006.http.inbound_0.0.0.0_8080;.downstream_rq_2xx",
            "listener.http.downstream_rq",
            {
                "listener_address": "0.0.0.0_15006",
                "http_conn_manager_listener_prefix": "inbound_0.0.0.0_8080",
                "response_code_class": "2xx",
            },
        ),
        ("listener.[__]_15006.downstream_cx_total", "listener.downstream_cx_total", {"listener_address": "[__]_15006"}),
        ("mongo.orders.cmd.find.total", "mongo.cmd.find.total", {"mongo_prefix": "orders"}),
        ("server.worker_1.watchdog_miss", "server.watchdog_miss", {"thread_name": "worker_1"}),
        ("server.live", "server.live", {}),
        ("component.proxy.tag.1.2.3;.istio_build", None, {"component": "proxy", "tag": "1.2.3"}),
    ],
)
def test_labels_are_cut_out_of_names(name: str, kept: str | None, labels: dict[str, str]) -> None:
    found = cut(name)
    assert {key: found[1][key] for key in labels} == labels
    if kept is not None:
        assert found == (kept, labels)


def test_extra_inclusions_follow_istios_and_come_once() -> None:
    annotations = {
        "sidecar.istio.io/statsInclusionPrefixes": "cluster.outbound,server",
        "sidecar.istio.io/statsInclusionSuffixes": "upstream_cx_total",
        "sidecar.istio.io/statsInclusionRegexps": "http.*rq",
    }
    config = "proxyStatsMatcher: {inclusionPrefixes: [cluster.outbound, tcp]}"
    found = patterns(annotations=annotations, config=config)
    assert {"prefix": "istio"} in found
    assert {"suffix": "rbac.allowed"} in found
    assert found.count({"prefix": "cluster.outbound"}) == found.count({"prefix": "server"}) == 1
    assert {"prefix": "tcp"} in found
    assert {"suffix": "upstream_cx_total"} in found
    assert {"safeRegex": {"regex": "http.*rq"}} in found


def test_active_connections_are_counted_only_where_draining_needs_them() -> None:
    wanted = {"suffix": "downstream_cx_active"}
    assert wanted not in patterns()
    assert wanted in patterns(count_connections=True)


def test_histogram_buckets_by_the_longest_prefix_first() -> None:
    name = "sidecar.istio.io/statsHistogramBuckets"
    found = build({name: '{"istio": [1, 5], "istio_request": [0.5, 10]}'})["histogramBucketSettings"]
    assert found == [
        {"match": {"prefix": "istio_request"}, "buckets": [0.5, 10.0]},
        {"match": {"prefix": "istio"}, "buckets": [1.0, 5.0]},
    ]
    assert "histogramBucketSettings" not in build()
    for text in ("[1]", '{"a": 1}', "{"):
        with pytest.raises(DecodeError, match=name):
            build({name: text})


def test_flush_intervals_are_seconds() -> None:
    annotations = {"sidecar.istio.io/statsFlushInterval": "10s"}
    assert stats.parse_flush_interval(annotations) == {"statsFlushInterval": "10s"}
    with pytest.raises(DecodeError, match="statsEvictionInterval"):
        stats.parse_flush_interval({"sidecar.istio.io/statsEvictionInterval": "1m"})
