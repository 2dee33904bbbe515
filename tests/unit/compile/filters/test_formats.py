"""Formats of logs and tags that upstream Envoy reads; tests/envoy asks an Envoy about the same."""

import pytest

from mizzen import protos
from mizzen.compile.filters import access_logs, formats
from mizzen.compile.filters.access_logs import AccessLog, FileLog, OpenTelemetryLog

GOOD = (
    "",
    "plain text",
    "%%",
    "100%%",
    "%REQ(x):5%",
    "%REQ(:AUTHORITY?X-B)%",
    "%REQ(a)%%RESP(b)%",
    "\n%PROTOCOL%",
    "%START_TIME(%Y-%m-%dT%H:%M:%S.%3f)%",
    "%START_TIME()%",
    "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(16)%",
    "%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%",
    "%ENVIRONMENT(X):2%",
    "%DYNAMIC_METADATA(a:b):10%",
    "%METADATA(ROUTE:a:b)%",
    "%METADATA(LISTENER_FILTER_CHAIN:a)%",
    "%FILTER_STATE(a:FIELD:x)%",
    "%FILTER_STATE(a:PLAIN):5%",
    "%PATH(NQ)%",
    "%PATH(WQ:ORIG_OR_PATH)%",
    "%QUERY_PARAMS(ORIG)%",
    "%QUERY_PARAM(a):3%",
    "%COMMON_DURATION(DS_RX_BEG:DS_RX_END:ms)%",
    "%CEL(request.path)%",
    '%COALESCE({"operators":["PROTOCOL",{"command":"REQ","param":"a"}]})%',
    access_logs.DEFAULT_TEXT,
)
BAD = (
    "%",
    "%%%",
    "100%",
    "%DURATION",
    "%duration%",
    "%NO_SUCH_COMMAND%",
    "%DURATION% %x%",
    "%DURATION:3%",
    "%DURATION(x)%",
    "%START_TIME:5%",
    "%REQ%",
    "%REQ()%",
    "%REQ(a b)%",
    "%REQ(x",
    "%REQ(x)",
    "%REQ(x)y%",
    "%REQ(X?Y?Z)%",
    "%REQ(a\nb)%",
    "%REQ(é)%",
    "%METADATA(X:a)%",
    "%FILTER_STATE(a:b)%",
    "%FILTER_STATE(a:FIELD)%",
    "%PATH(x)%",
    "%QUERY_PARAMS(NQ)%",
    "%ENVIRONMENT()%",
    "%COMMON_DURATION(a:b:c)%",
    "%CEL(()%",
    "%COALESCE(x)%",
    '%COALESCE({"operators":[]})%',
    '%COALESCE({"operators":["NOPE"]})%',
    '%COALESCE({"operators":[{"command":"REQ"}]})%',
)


@pytest.mark.parametrize("text", GOOD)
def test_formats_that_are_read(text: str) -> None:
    assert formats.is_readable(text)


@pytest.mark.parametrize("text", BAD)
def test_formats_that_are_not(text: str) -> None:
    assert not formats.is_readable(text)


def test_only_the_unreadable_parts_of_a_json_format_go() -> None:
    written = {"a": "%PROTOCOL%", "b": "%NOPE%", "n": {"c": "%", "d": 7, "l": ["%PROTOCOL%", "%x%", True]}}
    assert formats.readable_part(written) == {"a": "%PROTOCOL%", "n": {"d": 7, "l": ["%PROTOCOL%", True]}}


def built(sink, dialect):
    return protos.to_json(access_logs.build_access_log(AccessLog(sink=sink), dialect))["typedConfig"]


def test_upstream_envoy_logs_by_default_where_it_cannot_read_the_format() -> None:
    text = FileLog(path="/l", text="%NOPE%\n")
    assert built(text, "envoy")["logFormat"]["textFormatSource"]["inlineString"] == access_logs.DEFAULT_TEXT
    assert built(text, "istio")["logFormat"]["textFormatSource"]["inlineString"] == "%NOPE%\n"
    json = FileLog(path="/l", json='{"a": "%PROTOCOL%", "b": "%NOPE%"}')
    assert built(json, "envoy")["logFormat"]["jsonFormat"] == {"a": "%PROTOCOL%"}
    none_left = FileLog(path="/l", json='{"b": "%NOPE%"}')
    assert built(none_left, "envoy")["logFormat"]["jsonFormat"] == access_logs.DEFAULT_JSON
    otel = OpenTelemetryLog(log_name="x", cluster="c", body="%NOPE%", attributes=(("a", "%"), ("b", "%PROTOCOL%")))
    found = built(otel, "envoy")
    assert found["body"]["stringValue"] == access_logs.DEFAULT_TEXT
    assert [each["key"] for each in found["attributes"]["values"]] == ["b"]
