"""In which version of HTTP destinations are spoken to."""

import pytest

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.networking.traffic_policy import HTTPSettings
from mizzen.compile.upstreams import select_upstream
from mizzen.model.protocols import Protocol

UPGRADING = MeshConfig(h2_upgrade_policy="UPGRADE")


@pytest.mark.parametrize(
    ("protocol", "sniffs", "upstream"),
    [
        (Protocol.HTTP, True, ""),
        (Protocol.HTTP2, True, "http2"),
        (Protocol.GRPC, False, "http2"),
        (Protocol.AUTO, True, "downstream"),
        (Protocol.AUTO, False, ""),
        (Protocol.TCP, True, ""),
    ],
)
def test_the_port_decides_where_no_rule_does(protocol: Protocol, sniffs: bool, upstream: str) -> None:
    assert select_upstream(None, protocol, MeshConfig(), sniffs=sniffs) == upstream


@pytest.mark.parametrize("protocol", [Protocol.HTTP, Protocol.HTTP2, Protocol.AUTO])
def test_a_rule_can_ask_for_the_clients_version_even_on_gateways(protocol: Protocol) -> None:
    rule = HTTPSettings(use_client_protocol=True, h2_upgrade_policy="UPGRADE")
    assert select_upstream(rule, protocol, MeshConfig(), sniffs=False) == "downstream"


@pytest.mark.parametrize(
    ("rule", "mesh", "upstream"),
    [
        ("UPGRADE", MeshConfig(), "http2"),
        ("DO_NOT_UPGRADE", UPGRADING, ""),
        ("DEFAULT", UPGRADING, "http2"),
        ("DEFAULT", MeshConfig(), ""),
    ],
)
def test_an_upgrade_is_the_rules_before_it_is_the_meshs(rule: str, mesh: MeshConfig, upstream: str) -> None:
    assert select_upstream(HTTPSettings(h2_upgrade_policy=rule), Protocol.HTTP, mesh, sniffs=True) == upstream


def test_a_sniffed_port_is_not_upgraded() -> None:
    rule = HTTPSettings(h2_upgrade_policy="UPGRADE")
    assert select_upstream(rule, Protocol.AUTO, UPGRADING, sniffs=True) == "downstream"


def test_the_mesh_upgrades_only_http() -> None:
    assert select_upstream(None, Protocol.TCP, UPGRADING, sniffs=True) == ""


def test_an_upgrade_does_not_count_towards_the_own_application() -> None:
    rule = HTTPSettings(h2_upgrade_policy="UPGRADE")
    assert select_upstream(rule, Protocol.HTTP, UPGRADING, sniffs=True, upgrades=False) == ""
