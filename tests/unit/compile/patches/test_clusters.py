"""Patches of clusters."""

from typing import Any

from envoy_patches import NETWORK, TYPE, add_filter, ask, ids, resource_of, write_patch

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.patches import clusters
from mizzen.compile.patches.clusters import Client
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.incremental import Engine

SIDECAR = Client(kind="sidecar", dialect="istio", inbound_hosts=((8080, ("a.b", "c.d")),))
UPSTREAM = Client(kind="sidecar", dialect="envoy")
TLS = TYPE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
RAW = TYPE + "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"


def _clusters(*names: str, **fields: Any) -> ResourceSet:
    return ResourceSet(resource.CLUSTER, [resource_of("cluster", name=name, type="STATIC", **fields) for name in names])


def _patched(pristine: ResourceSet, *written: dict, client: Client = SIDECAR) -> dict[str, Any]:
    db = Engine()
    add_filter(db, *written)
    found, problems = ask(db, clusters.clusters, pristine, ids(len(written)), client)
    assert not problems
    return {r.name: protos.to_json(r.message()) for r in found}


def _merge(value: dict, /, context: str = "SIDECAR_OUTBOUND", **match: Any) -> dict:
    return write_patch("CLUSTER", "MERGE", value, context=context, cluster=match)


def _socket(name: str, kind: str = TLS, **fields: Any) -> dict[str, Any]:
    return {"name": name, "typedConfig": {"@type": kind, **fields}}


def test_each_side_has_its_clusters():
    pristine = _clusters("outbound|80||x", "BlackHoleCluster", "inbound|8080||", "InboundPassthroughCluster")
    marked = _patched(
        pristine,
        _merge({"altStatName": "out"}),
        _merge({"altStatName": "in"}, context="SIDECAR_INBOUND"),
        _merge({"altStatName": "gateway"}, context="GATEWAY"),
    )
    assert {name: fields["altStatName"] for name, fields in marked.items()} == {
        "outbound|80||x": "out",
        "BlackHoleCluster": "out",
        "inbound|8080||": "in",
        "InboundPassthroughCluster": "in",
    }


def test_all_clusters_of_a_gateway_are_its_own():
    client = Client(kind="router", dialect="istio")
    marked = _patched(_clusters("outbound|80||x"), _merge({"altStatName": "g"}, context="GATEWAY"), client=client)
    assert marked["outbound|80||x"]["altStatName"] == "g"


def test_an_inbound_cluster_is_meant_by_any_service_behind_it():
    found = _patched(
        _clusters("inbound|8080||", "inbound|9090||"),
        _merge({"altStatName": "x"}, context="SIDECAR_INBOUND", service="c.d"),
    )
    assert found["inbound|8080||"]["altStatName"] == "x"
    assert "altStatName" not in found["inbound|9090||"]


def test_clusters_are_removed():
    assert list(_patched(_clusters("a", "b"), write_patch("CLUSTER", "REMOVE", cluster={"name": "a"}))) == ["b"]


def test_clusters_of_the_mesh_itself_take_no_patches():
    assert list(_patched(_clusters("a", "connect_originate"), write_patch("CLUSTER", "REMOVE"))) == [
        "connect_originate"
    ]


def test_a_cluster_for_any_context_is_added_outbound_and_once():
    found = _patched(_clusters("a"), write_patch("CLUSTER", "ADD", {"name": "new", "type": "STATIC"}))
    assert list(found) == ["a", "new"]


def test_added_clusters_are_not_merged_into():
    found = _patched(
        _clusters(), write_patch("CLUSTER", "ADD", {"name": "new", "type": "STATIC"}), _merge({"altStatName": "x"})
    )
    assert found["new"] == {"name": "new", "type": "STATIC"}


def test_of_two_clusters_of_one_name_the_first_stays():
    db = Engine()
    add_filter(
        db,
        write_patch("CLUSTER", "ADD", {"name": "a", "altStatName": "x"}),
        write_patch("CLUSTER", "ADD", {"name": "b", "altStatName": "1"}),
        write_patch("CLUSTER", "ADD", {"name": "b", "altStatName": "2"}),
    )
    found, problems = ask(db, clusters.clusters, _clusters("a"), ids(3), SIDECAR)
    assert {r.name: r.message().alt_stat_name for r in found} == {"a": "", "b": "1"}
    assert [p.message for p in problems] == ["there is a cluster a already", "there is a cluster b already"]


def test_a_cluster_that_no_patch_means_is_the_same_resource():
    db = Engine()
    pristine = _clusters("a", "b")
    add_filter(db, _merge({"altStatName": "x"}, name="a"), write_patch("CLUSTER", "REPLACE", {"name": "b"}))
    found = clusters.clusters(db, pristine, ids(2), SIDECAR)
    assert found.get("b") is pristine.get("b")
    assert found.get("a") != pristine.get("a")


def test_a_change_of_one_patch_runs_only_what_it_touches():
    db = Engine()
    pristine = _clusters("a", "b")
    add_filter(db, _merge({"altStatName": "x"}, name="a"), _merge({"altStatName": "y"}, name="b"))
    clusters.clusters(db, pristine, ids(2), SIDECAR)
    before = db.runs_by_query["patched"]
    add_filter(db, _merge({"altStatName": "x"}, name="a"), _merge({"altStatName": "z"}, name="b"))
    found = clusters.clusters(db, pristine, ids(2), SIDECAR)
    assert db.runs_by_query["patched"] == before + 1
    assert [r.message().alt_stat_name for r in found] == ["x", "z"]


def test_a_socket_merges_into_the_first_of_its_name_and_alone():
    pristine = _clusters(
        "a",
        transportSocketMatches=[
            {"name": "plain", "transportSocket": _socket("raw", RAW)},
            {"name": "one", "transportSocket": _socket("tls", sni="x")},
            {"name": "two", "transportSocket": _socket("tls", sni="y")},
        ],
    )
    patch = _merge({"altStatName": "not taken", "transportSocket": _socket("tls", maxSessionKeys=3)})
    found = _patched(pristine, patch)["a"]
    assert "altStatName" not in found
    assert [m["transportSocket"]["typedConfig"] for m in found["transportSocketMatches"]] == [
        {"@type": RAW},
        {"@type": TLS, "sni": "x", "maxSessionKeys": 3},
        {"@type": TLS, "sni": "y"},
    ]


def test_a_patch_with_a_socket_of_no_match_is_dropped_whole():
    pristine = _clusters("a", transportSocketMatches=[{"name": "one", "transportSocket": _socket("tls")}])
    found = _patched(pristine, _merge({"altStatName": "x", "transportSocket": _socket("other")}))
    assert found["a"] == protos.to_json(next(iter(pristine)).message())


def test_a_single_socket_merges_by_name():
    pristine = _clusters("a", transportSocket=_socket("tls", sni="x"))
    found = _patched(pristine, _merge({"transportSocket": _socket("tls", maxSessionKeys=3)}))
    assert found["a"]["transportSocket"] == _socket("tls", sni="x", maxSessionKeys=3)


def test_a_single_socket_of_another_name_is_replaced():
    pristine = _clusters("a", transportSocket=_socket("tls", sni="x"))
    found = _patched(pristine, _merge({"altStatName": "x", "transportSocket": _socket("raw", RAW)}))
    assert found["a"]["transportSocket"] == _socket("raw", RAW)
    assert found["a"]["altStatName"] == "x"


def test_a_socket_is_set_where_there_was_none():
    found = _patched(_clusters("a"), _merge({"transportSocket": _socket("tls")}))
    assert found["a"]["transportSocket"] == _socket("tls")


def test_a_socket_match_without_a_socket_is_passed_over():
    pristine = _clusters("a", transportSocketMatches=[{"name": "one"}])
    found = _patched(pristine, _merge({"transportSocket": _socket("tls")}))
    assert "transportSocket" not in found["a"]


def test_upstream_envoy_is_spared_what_it_would_refuse():
    db = Engine()
    add_filter(
        db,
        _merge({"connectTimeout": "0s"}, name="a"),
        _merge({"altStatName": "x"}, name="a"),
        write_patch("CLUSTER", "ADD", {"name": "new", "type": "EDS"}),
        write_patch("CLUSTER", "ADD", {"name": "old", "type": "STATIC"}),
    )
    found, problems = ask(db, clusters.clusters, _clusters("a"), ids(4), UPSTREAM)
    assert {r.name: protos.to_json(r.message()) for r in found} == {
        "a": {"name": "a", "type": "STATIC", "altStatName": "x"},
        "old": {"name": "old", "type": "STATIC"},
    }
    assert [p.path for p in problems] == ["spec.configPatches[0].patch", "spec.configPatches[2].patch"]
    assert "connect_timeout: must be greater than 0s" in problems[0].message
    istio, problems = ask(db, clusters.clusters, _clusters("a"), ids(4), SIDECAR)
    assert not problems
    assert istio.names == ("a", "new", "old")


def test_a_cluster_on_which_a_patch_fails_stays_as_it_was():
    db = Engine()
    pristine = _clusters("a", "b")
    add_filter(db, _merge({"altStatName": "x"}))
    broken: Resource | None = pristine.get("a")
    assert broken is not None
    object.__setattr__(broken, "data", b"\xff")
    found = clusters.clusters(db, pristine, ids(1), SIDECAR)
    assert found.get("a") is broken
    assert found.get("b").message().alt_stat_name == "x"


def test_filters_of_contrib_are_not_for_upstream_envoy():
    db = Engine()
    mysql = {"name": "m", "typedConfig": {"@type": NETWORK + "mysql_proxy.v3.MySQLProxy", "statPrefix": "x"}}
    add_filter(db, _merge({"filters": [mysql]}))
    _, (problem,) = ask(db, clusters.clusters, _clusters("a"), ids(1), UPSTREAM)
    assert "upstream Envoy lacks" in problem.message
