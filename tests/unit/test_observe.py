"""Metrics keep Istio's exact names; logs have a level per scope and never show a secret."""

import io
import json
import logging
import math
import pickle
from collections.abc import Iterator

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mizzen import observe
from mizzen.errors import UsageError


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    yield stream
    observe.set_levels("all:info")
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if handler.__class__.__module__ == "mizzen.observe"]:
        root.removeHandler(handler)


def parsed(registry: prometheus_client.CollectorRegistry) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(observe.render_metrics(registry).decode())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def test_counter_is_exported_under_its_plain_name(registry: prometheus_client.CollectorRegistry) -> None:
    pushes = observe.Counter("pilot_xds_pushes", "pushes by type", ("type",), registry)
    pushes.labels("cds").inc()
    pushes.labels(type="cds").inc(2)
    pushes.labels("eds").inc()
    assert observe.render_metrics(registry).decode().splitlines() == [
        "# HELP pilot_xds_pushes pushes by type",
        "# TYPE pilot_xds_pushes counter",
        'pilot_xds_pushes{type="cds"} 3',
        'pilot_xds_pushes{type="eds"} 1',
    ]
    assert pushes.value("cds") == 3
    assert pushes.total() == 4


def test_a_gauge_is_given_other_series_and_keeps_those_that_stay(registry: prometheus_client.CollectorRegistry) -> None:
    found = observe.Gauge("mizzen_things", "things", ("kind", "reason"), registry)
    observe.replace_series(found, {("a", ""): 1, ("b", ""): 2})
    observe.replace_series(found, {("b", ""): 3, ("b", "bad"): 4})
    assert parsed(registry) == {("mizzen_things", ("b", "")): 3, ("mizzen_things", ("b", "bad")): 4}


def test_counter_whose_name_ends_in_total_keeps_it(registry: prometheus_client.CollectorRegistry) -> None:
    observe.Counter("pilot_sds_certificate_errors_total", "refused", registry=registry).inc()
    assert observe.render_metrics(registry).splitlines()[-1] == b"pilot_sds_certificate_errors_total 1"


def test_counter_without_labels_shows_zero_from_the_start(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    observe.Counter("citadel_server_csr_count", "requests", registry=registry)
    assert observe.render_metrics(registry).splitlines()[-1] == b"citadel_server_csr_count 0"


def test_counter_never_goes_down(registry: prometheus_client.CollectorRegistry) -> None:
    with pytest.raises(ValueError, match="never goes down"):
        observe.Counter("falling", "no", registry=registry).inc(-1)


def test_two_metrics_of_one_name_are_refused(registry: prometheus_client.CollectorRegistry) -> None:
    observe.Counter("once", "first", registry=registry)
    with pytest.raises(ValueError, match=r"[Dd]uplicated"):
        observe.Counter("once", "second", registry=registry)


def test_wrong_labels_are_refused(registry: prometheus_client.CollectorRegistry) -> None:
    counter = observe.Counter("labelled", "x", ("type",), registry)
    with pytest.raises(ValueError, match="labels"):
        counter.inc()


def test_rendered_metrics_survive_a_prometheus_scrape(registry: prometheus_client.CollectorRegistry) -> None:
    observe.Counter("odd", 'say "x"\\ and\nmore', ("name",), registry).labels('q"\\\n').inc()
    observe.Gauge("level", "a gauge", ("x",), registry).labels("1").set(math.inf)
    histogram = observe.Histogram("took", "seconds", (0.1, 1), registry=registry)
    histogram.observe(0.5)
    prometheus_client.ProcessCollector(registry=registry)
    values = parsed(registry)
    # This parser, unlike Prometheus, appends `_total` to the name of every counter.
    assert values["odd_total", ('q"\\\n',)] == 1
    assert values["level", ("1",)] == math.inf
    assert values["took_bucket", ("0.1",)] == 0
    assert values["took_bucket", ("+Inf",)] == 1
    assert values["took_count", ()] == 1
    assert values["process_cpu_seconds_total", ()] > 0
    assert not [name for name, _ in values if name.endswith("_created")]


def test_each_scope_has_its_level(log: io.StringIO) -> None:
    observe.set_up_logging("default:warn,ads:debug", stream=log)
    observe.scope("ads").debug("seen")
    observe.scope("ca").info("not seen")
    observe.scope().warning("seen too")
    lines = [line.split("\t")[1:] for line in log.getvalue().splitlines()]
    assert lines == [["debug", "ads", "seen"], ["warn", "default", "seen too"]]


def test_level_none_silences_a_scope(log: io.StringIO) -> None:
    observe.set_up_logging("ads:none", stream=log)
    observe.scope("ads").critical("gone")
    assert log.getvalue() == ""


def test_levels_change_while_running(log: io.StringIO) -> None:
    observe.set_up_logging("info", stream=log)
    observe.scope("ads").debug("before")
    observe.set_levels("ads:debug")
    observe.scope("ads").debug("after")
    assert log.getvalue().endswith("after\n")
    assert "before" not in log.getvalue()
    assert observe.scopes()["ads"] == "debug"


def test_set_up_twice_writes_once(log: io.StringIO) -> None:
    observe.set_up_logging(stream=io.StringIO())
    observe.set_up_logging(stream=log)
    observe.scope("ads").info("once")
    assert log.getvalue().count("once") == 1


def test_unknown_level_names_what_is_known() -> None:
    with pytest.raises(UsageError, match=r"'loud'.*debug, info, warn"):
        observe.parse_levels("ads:loud")


def test_json_lines_have_time_level_scope_and_message(log: io.StringIO) -> None:
    observe.set_up_logging(as_json=True, stream=log)
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        observe.scope("ads").exception("push of %s failed", "a")
    entry = json.loads(log.getvalue())
    assert (entry["level"], entry["scope"], entry["msg"]) == ("error", "ads", "push of a failed")
    assert entry["time"].endswith("Z")
    assert "RuntimeError: broken" in entry["stack"]


KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"


def test_secrets_are_redacted_by_type() -> None:
    secret = observe.Secret(b"hunter2")
    assert f"{secret} {secret!r} {secret!s}".split() == ["[redacted]"] * 3
    assert secret.reveal() == b"hunter2"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_keys_and_tokens_are_cut_out_of_lines_and_tracebacks(log: io.StringIO) -> None:
    observe.set_up_logging(stream=log)
    observe.scope("ca").info("read %s and %s", KEY, TOKEN)
    try:
        raise ValueError(f"cannot load {KEY} for {TOKEN}")
    except ValueError:
        observe.scope("ca").exception("failed")
    text = log.getvalue()
    assert "MHcCAQEE" not in text
    assert "eyJ" not in text
    assert text.count("[redacted]") == 4


def test_unfinished_private_key_is_cut_to_the_end() -> None:
    assert observe.redact("a -----BEGIN PRIVATE KEY-----\nMIGH") == "a [redacted]"
