"""Which patches are for a proxy, and in what order."""

from typing import Any

from envoy_patches import add_filter, write_patch

from mizzen.incremental import Engine
from mizzen.model import envoy_filters
from mizzen.model.envoy_filters import NONE, Selection
from mizzen.model.proxy import Proxy, parse_node

REMOVE = write_patch("CLUSTER", "REMOVE")


def _proxy(kind: str = "sidecar", namespace: str = "shop", **metadata: Any) -> Proxy:
    return parse_node(
        {
            "id": f"{kind}~10.0.0.1~p.{namespace}~{namespace}.svc.cluster.local",
            "metadata": {"NAMESPACE": namespace, "ISTIO_VERSION": "1.32.0", "LABELS": {"app": "a"}, **metadata},
        }
    )


def _selected(db: Engine, proxy: Proxy | None = None) -> Selection:
    return envoy_filters.select(db, proxy or _proxy())


def _names(db: Engine, proxy: Proxy | None = None) -> list[str]:
    return [f"{p.name}.{p.namespace}" for p in _selected(db, proxy).clusters]


def test_without_filters_there_is_nothing():
    assert _selected(Engine()) is NONE


def test_filters_of_the_root_and_of_the_own_namespace_count():
    db = Engine()
    for namespace in ("istio-system", "shop", "pay"):
        add_filter(db, REMOVE, namespace=namespace)
    assert _names(db) == ["f.istio-system", "f.shop"]
    assert _names(db, _proxy(namespace="istio-system")) == ["f.istio-system"]


def test_order_is_priority_then_root_then_age_then_name():
    db = Engine()
    add_filter(db, REMOVE, name="young", created="2026-01-02T00:00:00Z")
    add_filter(db, REMOVE, name="old", created="2026-01-01T00:00:00Z")
    add_filter(db, REMOVE, name="b-undated")
    add_filter(db, REMOVE, name="a-undated")
    add_filter(db, REMOVE, name="root", namespace="istio-system", created="2026-01-03T00:00:00Z")
    add_filter(db, REMOVE, name="last-root", namespace="istio-system", priority=3)
    add_filter(db, REMOVE, name="first", priority=-1)
    assert _names(db) == [
        "first.shop",
        "root.istio-system",
        "old.shop",
        "young.shop",
        "a-undated.shop",
        "b-undated.shop",
        "last-root.istio-system",
    ]


def test_a_selector_needs_all_its_labels():
    db = Engine()
    add_filter(db, REMOVE, name="mine", workloadSelector={"labels": {"app": "a"}})
    add_filter(db, REMOVE, name="others", workloadSelector={"labels": {"app": "a", "version": "v1"}})
    assert _names(db) == ["mine.shop"]


def test_patches_stand_by_what_they_patch():
    db = Engine()
    kinds = [
        "LISTENER",
        "LISTENER_FILTER",
        "FILTER_CHAIN",
        "NETWORK_FILTER",
        "HTTP_FILTER",
        "ROUTE_CONFIGURATION",
        "VIRTUAL_HOST",
        "HTTP_ROUTE",
        "CLUSTER",
        "EXTENSION_CONFIG",
        "BOOTSTRAP",
        "INVALID",
    ]
    add_filter(db, *(write_patch(kind, "REMOVE") for kind in kinds), {"applyTo": "CLUSTER"})
    found = _selected(db)
    assert [p.position for p in found.listeners] == [0, 1, 2, 3, 4]
    assert [p.position for p in found.routes] == [5, 6, 7]
    assert [p.position for p in found.clusters] == [8]
    assert [p.position for p in found.extensions] == [9]


def test_the_context_goes_by_the_kind_of_proxy_but_not_for_extensions():
    db = Engine()
    contexts = ("ANY", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY", "WAYPOINT")
    add_filter(
        db,
        *(write_patch("CLUSTER", "REMOVE", context=c) for c in contexts),
        write_patch("EXTENSION_CONFIG", "ADD", {}, context="GATEWAY"),
    )
    assert [p.position for p in _selected(db).clusters] == [0, 1, 2]
    assert [p.position for p in _selected(db, _proxy("router")).clusters] == [0, 3]
    assert [p.position for p in _selected(db).extensions] == [5]


def _matching(match: dict[str, Any], **metadata: Any) -> bool:
    db = Engine()
    add_filter(db, write_patch("CLUSTER", "REMOVE", proxy=match))
    return bool(_selected(db, _proxy(**metadata)).clusters)


def test_a_version_is_found_anywhere():
    assert _matching({"proxyVersion": r"^1\.32.*"})
    assert _matching({"proxyVersion": "32"})
    assert not _matching({"proxyVersion": r"^1\.2[0-9]"})


def test_no_version_matches_no_pattern():
    assert not _matching({"proxyVersion": ".*"}, ISTIO_VERSION="")
    assert not _matching({"proxyVersion": ".*"}, ISTIO_VERSION=132)
    assert not _matching({"proxyVersion": ".*"}, ISTIO_VERSION="1.é")


def test_what_is_no_pattern_matches_no_version():
    for pattern in ("(", "(?=1)", "\ud800", "1?" * 600):
        assert not _matching({"proxyVersion": pattern})


def test_metadata_are_compared_as_texts():
    assert _matching({"metadata": {"NAMESPACE": "shop", "X": "1"}}, X="1")
    assert not _matching({"metadata": {"X": "1"}}, X=1)
    assert not _matching({"metadata": {"X": "1"}})


def test_equal_proxies_have_equal_selections():
    db = Engine()
    add_filter(db, REMOVE, write_patch("CLUSTER", "REMOVE", proxy={"metadata": {"X": "1"}}))
    assert _selected(db, _proxy(X="2")) == _selected(db, _proxy(X="3"))
    assert hash(_selected(db, _proxy(X="2"))) == hash(_selected(db, _proxy(X="3")))
    assert _selected(db, _proxy(X="1")) != _selected(db, _proxy(X="2"))


def test_a_new_filter_elsewhere_runs_nothing_again():
    db = Engine()
    add_filter(db, REMOVE)
    _selected(db)
    before = db.runs
    add_filter(db, REMOVE, namespace="pay")
    _selected(db)
    assert db.runs == before
