"""Our metrics that are Istio's have exactly Istio's names, kinds and labels, and those that are not have our name."""

import pathlib
import re

import prometheus_client
from istio_metrics import METRICS, Metric

from mizzen import observe
from mizzen.agent import main as agent
from mizzen.control import main as control_plane

KINDS = {prometheus_client.Gauge: "G", prometheus_client.Histogram: "D"}
PROGRAMS = (control_plane, agent)
"""Whose modules have registered their metrics once these are here."""


def registered() -> dict[str, Metric]:
    """All metrics of the control plane and the agent."""
    found = {}
    for collector in {*observe.REGISTRY._collector_to_names}:
        if not isinstance(collector, (observe.Counter, *KINDS)):
            continue
        if isinstance(collector, observe.Counter):
            found[collector.name] = Metric("S", frozenset(collector._labels))
        else:
            found[collector._name] = Metric(KINDS[type(collector)], frozenset(collector._labelnames))
    return found


def test_names_kinds_and_labels_are_istios() -> None:
    found = registered()
    own = {name for name in found if name.startswith("mizzen_")}
    assert {name: found[name] for name in found.keys() - own - METRICS.keys()} == {}
    assert {
        name: (found[name], METRICS[name]) for name in found.keys() & METRICS.keys() if found[name] != METRICS[name]
    } == {}
    assert len(found.keys() & METRICS.keys()) > 60


def test_no_counter_is_exposed_under_another_name() -> None:
    names = {name for name, metric in registered().items() if metric.kind == "S" and not name.endswith("_total")}
    told = {line.partition("{")[0].partition(" ")[0] for line in observe.render_metrics().decode().splitlines()}
    assert told & {f"{name}_total" for name in names} == set()
    assert len(told & names) > 10


def _names(rows: list[str], column: int) -> set[str]:
    return {name for row in rows for name in re.findall(r"`(\w+)[`{]", row.split("|")[column])}


def test_what_istios_control_plane_has_is_here_or_the_page_says_why_not() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    here, absent = ([line for line in part.splitlines() if line.startswith("| `")] for part in page.split("not here\n"))
    found = {name for name in registered() if name in METRICS}
    missing = {name for name in METRICS.keys() - found if not name.startswith("istio_agent_")}
    assert _names(absent, 1) == missing
    assert all(row.split("|")[2].strip() for row in absent)
    assert _names(here, 1) <= registered().keys()
    of_serving = {name for name in found if name.startswith(("pilot_xds", "pilot_push", "pilot_proxy", "xds_cache"))}
    assert of_serving <= _names(here, 1)
