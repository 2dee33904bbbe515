"""Sync states from nonces, and their tables."""

import datetime

import pytest

from mizzen.diagnose import sync
from mizzen.errors import DecodeError

CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def status(**record: str) -> sync.TypeStatus:
    (proxy,) = sync.read_syncz([{"proxy": "a.b", "resources": {CDS: record}}], "plane")
    found = proxy.of(CDS)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("record", "cell", "classic"),
    [
        ({}, "NOT SENT", "NOT SENT"),
        ({"sent": "1", "acked": "1"}, "SYNCED", "SYNCED"),
        ({"sent": "2", "acked": "1"}, "STALE", "STALE"),
        ({"sent": "2"}, "STALE", "STALE (Never Acknowledged)"),
        ({"sent": "1", "acked": "1", "lastError": "bad"}, "ERROR", "ERROR"),
        ({"sent": "1", "acked": "1", "sentTime": "2026-01-01T11:59:30Z"}, "SYNCED (30s)", "SYNCED"),
        ({"sentTime": "2026-01-01T11:59:30Z"}, "NOT SENT", "NOT SENT"),
        ({"sent": "1", "acked": "1", "sentTime": "yesterday"}, "SYNCED", "SYNCED"),
    ],
)
def test_a_state_is_told_from_nonces(record: dict[str, str], cell: str, classic: str) -> None:
    found = status(**record)

    assert (found.text(NOW), found.classic_text()) == (cell, classic)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (4 * 3600 + 120, "4h2m"),
        (8 * 3600 + 120, "8h"),
        (47 * 3600, "47h"),
        (49 * 3600, "2d1h"),
        (48 * 3600, "2d"),
        (9 * 86400 + 3600, "9d"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_read_as_kubernetes_writes_them(seconds: float, text: str) -> None:
    assert sync.format_age(seconds) == text


def test_flat_fields_of_older_control_planes_count() -> None:
    (proxy,) = sync.read_syncz([{"proxy": "a.b", "cluster_sent": "1", "cluster_acked": "1"}], "plane")

    assert [s.classic_text() for s in proxy.types] == ["SYNCED", *["NOT SENT"] * 4]


def test_types_beyond_the_core_get_their_short_names() -> None:
    resources = {
        "type.googleapis.com/istio.networking.nds.v1.NameTable": {"sent": "1", "acked": "1"},
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret": {"sent": "1"},
        "example.com/Own": {},
    }
    proxies = sync.read_syncz([{"proxy": "a.b", "resources": resources}], "plane")

    assert sync.build_full_table(proxies, NOW).columns == (
        *("NAME", "CLUSTER", "example.com/Own", "CDS", "ECDS", "EDS", "LDS", "RDS", "SDS", "NDS"),
        *("ISTIOD", "VERSION"),
    )
    assert sync.build_condensed_table(proxies).rows[0][-1] == "3 (example.com/Own,SDS,NDS)"


def test_a_proxy_that_watches_nothing_says_0() -> None:
    assert sync.build_condensed_table(sync.read_syncz([{"proxy": "a.b", "resources": {}}], "x")).rows[0][-1] == "0"


def test_classic_rows_sort_by_cluster_then_name() -> None:
    payload = [{"proxy": p, "cluster_id": c} for p, c in (("z.a", "one"), ("b.a", "two"), ("a.a", "two"))]

    rows = sync.build_classic_table(sync.read_syncz(payload, "x")).rows

    assert [row[0] for row in rows] == ["z.a", "a.a", "b.a"]


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(DecodeError, match="syncz: not a list of proxies"):
        sync.read_syncz({"error": "x"}, "plane")
