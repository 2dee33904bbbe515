"""All that one proxy would be told, as it prints."""

import json

import pytest

from mizzen import protos
from mizzen.api.decode import decode_object
from mizzen.api.meta import Key
from mizzen.compile import resource
from mizzen.diagnose import snapshot
from mizzen.incremental import Engine
from mizzen.model.proxy import parse_node

tls = protos.package("envoy.extensions.transport_sockets.tls.v3")

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "cart", "namespace": "shop"},
    "spec": {"clusterIP": "10.96.0.9", "ports": [{"name": "http", "port": 8080}]},
}


@pytest.fixture
def taken() -> snapshot.Snapshot:
    engine = Engine()
    engine.set(Key("Service", "shop", "cart"), decode_object(SERVICE).object)
    node = {"id": "sidecar~10.0.0.1~front-0.web~web.svc.cluster.local", "metadata": {"NAMESPACE": "web"}}
    return snapshot.take_snapshot(engine, parse_node(node))


def test_what_is_named_is_followed(taken: snapshot.Snapshot) -> None:
    cluster = "outbound|8080||cart.shop.svc.cluster.local"

    assert list(taken.printed) == list(snapshot.KINDS)
    assert taken.printed["clusters"][cluster]["type"] == "EDS"
    assert list(taken.printed["endpoints"]) == [cluster]
    assert list(taken.printed["routes"]) == ["8080"]


def test_the_summary_counts_what_would_be_sent(taken: snapshot.Snapshot) -> None:
    rows = {row[0]: row[1:] for row in snapshot.summarize(taken).rows}

    assert rows["routes"] == (
        "1",
        str(sum(len(found.data) for found in taken.sets["routes"])),
        taken.sets["routes"].version,
    )


def test_a_secrets_key_does_not_print() -> None:
    secret = tls.Secret(name="edge", tls_certificate={"private_key": {"inline_bytes": b"PRIVATE"}})

    printed = snapshot.print_set([resource.encode_resource("edge", secret)])

    assert printed["edge"]["tlsCertificate"] == {"privateKey": {"inlineString": "[redacted]"}}
    assert "UFJJVkFURQ" not in json.dumps(printed)
