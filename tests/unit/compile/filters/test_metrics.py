"""istio.stats and the loggers that count the same."""

import pytest

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters import metric_loggers, metrics
from mizzen.compile.filters.metrics import MetricOverride, Metrics

CHANGED = Metrics(
    overrides=(
        MetricOverride(name="requests_total", dimensions=(("zone", "node.metadata['ZONE']"),), removed=("source_app",)),
        MetricOverride(name="request_bytes", drop=True),
    ),
    reporting_interval=Duration.of(seconds=10),
)


def stats(logger):
    config = protos.to_json(logger)["typedConfig"]
    entries = [*config.get("counters", []), *config.get("histograms", [])]
    return {e["stat"]["name"]: {t["name"]: t.get("valueFormat", "") for t in e["stat"]["tags"]} for e in entries}


@pytest.mark.parametrize(("side", "fallback_off"), [("outbound", False), ("inbound", True), ("gateway", True)])
def test_only_outbound_may_take_the_host_header_for_the_service(side, fallback_off):
    config = protos.to_json(metrics.build_http_filter(side, Metrics()))["typedConfig"]
    assert config.get("disableHostHeaderFallback", False) is fallback_off


def test_overrides_reach_http_and_tcp_alike():
    for build in (metrics.build_http_filter, metrics.build_network_filter):
        config = protos.to_json(build("outbound", CHANGED))["typedConfig"]
        assert config["tcpReportingDuration"] == "10s"
        assert config["metrics"] == [
            {
                "name": "requests_total",
                "dimensions": {"zone": "node.metadata['ZONE']"},
                "tagsToRemove": ["source_app"],
            },
            {"name": "request_bytes", "drop": True},
        ]


def test_loggers_carry_istios_names():
    http = stats(metric_loggers.build_http_logger("outbound", Metrics(), mutual_tls=False))
    opened, closed = metric_loggers.build_tcp_loggers("outbound", Metrics(), mutual_tls=False)
    assert set(http) == {
        "istio_requests_total",
        "istio_request_duration_milliseconds",
        "istio_request_bytes",
        "istio_response_bytes",
    }
    assert set(stats(opened)) == {"istio_tcp_connections_opened_total"}
    assert set(stats(closed)) == {
        "istio_tcp_connections_closed_total",
        "istio_tcp_sent_bytes_total",
        "istio_tcp_received_bytes_total",
    }


def test_loggers_carry_istios_labels():
    labels = list(
        stats(metric_loggers.build_http_logger("inbound", Metrics(), mutual_tls=True))["istio_requests_total"]
    )
    workload = (
        "workload",
        "workload_namespace",
        "canonical_service",
        "canonical_revision",
        "app",
        "version",
        "cluster",
    )
    assert set(labels) == {
        "reporter",
        *(f"source_{w}" for w in workload),
        *(f"destination_{w}" for w in workload),
        "source_principal",
        "destination_principal",
        "destination_service",
        "destination_service_name",
        "destination_service_namespace",
        "request_protocol",
        "response_code",
        "grpc_response_status",
        "response_flags",
        "connection_security_policy",
    }
    tcp = stats(metric_loggers.build_tcp_loggers("inbound", Metrics(), mutual_tls=True)[0])
    assert set(labels) - set(tcp["istio_tcp_connections_opened_total"]) == {"response_code", "grpc_response_status"}


def test_a_plain_chain_believes_nobody():
    tags = stats(metric_loggers.build_http_logger("inbound", Metrics(), mutual_tls=False))["istio_requests_total"]
    assert tags["source_workload"] == tags["source_principal"] == "unknown"
    assert tags["connection_security_policy"] == "none"


def test_loggers_follow_overrides():
    found = stats(metric_loggers.build_http_logger("outbound", CHANGED, mutual_tls=False))
    assert "istio_request_bytes" not in found
    assert found["istio_requests_total"]["zone"] == "%CEL(xds.node.metadata['ZONE'])%"
    assert "source_app" not in found["istio_requests_total"]
    assert "source_app" in found["istio_response_bytes"]


def test_all_loggers_share_their_series_over_updates():
    for logger in (
        metric_loggers.build_http_logger("outbound", Metrics(), mutual_tls=False),
        *metric_loggers.build_tcp_loggers("inbound", Metrics(), mutual_tls=True),
    ):
        assert protos.to_json(logger)["typedConfig"]["statsScope"] == {"prefix": "wasmcustom", "sharingName": "istio"}
