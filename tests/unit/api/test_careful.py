from typing import Any

import pytest

from mizzen.api.careful import read_carefully
from mizzen.api.kube.data import Secret
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.message import Message
from mizzen.api.meta import ObjectMeta
from mizzen.api.networking.destination_rule import DestinationRuleSpec
from mizzen.api.networking.traffic_policy import OutlierDetection, TCPSettings
from mizzen.api.networking.virtual_service import HTTPBody, HTTPRoute, StringMatch
from mizzen.api.policy import JWTRule
from mizzen.api.scalars import Duration


def faults(value: dict[Any, Any], cls: type[Message], *, protobuf_json: bool = False) -> list[tuple[str, str]]:
    """The Problems of data, as (path, message)."""
    _, problems = read_carefully(value, cls, protobuf_json=protobuf_json)
    return [(problem.path, problem.message) for problem in problems]


def read(value: dict[Any, Any], cls: type[Message], *, protobuf_json: bool = False) -> Any:
    """The Struct of data without a Problem."""
    read, problems = read_carefully(value, cls, protobuf_json=protobuf_json)
    assert problems == ()
    return read


def test_null_is_absent() -> None:
    assert read({"name": None, "match": None, "timeout": None, "corsPolicy": {"maxAge": None}}, HTTPRoute) == read(
        {"corsPolicy": {}}, HTTPRoute
    )


def test_a_label_without_a_value_is_empty_and_a_null_entry_absent() -> None:
    assert read({"labels": {"a": None}}, ObjectMeta).labels == {"a": ""}
    assert read({"match": [{"headers": {"x": None}}]}, HTTPRoute).match[0].headers == {}


def test_null_in_a_list_is_a_fault() -> None:
    assert faults({"audiences": [None]}, JWTRule) == [("audiences[0]", "expected string, got null")]


def test_an_empty_string_in_a_oneof_is_present() -> None:
    assert read({"exact": ""}, StringMatch) == StringMatch(exact="")
    assert read({"exact": ""}, StringMatch) != read({}, StringMatch)


def test_protobuf_names_are_taken() -> None:
    written = {"per_try_timeout": "2s"}
    assert read({"retries": written}, HTTPRoute).retries.per_try_timeout == Duration.of(seconds=2)
    assert read({"jwks_uri": "https://a"}, JWTRule).jwks_uri == "https://a"
    assert read({"consecutive_5xx_errors": 3}, OutlierDetection).consecutive_5xx_errors == 3


def test_a_field_that_is_written_twice_counts_in_camel_case() -> None:
    value, problems = read_carefully({"jwks_uri": "old", "jwksUri": "new"}, JWTRule)
    assert value.jwks_uri == "new"
    assert [(problem.level, problem.code, problem.path) for problem in problems] == [
        ("warning", "repeated-field", "jwks_uri")
    ]


def test_kubernetes_has_no_second_spelling() -> None:
    assert faults({"generate_name": "a"}, ObjectMeta) == [
        ("generate_name", "unknown field; did you mean generateName?")
    ]


def test_enums_are_taken_by_number_too() -> None:
    spec = read({"trafficPolicy": {"loadBalancer": {"simple": 2}, "tls": {"mode": 0}}}, DestinationRuleSpec)
    assert spec.traffic_policy.load_balancer.simple == "RANDOM"
    assert spec.traffic_policy.tls.mode == "DISABLE"
    assert faults({"trafficPolicy": {"tls": {"mode": 9}}}, DestinationRuleSpec) == [
        ("trafficPolicy.tls.mode", "expected one of DISABLE, SIMPLE, MUTUAL, ISTIO_MUTUAL, got 9")
    ]
    assert faults({"trafficPolicy": {"tls": {"mode": True}}}, DestinationRuleSpec) != []


def test_whole_floats_are_ints() -> None:
    assert read({"maxConnections": 10.0}, TCPSettings).max_connections == 10
    assert faults({"maxConnections": 10.5}, TCPSettings) == [
        ("maxConnections", "expected int (-2147483648 to 2147483647), got 10.5")
    ]
    assert faults({"maxConnections": float("inf")}, TCPSettings) != []


def test_numbers_in_quotes_are_for_protobuf_json_only() -> None:
    assert read({"proxyListenPort": "15001"}, MeshConfig, protobuf_json=True).proxy_listen_port == 15001
    assert faults({"proxyListenPort": "15001"}, MeshConfig) != []
    assert faults({"proxyListenPort": "1e3"}, MeshConfig, protobuf_json=True) != []
    assert faults({"proxyListenPort": "9" * 30}, MeshConfig, protobuf_json=True) != []


@pytest.mark.parametrize("text", ["aGk=", "aGk", "aG\n k=", " aGk=\n"])
def test_base64_is_taken_as_it_is_written(text: str) -> None:
    assert read({"bytes": text}, HTTPBody).bytes == b"hi"


def test_base64_may_be_that_of_urls_in_protobuf_only() -> None:
    assert read({"bytes": "-_8="}, HTTPBody).bytes == b"\xfb\xff"
    assert read({"data": {"a": "aG\nk="}}, Secret).data == {"a": b"hi"}
    assert faults({"data": {"a": "-_8="}}, Secret) != []


def test_secrets_do_not_show_in_messages() -> None:
    value = {"data": {"a": "hunter2!"}, "stringData": {"b": 5551234}, "metadata": {"name": "x"}}
    assert faults(value, Secret) == [
        ("data[a]", "expected base64, got other text"),
        ("stringData[b]", "expected string, got another type"),
    ]


def test_long_values_are_cut_and_containers_named() -> None:
    ((_, message),) = faults({"maxConnections": "x" * 1000}, TCPSettings)
    assert len(message) < 130
    assert faults({"maxConnections": {}, "tcpKeepalive": []}, TCPSettings) == [
        ("maxConnections", "expected int (-2147483648 to 2147483647), got a map"),
        ("tcpKeepalive", "expected map, got a list"),
    ]


def test_keys_that_are_no_strings_are_faults() -> None:
    assert faults({"labels": {1: "a"}}, ObjectMeta) == [("labels[1]", "expected string as key, got 1")]
    assert faults({7: "a"}, ObjectMeta) == [("7", "unknown field")]


def test_very_many_faults_are_cut_short_but_an_error_is_never_lost() -> None:
    many = {f"unknown{number}": 1 for number in range(500)}
    _, problems = read_carefully({**many, "name": 1}, ObjectMeta)
    assert len(problems) == 101
    assert [problem.path for problem in problems if problem.level == "error"] == ["name"]
    _, problems = read_carefully({"audiences": [1] * 500}, JWTRule)
    assert len(problems) == 100
