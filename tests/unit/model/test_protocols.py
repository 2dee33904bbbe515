"""Protocols of ports."""

import pytest

from mizzen.model.protocols import Protocol, parse_port, parse_protocol


@pytest.mark.parametrize(
    ("name", "app_protocol", "number", "expected"),
    [
        ("http", None, 80, Protocol.HTTP),
        ("HTTP-web", None, 80, Protocol.HTTP),
        ("grpc-web-x", None, 80, Protocol.GRPC_WEB),
        ("grpc-api", None, 80, Protocol.GRPC),
        ("https", None, 443, Protocol.HTTPS),
        ("httpx", None, 80, Protocol.AUTO),
        ("", None, 80, Protocol.AUTO),
        ("", None, 3306, Protocol.TCP),
        ("http", "tcp", 80, Protocol.TCP),
        ("http", "something", 80, Protocol.AUTO),
        ("x", "kubernetes.io/h2c", 80, Protocol.HTTP2),
        ("x", "kubernetes.io/wss", 80, Protocol.HTTPS),
    ],
)
def test_a_kubernetes_port_says_its_protocol(
    name: str, app_protocol: str | None, number: int, expected: Protocol
) -> None:
    assert parse_port(number=number, name=name, transport="TCP", app_protocol=app_protocol) is expected


def test_udp_is_udp_whatever_the_name() -> None:
    assert parse_port(number=53, name="http", transport="UDP", app_protocol=None) is Protocol.UDP


@pytest.mark.parametrize("protocol", list(Protocol))
def test_every_protocol_falls_into_one_class(protocol: Protocol) -> None:
    classes = [protocol.is_http, protocol.is_tcp, protocol.is_auto, protocol in (Protocol.UDP, Protocol.HBONE)]
    assert classes.count(True) == 1


def test_istio_objects_spell_protocols_in_any_case() -> None:
    assert parse_protocol("gRPC-Web") is Protocol.GRPC_WEB
    assert parse_protocol("what") is Protocol.AUTO
