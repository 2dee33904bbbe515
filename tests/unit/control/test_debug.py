"""Debug documents have istiod's shapes."""

import json
from typing import Any

import mesh_of_resources
import msgspec
import pytest

from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, Resource, ResourceSet
from mizzen.control import debug
from mizzen.model.proxy import parse_node
from mizzen.sources.origins import Finding, Origin
from mizzen.xds.status import TypeStatus

NODE = {
    "id": "sidecar~10.0.0.1~cart-0.shop~shop.svc.cluster.local",
    "metadata": {"NAMESPACE": "shop", "CLUSTER_ID": "c1", "LABELS": {"app": "cart"}},
    "locality": {"region": "r1", "zone": "z1"},
}


class Connection(msgspec.Struct):
    """A connection as `debug` reads it."""

    statuses: list[TypeStatus]
    sets: dict[str, ResourceSet] = {}
    id: str = "cart-0.shop-1"
    proxy: Any = parse_node(NODE)
    version: str = "1.32.0"
    address: str = "10.0.0.1:5000"
    connected_at: float = 1_700_000_000.25

    def types(self) -> list[TypeStatus]:
        return self.statuses

    def sent(self, type_url: str) -> ResourceSet | None:
        return self.sets.get(type_url)


def status(type_url: str, **fields: Any) -> TypeStatus:
    defaults: dict[str, Any] = {
        "state": "SYNCED",
        "names": (),
        "sent_version": "",
        "accepted_version": "",
        "sent_nonce": "",
        "acked_nonce": "",
        "sent_at": 0.0,
        "error": "",
        "culprits": (),
    }
    return TypeStatus(type_url=type_url, **{**defaults, **fields})


def resources(type_url: str, *names: str) -> ResourceSet:
    return ResourceSet(type_url, [Resource(name, mesh_of_resources.build(type_url, name)) for name in names])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0001-01-01T00:00:00Z"),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.25Z"),
    ],
)
def test_times_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert debug.format_time(seconds) == text


def test_syncz_tells_nonces_times_and_errors_by_type() -> None:
    connection = Connection(
        [
            status(CLUSTER, sent_nonce="n1", acked_nonce="n1", sent_at=1_700_000_000.0),
            status(LISTENER, sent_nonce="n2", error="Internal:bad"),
            status(SECRET),
        ]
    )
    assert debug.syncz([connection]) == [  # type: ignore[list-item]
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
    connection = Connection([status(CLUSTER), status(ENDPOINT, names=("a", "b"))])
    document = debug.adsz([connection])  # type: ignore[list-item]
    assert document["totalClients"] == 1
    (client,) = document["clients"]
    assert client["connectionId"] == "cart-0.shop-1"
    assert client["connectedAt"] == "2023-11-14T22:13:20.25Z"
    assert client["labels"] == {"app": "cart"}
    assert client["metadata"]["CLUSTER_ID"] == "c1"
    assert client["locality"] == {"region": "r1", "zone": "z1"}
    assert client["watches"] == {CLUSTER: [], ENDPOINT: ["a", "b"]}
    (short,) = debug.connections_document([connection])["clients"]  # type: ignore[list-item]
    assert set(short) == {"connectionId", "connectedAt", "address"}


def test_problems_name_object_file_and_line_and_what_proxies_refused() -> None:
    problem = Problem(key=Key("Service", "shop", "cart"), path="spec.ports", code="invalid-field", message="bad")
    connection = Connection([status(LISTENER, error="Internal:bad", culprits=("0.0.0.0_80",)), status(CLUSTER)])
    assert debug.problems([Finding(Origin("a.yaml", 7), problem)], [connection]) == {  # type: ignore[list-item]
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


def full() -> Connection:
    sets = {url: resources(url, "one", "two") for url in (CLUSTER, LISTENER, ROUTE, ENDPOINT)}
    return Connection([status(url) for url in sets], sets)


def test_config_dump_has_the_sections_of_envoys() -> None:
    sections = debug.config_dump(full())["configs"]  # type: ignore[arg-type]
    assert [section["@type"].rpartition(".")[2] for section in sections] == [
        "BootstrapConfigDump",
        "ClustersConfigDump",
        "ListenersConfigDump",
        "ScopedRoutesConfigDump",
        "RoutesConfigDump",
        "SecretsConfigDump",
        "EcdsConfigDump",
    ]
    clusters, listeners, routes = sections[1], sections[2], sections[4]
    assert [entry["cluster"]["name"] for entry in clusters["dynamicActiveClusters"]] == ["one", "two"]
    assert clusters["dynamicActiveClusters"][0]["cluster"]["@type"] == CLUSTER
    assert listeners["dynamicListeners"][0]["activeState"]["listener"]["name"] == "one"
    assert routes["dynamicRouteConfigs"][1]["routeConfig"]["name"] == "two"


def test_endpoints_are_dumped_when_asked_for() -> None:
    document = debug.config_dump(full(), with_endpoints=True)  # type: ignore[arg-type]
    endpoints = document["configs"][2]["dynamicEndpointConfigs"]
    assert [entry["endpointConfig"]["clusterName"] for entry in endpoints] == ["one", "two"]


def test_types_give_bare_resources() -> None:
    document = debug.config_dump(full(), frozenset({"cds", "eds"}))  # type: ignore[arg-type]
    assert [config["@type"] for config in document["configs"]] == [CLUSTER, CLUSTER, ENDPOINT, ENDPOINT]


def test_proxy_that_was_sent_nothing_has_empty_sections() -> None:
    document = debug.config_dump(Connection([status(CLUSTER)]))  # type: ignore[arg-type]
    assert all(list(section) == ["@type"] for section in document["configs"])


def test_private_keys_never_leave() -> None:
    from mizzen import protos

    secret = protos.message_class(SECRET.rpartition("/")[2])(
        name="kubernetes://shop", tls_certificate={"private_key": {"inline_bytes": b"hunter2"}}
    )
    found = ResourceSet(SECRET, [Resource("kubernetes://shop", protos.encode(protos.pack(secret)))])
    connection = Connection([status(SECRET)], {SECRET: found})
    for types in (None, frozenset({"sds"})):
        text = json.dumps(debug.config_dump(connection, types))  # type: ignore[arg-type]
        assert "redacted" in text
        assert "hunter2" not in text
        assert "aHVudGVyMg" not in text
