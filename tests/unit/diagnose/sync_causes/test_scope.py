"""The rule of scope: what many lack is held up at the control plane, what few lack is theirs, refusals are faults."""

import datetime
from typing import Any

import pytest

from mizzen.diagnose import sync
from mizzen.diagnose.sync_causes import scope, text, timing

CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
LDS = "type.googleapis.com/envoy.config.listener.v3.Listener"
NOW = datetime.datetime(2026, 1, 1, 0, 10, tzinfo=datetime.UTC)
OLD = "2026-01-01T00:00:00Z"

STALE = {"sent": "n2", "acked": "n1", "sentTime": OLD}
SYNCED = {"sent": "n1", "acked": "n1", "sentTime": OLD}
REFUSED = {**STALE, "lastError": "no such filter"}


def proxies(*records: dict[str, Any], url: str = CDS) -> list[sync.ProxyStatus]:
    payload = [{"proxy": f"app-{i}.shop", "resources": {url: record}} for i, record in enumerate(records)]
    return sync.read_syncz(payload, "istiod")


def findings(*records: dict[str, Any], **more: Any) -> list[scope.Finding]:
    return scope.explain(scope.Told(proxies=proxies(*records), **more), now=NOW)


@pytest.mark.parametrize(
    ("stale", "synced", "culprit"),
    [
        (1, 0, "proxy"),
        (1, 1, "proxy"),
        (1, 9, "proxy"),
        (2, 0, "control plane"),
        (2, 2, "proxy"),
        (3, 2, "control plane"),
        (60, 40, "control plane"),
        (40, 60, "proxy"),
    ],
)
def test_most_that_watch_are_many(stale: int, synced: int, culprit: str) -> None:
    (found,) = findings(*[STALE] * stale, *[SYNCED] * synced)

    assert (found.type, found.state, found.culprit) == ("CDS", "STALE", culprit)
    assert len(found.proxies) == stale
    assert found.watching == stale + synced


def test_those_that_do_not_watch_a_type_do_not_count() -> None:
    others = proxies(*[SYNCED] * 20, url=LDS)
    told = scope.Told(proxies=[*proxies(STALE, STALE), *others])

    assert [each.culprit for each in scope.explain(told, now=NOW)] == ["control plane"]


def test_all_in_step_is_nothing_to_tell() -> None:
    assert findings(SYNCED, SYNCED) == []
    assert text.render([], {}, 2) == "2 proxies are in step with what was sent\n"


def test_a_refusal_is_the_configuration_however_many_refuse() -> None:
    problems = {
        "objects": [
            {"code": "rejected", "kind": "EnvoyFilter", "namespace": "shop", "name": "odd", "file": "a.yaml", "line": 3,
             "message": "CDS x is refused by Envoy: no such filter"},
            {"code": "rejected", "kind": "EnvoyFilter", "namespace": "shop", "name": "other",
             "message": "CDS y is refused by Envoy: duplicate domain"},
            {"code": "unusable-route", "kind": "VirtualService", "namespace": "shop", "name": "v",
             "message": "no such filter"},
        ],
        "rejections": [
            {"proxy": "app-0.shop", "typeUrl": CDS, "error": "no such filter", "resources": ["x"]},
            {"proxy": "app-0.shop", "typeUrl": LDS, "error": "no such filter", "resources": ["listener"]},
        ],
    }  # fmt: skip
    (found,) = findings(REFUSED, REFUSED, REFUSED, problems=problems)

    assert (found.state, found.culprit) == ("ERROR", "configuration")
    assert found.objects == ("EnvoyFilter shop/odd (a.yaml:3)",)
    assert found.evidence == ("Envoy says: no such filter", "resource x")
    assert "mizzen proxy-status app-0.shop" in found.next


def test_each_error_is_a_finding_of_its_own() -> None:
    found = findings(REFUSED, {**REFUSED, "lastError": "other"}, REFUSED)

    assert [(each.proxies, each.evidence[0]) for each in found] == [
        (("app-0.shop", "app-2.shop"), "Envoy says: no such filter"),
        (("app-1.shop",), "Envoy says: other"),
    ]


def test_what_was_sent_just_now_is_nobodys_fault() -> None:
    (found,) = findings({**STALE, "sentTime": "2026-01-01T00:09:59Z"}, SYNCED)

    assert found.culprit == "nobody"
    assert "again" in found.next


def test_a_proxy_that_never_answered_is_told_from_a_slow_one() -> None:
    (slow,) = findings(STALE, SYNCED)
    (mute,) = findings({"sent": "n1", "sentTime": OLD}, SYNCED)

    assert slow.evidence == ("sent 10m ago",)
    assert mute.evidence[1] == "never acknowledged on this connection by app-0.shop"


def test_nothing_of_a_type_is_no_fault() -> None:
    (found,) = findings({"sentTime": "0001-01-01T00:00:00Z"})

    assert (found.state, found.culprit) == ("NOT SENT", "nobody")


def test_proxies_that_are_away() -> None:
    (found,) = scope.explain_absent(["a.shop", "b.shop"], ["a.shop", "c.shop"])
    assert (found.proxies, found.watching, found.culprit) == (("c.shop",), 3, "connection")

    (nobody,) = scope.explain_absent([], ["a.shop", "c.shop"])
    assert nobody.culprit == "control plane"
    assert scope.explain_absent(["a.shop"], ["a.shop"]) == []


METRICS = """\
# TYPE pilot_proxy_queue_time histogram
pilot_proxy_queue_time_bucket{le="0.1"} 10
pilot_proxy_queue_time_bucket{le="3.0"} 99
pilot_proxy_queue_time_bucket{le="+Inf"} 100
pilot_proxy_queue_time_sum 150
pilot_proxy_queue_time_count 100
pilot_xds_push_time_bucket{type="cds",le="0.1"} 4
pilot_xds_push_time_bucket{type="cds",le="+Inf"} 4
pilot_xds_push_time_bucket{type="lds",le="0.1"} 0
pilot_xds_push_time_bucket{type="lds",le="+Inf"} 4
pilot_xds_push_time_sum{type="cds"} 0.1
pilot_xds_push_time_count{type="cds"} 4
pilot_xds_push_time_sum{type="lds"} 80.0
pilot_xds_push_time_count{type="lds"} 4
pilot_debounce_time_count 0
mizzen_loop_lag_seconds_bucket{le="0.01"} 7
mizzen_loop_lag_seconds_bucket{le="+Inf"} 7
mizzen_loop_lag_seconds_sum 0.007
mizzen_loop_lag_seconds_count 7
nonsense{ 3
"""


def test_timings_are_read_over_all_labels() -> None:
    queue, push, lag = timing.read_timings(METRICS)

    assert str(queue).startswith("pilot_proxy_queue_time: mean 1.5 s, 99 % within 3 s, of 100")
    assert (push.count, push.mean, push.high) == (8, pytest.approx(10.0125), float("inf"))
    assert "some beyond all buckets" in str(push)
    assert not lag.is_slow
    assert timing.slowest((queue, push, lag)) is push


def test_load_is_cpu_and_causes_of_pushes() -> None:
    text = """\
process_cpu_seconds_total 30.0
process_start_time_seconds 1000.0
pilot_push_triggers{type="endpoint"} 7.0
pilot_push_triggers{type="config"} 9.0
pilot_push_triggers{type="secret"} 0.0
"""
    assert timing.read_load(text, 1060.0) == (
        "process_cpu_seconds_total: 0.50 of a core on average since its start",
        "pilot_push_triggers: config 9, endpoint 7",
    )
    assert timing.read_load("", 1060.0) == ()
    (found,) = findings(STALE, STALE, load=timing.read_load(text, 1060.0))
    assert found.evidence[1].startswith("process_cpu_seconds_total: 0.50")


def test_the_control_plane_is_told_where_its_time_goes() -> None:
    (found,) = findings(STALE, STALE, timings=timing.read_timings(METRICS))

    assert "responses are built and sent" in found.why
    assert found.evidence[0] == "sent 10m ago"
    assert len(found.evidence) == 4


def test_a_healthy_control_plane_has_no_slowest_stage() -> None:
    assert timing.slowest(timing.read_timings("\n".join(METRICS.splitlines()[-6:]))) is None


def test_text_names_what_differs() -> None:
    (found,) = findings(STALE, SYNCED)
    lines = text.render([found], {"app-0.shop": ["clusters"], "b.shop": []}, 2).splitlines()

    assert lines[0] == "CDS STALE at 1 of 2: app-0.shop"
    assert lines[-2:] == [
        "app-0.shop holds other clusters than it would be sent: `mizzen proxy-status app-0.shop`",
        "b.shop holds what it would be sent",
    ]
