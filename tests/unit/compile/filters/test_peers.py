"""Peer metadata: Istio's exchange, and what stands for it on upstream Envoy."""

import re

from mizzen import protos
from mizzen.compile.filters import peers
from mizzen.model.workloads import Workload


def names(filters):
    return [f.name for f in filters]


def test_istio_exchanges_metadata_on_every_side():
    for side in ("inbound", "outbound", "gateway"):
        filters = peers.build_http_filters("istio", side, mutual_tls=False, in_mesh=False)
        assert names(filters) == ["istio.metadata_exchange"]


def test_in_mesh_exchange_skips_external_clusters():
    (found,) = peers.build_http_filters("istio", "outbound", mutual_tls=False, in_mesh=True)
    value = protos.to_json(found)["typedConfig"]["value"]
    assert value["upstream_propagation"] == [{"istio_headers": {"skip_external_clusters": True}}]


def test_upstream_envoy_trusts_peer_headers_only_behind_mutual_tls():
    trusted = peers.build_http_filters("envoy", "inbound", mutual_tls=True, in_mesh=False)
    plain = peers.build_http_filters("envoy", "inbound", mutual_tls=False, in_mesh=False)
    assert names(trusted) == ["mizzen.peer", "mizzen.strip"]
    assert names(plain) == ["mizzen.strip"]


def test_the_peers_header_is_stripped_before_the_application():
    (strip,) = peers.build_http_filters("envoy", "inbound", mutual_tls=False, in_mesh=False)
    assert protos.to_json(strip)["typedConfig"]["mutations"]["requestMutations"] == [{"remove": peers.HEADER}]


def test_facts_come_one_by_one_where_asked_and_never_on_plain_chains():
    found = peers.build_http_filters("envoy", "inbound", mutual_tls=True, in_mesh=False, split=True)
    assert names(found) == ["mizzen.peer", "mizzen.peer.facts", "mizzen.strip"]
    rules = protos.to_json(found[1])["typedConfig"]["requestRules"]
    record = "w;n;c;r;k;a;v"
    values = {}
    for rule in rules:
        target = rule["onHeaderPresent"]
        rewrite = target["regexValueRewrite"]
        values[target["key"]] = re.sub(rewrite["pattern"]["regex"], rewrite["substitution"], record)
    assert list(values) == [fact.key for fact in peers.FACTS]
    assert ";".join(values.values()) == record
    assert names(peers.build_http_filters("envoy", "inbound", mutual_tls=False, in_mesh=False, split=True)) == [
        "mizzen.strip"
    ]


def test_clusters_overwrite_what_an_application_says_of_itself():
    mutation, codec = peers.build_upstream_filters()
    (written,) = protos.to_json(mutation)["typedConfig"]["mutations"]["requestMutations"]
    assert written["append"] == {
        "header": {"key": peers.HEADER, "value": "%ENVIRONMENT(MZ_PEER)%"},
        "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    assert codec.name == "envoy.filters.http.upstream_codec"


def endpoint_metadata(*, split=False, **labels):
    workload = Workload(name="cart-v1", namespace="shop", labels=tuple(sorted(labels.items())))
    return peers.build_endpoint_metadata(workload, "east", split=split)


def test_endpoints_say_only_what_does_not_follow_from_istios_record():
    assert endpoint_metadata() == {}
    assert endpoint_metadata(app="cart", version="v1") == {}
    canonical = {"service.istio.io/canonical-name": "basket", "service.istio.io/canonical-revision": "v1"}
    assert endpoint_metadata(app="cart", version="v1", **canonical) == {"labels": "cart;"}
    assert endpoint_metadata(version="v2", **canonical) == {"labels": "cart-v1;v2"}


def test_endpoints_say_every_fact_where_single_labels_are_changed():
    assert endpoint_metadata(split=True, app="cart") == {
        "workload": "cart-v1",
        "namespace": "shop",
        "canonical_service": "cart",
        "canonical_revision": "latest",
        "cluster": "east",
        "app": "cart",
        "version": "latest",
        "labels": "cart;latest",
    }


def test_upstream_envoy_has_no_network_filter_for_it():
    assert names(peers.build_network_filters("istio")) == ["istio.metadata_exchange"]
    assert peers.build_network_filters("envoy") == ()


def test_a_missing_value_reads_unknown():
    assert peers.first_of(("REQ", "a"), "B") == (
        '%COALESCE({"operators":[{"command":"REQ","param":"a"},"B",{"command":"ENVIRONMENT","param":"MZ_UNKNOWN"}]})%'
    )


def test_a_record_names_a_workload_as_the_agent_reads_it():
    cart = Workload(name="cart-v1", namespace="shop", labels=(("app", "cart"), ("version", "v1")))
    assert peers.build_record(cart, "Kubernetes") == "cart-v1;shop;cart;v1;Kubernetes;;"
    other = Workload(name="w", namespace="n", labels=(("app.kubernetes.io/name", "c"), ("app", "a"), ("version", "v")))
    assert peers.build_record(other, "k").split(";") == ["w", "n", "c", "v", "k", "a", ""]


def test_no_fact_moves_another_one_in_a_record():
    tricky = Workload(name="a;b", namespace="n", labels=(("app", "x,y;z"), ("app.kubernetes.io/name", "c;d")))
    record = peers.build_record(tricky, "east;,west")
    assert len(record.split(";")) == len(peers.FACTS)
    assert "," not in record
