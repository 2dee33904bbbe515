"""Merged metrics: targets as the injector saved them, bodies in order, one format for all."""

import json

import pytest

from mizzen.agent.status import scrape
from mizzen.agent.status.scrape import Merged, Target
from mizzen.errors import DecodeError

OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize(
    ("annotations", "targets"),
    [
        ("", ()),
        ({"scrape": "false", "port": "8080"}, ()),
        ({"scrape": "true", "port": "8080", "path": "/stats"}, (Target(8080, "/stats"),)),
        ({"scrape": "true", "port": "8080"}, (Target(8080, "/metrics"),)),
        ({"scrape": "True", "port": 8080, "path": "stats"}, (Target(8080, "/stats"),)),
        ({"scrape": "true"}, (Target(80, "/metrics"),)),
        (
            {"scrape": "true", "port": "1", "targets": [{"port": "1", "path": "/a"}, {"port": 2}]},
            (Target(1, "/a"), Target(2, "/metrics")),
        ),
    ],
)
def test_targets(annotations, targets) -> None:
    text = json.dumps(annotations) if annotations else ""
    assert scrape.parse_targets(text) == targets


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"scrape": "true", "port": "http"}', '{"scrape": "true", "targets": [{}]}']
)
def test_broken_annotations_are_named(text: str) -> None:
    with pytest.raises(DecodeError, match="ISTIO_PROMETHEUS_ANNOTATIONS"):
        scrape.parse_targets(text)


def test_text_bodies_follow_one_another() -> None:
    merged = scrape.merge_metrics([b"agent 1\n", b"envoy 1"], [Merged(b"app 1", "text/plain")])
    assert merged == Merged(b"agent 1\nenvoy 1\napp 1\n", TEXT)
    assert scrape.merge_metrics([b"agent 1\n"], []) == Merged(b"agent 1\n", TEXT)


def test_open_metrics_end_once_and_decide_the_format() -> None:
    parts = [Merged(b"a 1\n# EOF\n", OPEN_METRICS), Merged(b"b 1\n# EOF", OPEN_METRICS)]
    assert scrape.merge_metrics([b"agent 1\n"], parts) == Merged(b"agent 1\na 1\nb 1\n# EOF\n", OPEN_METRICS)
