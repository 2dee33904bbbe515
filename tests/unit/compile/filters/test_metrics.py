"""istio.stats and the loggers that count the same."""

import pytest

from mizzen import protos
from mizzen.agent.bootstrap import node
from mizzen.agent.status import standard_metrics
from mizzen.api.scalars import Duration
from mizzen.compile.filters import metric_labels, metric_loggers, metrics, peers
from mizzen.compile.filters.metrics import MetricOverride, Metrics

NONE = Metrics()
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


def http_tags(side, metrics=NONE, *, mutual_tls=False, name="istio_requests_total"):
    return stats(metric_loggers.build_http_logger(side, metrics, mutual_tls=mutual_tls))[name]


def changed(*removed, name="requests_total", **set_to):
    return Metrics(overrides=(MetricOverride(name=name, dimensions=tuple(sorted(set_to.items())), removed=removed),))


WORKLOAD = ("workload", "workload_namespace", "canonical_service", "canonical_revision", "app", "version", "cluster")
ISTIOS_LABELS = {
    "reporter",
    *(f"source_{w}" for w in WORKLOAD),
    *(f"destination_{w}" for w in WORKLOAD),
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


@pytest.mark.parametrize("side", ["inbound", "outbound", "gateway"])
@pytest.mark.parametrize("mutual_tls", [True, False])
def test_loggers_carry_istios_labels_by_themselves_or_in_records_that_the_agent_reads(side, mutual_tls):
    for http in (True, False):
        found = set()
        for group in metric_labels.groups(side, http=http, mutual_tls=mutual_tls):
            found |= group.labels.keys()
            if group.record:
                assert standard_metrics.RECORDS[group.record] == tuple(group.labels)
            assert group.whole or all(group.labels.values())
        assert found == ISTIOS_LABELS - (set() if http else {"response_code", "grpc_response_status"})


def test_records_of_own_facts_have_the_order_of_the_environment():
    assert tuple(fact.label for fact in peers.FACTS) == standard_metrics.PEER
    pod = node.Pod(name="p", namespace="n", domain="d", addresses=("10.0.0.1",))
    variables = node.build_identity_variables(pod, {"LABELS": {}, "WORKLOAD_NAME": "w"})
    assert variables[peers.RECORD_VARIABLE] == ";".join(variables[fact.variable] for fact in peers.FACTS)


def test_a_plain_chain_believes_nobody():
    tags = http_tags("inbound")
    assert (tags["mz_source"], tags["source_principal"]) == (";", "unknown")
    assert tags["mz_http"].endswith(";none")
    split = http_tags("inbound", changed("source_app"))
    assert {value for label, value in split.items() if label.startswith("source_")} == {"unknown"}
    assert http_tags("inbound", mutual_tls=True)["mz_source"] == "%FILTER_STATE(mizzen.peer:PLAIN)%"


def test_only_the_group_of_a_changed_label_stands_by_itself():
    found = http_tags("outbound", changed("destination_version"))
    assert "mz_destination" not in found
    assert {label for label in found if label.startswith("destination_")} >= {
        f"destination_{w}" for w in WORKLOAD if w != "version"
    }
    assert "destination_version" not in found
    assert {"mz_http", "mz_source", "mz_service"} <= found.keys()


def test_loggers_follow_overrides():
    found = stats(metric_loggers.build_http_logger("outbound", CHANGED, mutual_tls=False))
    assert "istio_request_bytes" not in found
    assert found["istio_requests_total"]["zone"] == "%CEL(xds.node.metadata['ZONE'])%"
    assert "source_app" not in found["istio_requests_total"]
    assert found["istio_requests_total"]["source_workload"] == "%ENVIRONMENT(MZ_WORKLOAD)%"
    assert found["istio_response_bytes"]["mz_source"] == "%ENVIRONMENT(MZ_PEER)%"


def test_a_label_may_take_another_value():
    assert http_tags("outbound", changed(reporter="'me'"))["reporter"] == "me"
    assert http_tags("outbound", changed(destination_service="request.host"))["destination_service"] == (
        "%CEL(request.host)%"
    )


@pytest.mark.parametrize("constant", ["'b'", '"b"', " 'b' "])
def test_constants_are_not_evaluated(constant):
    assert http_tags("outbound", changed(bank=constant))["bank"] == "b"


@pytest.mark.parametrize("dear", ["'%PROTOCOL%'", "'a\\'b'", "'a' + 'b'"])
def test_no_expression_becomes_a_format(dear):
    assert http_tags("outbound", changed(bank=dear))["bank"].startswith("%CEL(")


def test_an_expression_that_cannot_be_read_changes_nothing():
    assert http_tags("outbound", changed(bank="'", reporter="(")) == http_tags("outbound")
    assert http_tags("outbound", Metrics(overrides=(MetricOverride(name="requests_total", dimensions=(("", "'x'"),)),)))


def test_a_peers_facts_come_one_by_one_only_where_one_is_changed():
    assert not Metrics().changes_any(metric_labels.SOURCE)
    assert changed("source_app").changes_any(metric_labels.SOURCE)
    assert changed(source_version="'x'").changes_any(metric_labels.SOURCE)
    assert not changed("destination_app").changes_any(metric_labels.SOURCE)


def test_all_loggers_share_their_series_over_updates():
    for logger in (
        metric_loggers.build_http_logger("outbound", Metrics(), mutual_tls=False),
        *metric_loggers.build_tcp_loggers("inbound", Metrics(), mutual_tls=True),
    ):
        assert protos.to_json(logger)["typedConfig"]["statsScope"] == {"prefix": "wasmcustom", "sharingName": "istio"}


def test_a_tcp_peer_is_known_by_its_certificate_and_the_agent_leaves_out_what_is_changed():
    def source(metrics):
        opened, _ = metric_loggers.build_tcp_loggers("inbound", metrics, mutual_tls=True)
        found = stats(opened)["istio_tcp_connections_opened_total"]
        return {k: v for k, v in found.items() if k.startswith(("mz_source", "mz_without", "source_"))}

    san = {"mz_source": "%DOWNSTREAM_PEER_OTHERNAME_SAN%", "source_principal": "%DOWNSTREAM_PEER_URI_SAN%"}
    assert source(NONE) == san
    without = changed("source_version", "destination_app", name="tcp_connections_opened_total", source_app="'x'")
    assert source(without) == san | {"mz_without": "source_app;source_version", "source_app": "x"}
    assert standard_metrics.WITHOUT == metric_labels.WITHOUT
