"""Peer metadata: Istio's exchange, and what stands for it on upstream Envoy."""

from mizzen import protos
from mizzen.compile.filters import peers


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


def test_every_peer_header_is_stripped_before_the_application():
    (strip,) = peers.build_http_filters("envoy", "inbound", mutual_tls=False, in_mesh=False)
    removed = {m["remove"] for m in protos.to_json(strip)["typedConfig"]["mutations"]["requestMutations"]}
    assert removed == {fact.header for fact in peers.FACTS}


def test_clusters_overwrite_what_an_application_says_of_itself():
    mutation, codec = peers.build_upstream_filters()
    written = protos.to_json(mutation)["typedConfig"]["mutations"]["requestMutations"]
    assert {m["append"]["appendAction"] for m in written} == {"OVERWRITE_IF_EXISTS_OR_ADD"}
    assert {m["append"]["header"]["key"] for m in written} == {fact.header for fact in peers.FACTS}
    assert codec.name == "envoy.filters.http.upstream_codec"


def test_upstream_envoy_has_no_network_filter_for_it():
    assert names(peers.build_network_filters("istio")) == ["istio.metadata_exchange"]
    assert peers.build_network_filters("envoy") == ()


def test_a_missing_value_reads_unknown():
    assert peers.first_of(("REQ", "a"), "B") == (
        '%COALESCE({"operators":[{"command":"REQ","param":"a"},"B",{"command":"ENVIRONMENT","param":"MZ_UNKNOWN"}]})%'
    )
