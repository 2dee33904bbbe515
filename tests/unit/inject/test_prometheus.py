import json

import pytest
from injected_pods import annotations, build_pod, environment, inject, refuse

from mizzen.inject.prometheus import merge_scrape, restore_annotations

MERGED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": "15020",
    "prometheus.io/path": "/stats/prometheus",
}
SCRAPED = "ISTIO_PROMETHEUS_ANNOTATIONS"


def _prometheus(pod: dict[str, object]) -> dict[str, str]:
    return {name: value for name, value in annotations(pod).items() if "prometheus" in name}


def test_a_pod_without_annotations_is_scraped_at_the_agent() -> None:
    pod = inject(build_pod())
    assert _prometheus(pod) == MERGED
    assert SCRAPED not in environment(pod)


def test_the_applications_own_scrape_is_told_to_the_agent() -> None:
    pod = inject(build_pod(annotations={"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}))
    assert _prometheus(pod) == MERGED
    assert json.loads(environment(pod)[SCRAPED]) == {"scrape": "true", "path": "", "port": "8080"}


def test_other_spellings_are_understood_and_removed() -> None:
    pod = inject(build_pod(annotations={"prometheus_io/port": "8080", "prometheus.io.path": "/m"}))
    assert _prometheus(pod) == MERGED
    assert json.loads(environment(pod)[SCRAPED]) == {"scrape": "", "path": "/m", "port": "8080"}


def test_several_targets_are_scraped_the_first_one_in_the_old_form_too() -> None:
    targets = {"prometheus.istio.io/scrape-targets": "8080:/metrics, 9100:/custom,9200"}
    pod = inject(build_pod(annotations=targets))
    assert _prometheus(pod) == MERGED
    assert json.loads(environment(pod)[SCRAPED]) == {
        "scrape": "true",
        "path": "/metrics",
        "port": "8080",
        "targets": [
            {"path": "/metrics", "port": "8080"},
            {"path": "/custom", "port": "9100"},
            {"path": "/metrics", "port": "9200"},
        ],
    }


@pytest.mark.parametrize(
    ("chosen", "mesh"),
    [
        ({"prometheus.io/scrape": "false"}, None),
        ({"prometheus.io/port": "15020"}, None),
        ({"prometheus.istio.io/merge-metrics": "false"}, None),
        ({"prometheus.io/port": "80"}, {"enablePrometheusMerge": False}),
    ],
)
def test_what_turns_merging_off_leaves_the_annotations_alone(
    chosen: dict[str, str], mesh: dict[str, object] | None
) -> None:
    assert _prometheus(inject(build_pod(annotations=chosen), mesh=mesh)) == chosen


def test_the_pods_word_on_merging_beats_the_meshs() -> None:
    pod = build_pod(annotations={"prometheus.istio.io/merge-metrics": "true"})
    assert _prometheus(inject(pod, mesh={"enablePrometheusMerge": False})).items() >= MERGED.items()


def test_the_meshs_status_port_is_announced() -> None:
    pod = inject(build_pod(), mesh={"defaultConfig": {"statusPort": 15999}})
    assert annotations(pod)["prometheus.io/port"] == "15999"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("prometheus.io/port", "0", "no port between 1 and 65535"),
        ("prometheus.io/port", "web", "no port between 1 and 65535"),
        ("prometheus.io/port", "15090", "port 15090 belongs to the proxy"),
        ("prometheus.istio.io/scrape-targets", "8080:/a,15020:/b", "port 15020 belongs to the proxy"),
        ("prometheus.istio.io/scrape-targets", "x:/a", "no port between 1 and 65535"),
    ],
)
def test_a_target_that_cannot_be_scraped_refuses_the_pod(name: str, value: str, message: str) -> None:
    (problem,) = refuse(build_pod(annotations={name: value}))
    assert f'annotations["{name}"]' in problem
    assert message in problem


@pytest.mark.parametrize(
    "original",
    [
        {},
        {"prometheus.io/port": "8080"},
        {"prometheus.io/scrape": "true", "prometheus.io/path": "/m"},
        {"prometheus.istio.io/scrape-targets": "8080:/m,9100:/n"},
        {"prometheus.io/scrape": "false"},
    ],
)
def test_restoring_gives_back_the_users_annotations(original: dict[str, str]) -> None:
    scrape, _ = merge_scrape({"other": "kept", **original}, status_port=15020)
    assert restore_annotations(scrape.annotations, scrape.application) == {"other": "kept", **original}
