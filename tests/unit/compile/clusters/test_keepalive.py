"""Keepalive of HTTP/2 connections: what Envoy would refuse a cluster for is left out."""

import pytest

from mizzen import protos
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.networking.traffic_policy import ConnectionKeepalive, ConnectionPoolSettings, HTTPSettings
from mizzen.api.scalars import Duration
from mizzen.compile.clusters.draft import HTTP_OPTIONS, Draft
from mizzen.compile.clusters.pools import apply_http_version
from mizzen.model.protocols import Protocol

SECOND = Duration.of(seconds=1)


def keepalive_of(**fields: Duration) -> dict | None:
    pool = ConnectionPoolSettings(http=HTTPSettings(http2_keep_alive=ConnectionKeepalive(**fields)))
    draft = Draft("x")
    draft.fields.update(type="EDS", lb_policy="ROUND_ROBIN")
    apply_http_version(draft, pool, Protocol.GRPC, MeshConfig(), sniffs=True)
    cluster = draft.message("envoy")
    options = protos.to_json(protos.unpack(cluster.typed_extension_protocol_options[HTTP_OPTIONS]))
    return options["explicitHttpConfig"]["http2ProtocolOptions"].get("connectionKeepalive")


def test_both_times_are_told() -> None:
    assert keepalive_of(interval=SECOND, timeout=Duration.of(seconds=2)) == {"interval": "1s", "timeout": "2s"}
    assert keepalive_of(timeout=SECOND) == {"timeout": "1s"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"interval": SECOND},
        {"interval": SECOND, "timeout": Duration(999_999)},
        {"interval": Duration(0), "timeout": SECOND},
    ],
)
def test_a_keepalive_that_envoy_would_refuse_is_none(fields: dict) -> None:
    assert keepalive_of(**fields) is None
