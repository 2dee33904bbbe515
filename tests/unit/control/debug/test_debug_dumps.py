"""Dumps have the sections of Envoy's, and no private keys in either form."""

import json
from typing import Any

from debugged import connection, resources, status

from mizzen import protos
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, VIRTUAL_HOST, Resource, ResourceSet
from mizzen.compile.routes.on_demand import encode_answer, encode_bare_configuration
from mizzen.compile.routes.virtual_hosts import VirtualHost
from mizzen.control.debug import dumps
from mizzen.control.debug.console import Query

HOST = VirtualHost(name="any", domains=("*",), routes=())


def full() -> Any:
    sets = {url: resources(url, "one", "two") for url in (CLUSTER, LISTENER, ROUTE, ENDPOINT)}
    return connection(*map(status, sets), sets=sets)


def ask(page: str, shown: Any, **parameters: str) -> Any:
    return dumps.pages(shown)[page].read(Query(page=page, parameters={"proxyID": "cart", **parameters}))()["configs"]


def test_config_dump_has_the_sections_of_envoys() -> None:
    sections = ask("config_dump", [full()])
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
    assert clusters["versionInfo"]
    assert listeners["dynamicListeners"][0]["activeState"]["listener"]["name"] == "one"
    assert routes["dynamicRouteConfigs"][1]["routeConfig"]["name"] == "two"


def test_virtual_hosts_on_demand_stand_in_their_configurations_as_in_envoys() -> None:
    hosts = ResourceSet(VIRTUAL_HOST, [encode_answer(name, HOST) for name in ("80/b", "80/a", "81/c")])
    routes = ResourceSet(ROUTE, [encode_bare_configuration("80"), encode_bare_configuration("82")])
    shown = connection(status(ROUTE), status(VIRTUAL_HOST), sets={ROUTE: routes, VIRTUAL_HOST: hosts})
    found = [entry["routeConfig"] for entry in ask("config_dump", [shown])[4]["dynamicRouteConfigs"]]
    assert [host["name"] for host in found[0]["virtualHosts"]] == ["80/a", "80/b"]
    assert "virtualHosts" not in found[1]


def test_endpoints_are_dumped_when_asked_for() -> None:
    endpoints = ask("config_dump", [full()], include_eds="")[2]["dynamicEndpointConfigs"]
    assert [entry["endpointConfig"]["clusterName"] for entry in endpoints] == ["one", "two"]


def test_types_give_bare_resources() -> None:
    assert [found["@type"] for found in ask("config_dump", [full()], types="cds,eds")] == [
        CLUSTER,
        CLUSTER,
        ENDPOINT,
        ENDPOINT,
    ]
    assert [found["@type"] for found in ask("edsz", [full()])] == [ENDPOINT, ENDPOINT]
    assert ask("ndsz", [full()]) == []


def test_proxy_that_was_sent_nothing_has_empty_sections() -> None:
    assert all(list(section) == ["@type"] for section in ask("config_dump", [connection(status(CLUSTER))]))


def test_packed_sections_hold_the_same() -> None:
    printed = ask("config_dump", [full()])
    packed = [
        protos.message_class("google.protobuf.Any").FromString(data)
        for data in dumps.packed_sections(dumps.sent_to(full()))
    ]
    assert [section.type_url for section in packed] == [section["@type"] for section in printed]
    clusters = protos.unpack(packed[1])
    assert protos.unpack(clusters.dynamic_active_clusters[1].cluster).name == "two"  # type: ignore[attr-defined]


def secretive() -> Any:
    """A secret, and a cluster that an EnvoyFilter gave a key of its own."""
    key = {"private_key": {"inline_bytes": b"hunter2"}, "certificate_chain": {"inline_string": "public"}}
    secret = protos.message_class(SECRET.rpartition("/")[2])(name="kubernetes://shop", tls_certificate=key)
    context = protos.message_class("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext")(
        common_tls_context={"tls_certificates": [key]}
    )
    cluster = protos.message_class(CLUSTER.rpartition("/")[2])(
        name="c", transport_socket={"name": "tls", "typed_config": protos.pack(context)}
    )
    sets = {
        url: ResourceSet(url, [Resource("x", protos.encode(protos.pack(message)))])
        for url, message in ((SECRET, secret), (CLUSTER, cluster))
    }
    return connection(*map(status, sets), sets=sets)


def test_private_keys_are_not_printed() -> None:
    for types in ({}, {"types": "sds,cds"}):
        text = json.dumps(ask("config_dump", [secretive()], **types))
        assert text.count("redacted") == 2
        assert "hunter2" not in text
        assert "aHVudGVyMg" not in text


def test_private_keys_are_not_sent_as_messages_either() -> None:
    data = b"".join(dumps.packed_sections(dumps.sent_to(secretive())))
    assert b"hunter2" not in data
    assert data.count(b"[redacted]") == 2
    assert data.count(b"public") == 2, "the rest stays"
