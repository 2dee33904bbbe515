"""Addresses as istiod's flags take them."""

import pytest

from mizzen.control.options import Address, parse_address
from mizzen.errors import UsageError


@pytest.mark.parametrize(
    ("text", "address", "grpc"),
    [
        (":15012", Address("", 15012), "[::]:15012"),
        ("127.0.0.1:0", Address("127.0.0.1", 0), "127.0.0.1:0"),
        ("localhost:80", Address("localhost", 80), "localhost:80"),
        ("[::1]:15010", Address("::1", 15010), "[::1]:15010"),
    ],
)
def test_addresses_are_parsed(text: str, address: Address, grpc: str) -> None:
    found = parse_address("--grpcAddr", text)
    assert found == address
    assert found is not None
    assert found.grpc == grpc


def test_empty_address_switches_the_server_off() -> None:
    assert parse_address("--grpcAddr", "") is None


@pytest.mark.parametrize("text", ["15010", "a:b", "::1:15010", "host:", "host:99999", "host:-1"])
def test_other_text_is_refused_by_its_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--secureGRPCAddr"):
        parse_address("--secureGRPCAddr", text)
