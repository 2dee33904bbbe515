"""Documents about clients have istiod's shapes."""

import json
from typing import Any

import debugged
import pytest
from debugged import client, connection, status

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, SECRET
from mizzen.control.debug import clients
from mizzen.control.debug.console import Answer, PageError, Query
from mizzen.model.proxy import parse_node
from mizzen.sources.origins import Finding, Origin
from mizzen.xds.watch import State


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0001-01-01T00:00:00Z"),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.25Z"),
    ],
)
def test_times_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert clients.format_time(seconds) == text


def test_syncz_tells_nonces_times_and_errors_by_type() -> None:
    shown = connection(
        status(CLUSTER, sent_nonce="n1", acked_nonce="n1", sent_at=1_700_000_000.0),
        status(LISTENER, sent_nonce="n2", error="Internal:bad"),
        status(SECRET),
    )
    assert clients.syncz([shown]) == [
        {
            "cluster_id": "c1",
            "proxy": "cart-0.shop",
            "proxy_type": "sidecar",
            "istio_version": "1.32.0",
            "cluster_sent": "n1",
            "cluster_acked": "n1",
            "listener_sent": "n2",
            "resources": {
                CLUSTER: {"sent": "n1", "acked": "n1", "sentTime": "2023-11-14T22:13:20Z"},
                LISTENER: {"sent": "n2", "lastError": "Internal:bad", "sentTime": "0001-01-01T00:00:00Z"},
                SECRET: {"sentTime": "0001-01-01T00:00:00Z"},
            },
        }
    ]


def test_adsz_tells_who_is_connected_and_what_they_watch() -> None:
    shown = connection(status(CLUSTER), status(ENDPOINT, names=("a", "b")))
    document = clients.adsz([shown])
    assert document["totalClients"] == 1
    (told,) = document["clients"]
    assert told["connectionId"] == "cart-0.shop-1"
    assert told["connectedAt"] == "2023-11-14T22:13:20.25Z"
    assert told["labels"] == {"app": "cart"}
    assert told["metadata"]["CLUSTER_ID"] == "c1"
    assert told["locality"] == {"region": "r1", "zone": "z1"}
    assert told["watches"] == {CLUSTER: [], ENDPOINT: ["a", "b"]}
    (short,) = clients.connections_document([shown])["clients"]
    assert set(short) == {"connectionId", "connectedAt", "address"}


def test_problems_name_object_file_and_line_and_what_proxies_refused() -> None:
    problem = Problem(key=Key("Service", "shop", "cart"), path="spec.ports", code="invalid-field", message="bad")
    shown = connection(status(LISTENER, error="Internal:bad", culprits=("0.0.0.0_80",)), status(CLUSTER))
    assert clients.problems([Finding(Origin("a.yaml", 7), problem)], [shown]) == {
        "objects": [
            {
                "level": "error",
                "code": "invalid-field",
                "message": "bad",
                "kind": "Service",
                "namespace": "shop",
                "name": "cart",
                "path": "spec.ports",
                "file": "a.yaml",
                "line": 7,
            }
        ],
        "rejections": [
            {"proxy": "cart-0.shop", "typeUrl": LISTENER, "error": "Internal:bad", "resources": ["0.0.0.0_80"]}
        ],
    }


def ask(page: str, shown: Any, *, administrate: bool = False, **parameters: str) -> Any:
    found = clients.pages(shown, lambda: (), administrate=administrate)[page]
    return found.read(Query(page=page, parameters=parameters))()


def test_a_part_of_the_connections_id_names_a_proxy() -> None:
    shown = [client("tell-0", "bank"), connection()]
    assert [c["connectionId"] for c in ask("adsz", shown, proxyID="cart")["clients"]] == ["cart-0.shop-1"]
    assert ask("adsz", shown)["totalClients"] == 2
    with pytest.raises(PageError) as refused:
        ask("adsz", shown, proxyID="nobody")
    assert (refused.value.status, str(refused.value)) == (404, clients.ABSENT)


def test_syncz_of_one_namespace() -> None:
    shown = [client("tell-0", "bank"), connection()]
    assert [entry["proxy"] for entry in ask("syncz", shown, namespace="bank")] == ["tell-0.bank"]


class Stream:
    """Notes what is done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def resend(self) -> None:
        self.done.append("resend")

    def close(self) -> None:
        self.done.append("close")


def test_adsz_can_have_everything_sent_again() -> None:
    streams = [Stream(), Stream()]
    answer = ask("adsz", [connection(stream=stream) for stream in streams], push="true")
    assert isinstance(answer, Answer)
    assert answer.body == b"Pushed to 2 servers"
    assert [stream.done for stream in streams] == [["resend"], ["resend"]]


def test_a_stream_is_ended_only_where_administration_is_allowed() -> None:
    assert "force_disconnect" not in clients.pages([], lambda: (), administrate=False)  # type: ignore[arg-type]
    stream = Stream()
    answer = ask("force_disconnect", [connection(stream=stream)], administrate=True, proxyID="cart")
    assert (answer.body, stream.done) == (b"OK", ["close"])


def test_client_config_tells_the_state_of_each_type() -> None:
    shown = connection(
        status(LISTENER, state=State.ERROR, sent_at=1_700_000_000.5, error="Internal:bad"),
        status(CLUSTER, sent_at=1_700_000_000.0),
        status(SECRET, state=State.NOT_SENT),
    )
    config = protos.to_json(clients.client_config(shown))
    assert config["node"] == {
        "id": "cart-0.shop",
        "metadata": {"CLUSTER_ID": "c1", "ISTIO_VERSION": "1.32.0", "NAMESPACE": "shop"},
    }
    assert config["genericXdsConfigs"] == [
        {"typeUrl": CLUSTER, "configStatus": "SYNCED", "lastUpdated": "2023-11-14T22:13:20Z"},
        {
            "typeUrl": LISTENER,
            "configStatus": "ERROR",
            "lastUpdated": "2023-11-14T22:13:20.500Z",
            "errorState": {"lastUpdateAttempt": "2023-11-14T22:13:20.500Z", "details": "Internal:bad"},
        },
        {"typeUrl": SECRET, "configStatus": "NOT_SENT", "lastUpdated": "0001-01-01T00:00:00Z"},
    ]


def test_only_a_client_with_the_configuration_of_a_proxy_is_an_agent() -> None:
    bare = {**debugged.NODE, "metadata": {"NAMESPACE": "shop"}}
    assert clients.is_agent(connection())
    assert not clients.is_agent(connection(proxy=parse_node(json.loads(json.dumps(bare)))))
