"""Access loggers by sink, dialect and place."""

import msgspec
import pytest

from mizzen import protos
from mizzen.compile.filters import access_logs
from mizzen.compile.filters.access_logs import AccessLog, FileLog, OpenTelemetryLog, ServiceLog


def built(sink, *, dialect="istio", expression="", listener=False):
    build = access_logs.build_listener_log if listener else access_logs.build_access_log
    return protos.to_json(build(AccessLog(sink=sink, expression=expression), dialect))


def test_text_ends_with_a_line_break():
    assert access_logs.text_format("a %PROTOCOL%") == "a %PROTOCOL%\n"
    assert access_logs.text_format("a\n") == "a\n"
    assert access_logs.text_format("") == access_logs.DEFAULT_TEXT
    assert access_logs.DEFAULT_TEXT.endswith("%ROUTE_NAME%\n")


def test_a_file_log_without_format_has_the_default():
    log = built(FileLog(path="/var/log/a"))
    assert log["name"] == "envoy.access_loggers.file"
    assert log["typedConfig"]["logFormat"]["textFormatSource"]["inlineString"] == access_logs.DEFAULT_TEXT


def test_json_keeps_nesting_and_numbers():
    log = built(FileLog(path="/a", json=access_logs.json_format({"a": {"b": 1, "c": "%PROTOCOL%"}})))
    assert log["typedConfig"]["logFormat"]["jsonFormat"] == {"a": {"b": 1, "c": "%PROTOCOL%"}}
    assert log["typedConfig"]["logFormat"]["jsonFormatOptions"] == {}


def test_json_without_labels_has_the_default_fields():
    assert msgspec.json.decode(access_logs.json_format({})) == access_logs.DEFAULT_JSON


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/dev/stdout", "envoy.access_loggers.stdout"),
        ("/dev/stderr", "envoy.access_loggers.stderr"),
        ("/tmp/x", "envoy.access_loggers.file"),
    ],
)
def test_upstream_envoy_writes_to_its_own_descriptors(path, name):
    """It runs under uid 1337 and may not open the pipe behind /dev/stdout."""
    assert built(FileLog(path=path), dialect="envoy")["name"] == name
    assert built(FileLog(path=path))["name"] == "envoy.access_loggers.file"


def test_the_query_is_cut_by_a_formatter_that_must_be_named():
    log = built(FileLog(path="/a", text="%REQ_WITHOUT_QUERY(:PATH)%\n"))
    (formatter,) = log["typedConfig"]["logFormat"]["formatters"]
    assert formatter["name"] == "envoy.formatter.req_without_query"
    assert "formatters" not in built(FileLog(path="/a", text="%REQ(:PATH)%\n"))["typedConfig"]["logFormat"]


def test_a_listener_logs_only_what_no_chain_took():
    assert built(FileLog(path="/a"), listener=True)["filter"] == {"responseFlagFilter": {"flags": ["NR"]}}


def test_an_expression_is_added_to_the_listeners_filter():
    found = built(FileLog(path="/a"), listener=True, expression="response.code >= 500")["filter"]["andFilter"][
        "filters"
    ]
    assert found[0] == {"responseFlagFilter": {"flags": ["NR"]}}
    assert found[1]["extensionFilter"]["typedConfig"]["expression"] == "response.code >= 500"


def test_services_are_named_by_cluster_and_authority():
    log = built(ServiceLog(protocol="tcp", log_name="l", cluster="outbound|9000||als.x", authority="als.x"))
    assert log["name"] == "envoy.tcp_grpc_access_log"
    common = log["typedConfig"]["commonConfig"]
    assert common["grpcService"]["envoyGrpc"] == {"clusterName": "outbound|9000||als.x", "authority": "als.x"}
    assert common["filterStateObjectsToLog"] == list(access_logs.PEER_OBJECTS)


def test_open_telemetry_has_a_body_and_attributes():
    log = built(OpenTelemetryLog(log_name="l", cluster="c", body="b", attributes=(("k", "%PROTOCOL%"),)))
    config = log["typedConfig"]
    assert config["body"] == {"stringValue": "b"}
    assert config["attributes"] == {"values": [{"key": "k", "value": {"stringValue": "%PROTOCOL%"}}]}
    assert config["disableBuiltinLabels"] is True
