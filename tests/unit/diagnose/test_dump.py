"""Dumps are read in either spelling, and what they lack is no error."""

import pytest

from mizzen.diagnose import dump
from mizzen.errors import DecodeError

PREFIX = "type.googleapis.com/envoy.admin.v3."


def test_the_last_section_of_a_kind_counts() -> None:
    configs = [{"@type": f"{PREFIX}RoutesConfigDump", "n": n} for n in (1, 2)]

    assert dump.Dump(tuple(configs)).section("Routes")["n"] == 2


def test_scoped_routes_are_no_routes() -> None:
    only = dump.Dump(({"@type": f"{PREFIX}ScopedRoutesConfigDump"},))

    with pytest.raises(dump.MissingSection, match="RoutesConfigDump"):
        only.section("Routes")


@pytest.mark.parametrize("name", ["eds_health_status", "edsHealthStatus"])
def test_a_field_is_found_in_either_spelling(name: str) -> None:
    assert dump.text({"health_status": {name: "HEALTHY"}}, "health_status", "eds_health_status") == "HEALTHY"


def test_what_is_absent_or_of_another_kind_is_empty() -> None:
    odd = {"name": 7, "list": "text", "port": "x", "flag": True, "message": []}

    assert dump.text(odd, "name") == ""
    assert list(dump.items(odd, "list")) == []
    assert dump.texts(odd, "list") == []
    assert dump.number(odd, "port") == 0
    assert dump.number(odd, "flag") == 0
    assert dump.message(odd, "message") == {}
    assert dump.field(odd, "name", "deeper") is None


def test_large_numbers_come_as_text() -> None:
    assert dump.number({"port_value": "15006"}, "port_value") == 15006


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "[" * 100_000])
def test_what_is_no_object_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(DecodeError, match="error unmarshalling config dump response from Envoy"):
        dump.parse_dump(text)


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("/apis/networking.istio.io/v1/namespaces/shop/virtual-service/cart", "cart.shop"),
        ("/apis/networking.istio.io/v1alpha3/namespaces/shop/destination-rule/cart", "cart.shop"),
        ("/apis/networking.istio.io/v1/namespaces/shop/virtual-service", ""),
        ("/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproute/cart", "<unknown>"),
        ("shop/cart", "<unknown>"),
    ],
)
def test_the_origin_is_named_from_istios_metadata(path: str, origin: str) -> None:
    assert dump.describe_origin({"filter_metadata": {"istio": {"config": path}}}) == origin


def test_without_istios_metadata_there_is_no_origin() -> None:
    assert dump.describe_origin({"filter_metadata": {"other": {"config": "x"}}}) == ""
