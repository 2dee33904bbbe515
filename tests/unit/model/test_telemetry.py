"""Which Telemetries hold for a workload, and what several of them say together."""

import listener_mesh
import pytest

from mizzen.model import telemetry
from mizzen.model.attachments import Audience
from mizzen.model.telemetry import LogChoice

TEMPLATE = """
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {{name: {name}, namespace: {namespace}, creationTimestamp: "2026-01-01T00:00:{age:02}Z"}}
spec: {spec}
"""
CART = Audience("sidecar", "shop", (("app", "cart"),))
SELECTS_CART = "selector: {matchLabels: {app: cart}}"


def objects(*written: tuple[str, str, str]):
    """Telemetries of (name, namespace, spec), the first the oldest."""
    return "---".join(
        TEMPLATE.format(name=name, namespace=namespace, spec=spec, age=age)
        for age, (name, namespace, spec) in enumerate(written)
    )


def selected(*written, audience=CART):
    db = listener_mesh.mesh_of(objects(*written))
    return [key.name for key in telemetry.telemetries(db, audience)]


def said(question, mode, *specs, mesh=None):
    """What `question` answers for the cart, where these specs hold, the outermost first."""
    levels = [("mesh", "istio-system", specs[0])] if specs else []
    levels += [(f"t{i}", "shop", f"{{{SELECTS_CART}, {spec[1:]}") for i, spec in enumerate(specs[1:])]
    db = listener_mesh.mesh_of(objects(*levels), **(mesh or {}))
    return question(db, telemetry.telemetries(db, CART), mode)


def test_the_mesh_comes_first_then_the_namespace_then_all_that_select_the_workload_by_age():
    found = selected(
        ("younger", "shop", f"{{{SELECTS_CART}}}"),
        ("a", "shop", "{}"),
        ("zz", "shop", f"{{{SELECTS_CART}}}"),
        ("m", "istio-system", "{}"),
    )
    assert found == ["m", "a", "younger", "zz"]


def test_of_two_for_a_whole_namespace_the_older_counts():
    assert selected(("z", "shop", "{}"), ("a", "shop", "{}")) == ["z"]


@pytest.mark.parametrize("nothing", ["{}", "{selector: {}}", "{selector: {matchLabels: {}}}"])
def test_a_selector_without_labels_selects_nothing_in_particular(nothing):
    assert selected(("a", "shop", nothing)) == ["a"]


def test_a_selector_in_the_root_namespace_reaches_its_own_pods_only():
    written = ("edge", "istio-system", f"{{{SELECTS_CART}}}")
    assert selected(written) == []
    assert selected(written, audience=Audience("router", "istio-system", (("app", "cart"),))) == ["edge"]


def test_a_pod_of_the_root_namespace_meets_its_telemetry_once():
    assert selected(("m", "istio-system", "{}"), audience=Audience("router", "istio-system", ())) == ["m"]


def test_references_reach_gateways_and_no_sidecars():
    spec = "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]}"
    service = "{targetRefs: [{kind: Service, name: cart}]}"
    gateway = Audience("router", "shop", (("gateway.networking.k8s.io/gateway-name", "edge"),))
    assert selected(("by-gateway", "shop", spec), ("by-service", "shop", service)) == []
    assert selected(("by-gateway", "shop", spec), ("by-service", "shop", service), audience=gateway) == ["by-gateway"]


# -- access logs ------------------------------------------------------------------------------------------------------


def logs(mode, *specs, default=("d",)):
    mesh = {"defaultProviders": {"accessLogging": list(default)}}
    found = said(telemetry.access_logs, mode, *(f"{{accessLogging: {spec}}}" for spec in specs), mesh=mesh)
    return None if found is None else {choice.provider: choice.expression for choice in found}


def test_without_any_word_the_meshs_older_settings_hold():
    assert logs("CLIENT", default=()) is None
    assert logs("CLIENT") == {"d": ""}


def test_a_telemetry_without_any_provider_silences_the_older_settings():
    assert logs("CLIENT", "[{filter: {expression: x}}]", default=()) == {}


def test_the_innermost_level_that_names_providers_replaces_the_others():
    assert logs("CLIENT", "[{providers: [{name: a}, {name: b}]}]", "[{providers: [{name: c}]}]") == {"c": ""}
    assert logs("CLIENT", "[{providers: [{name: a}, {name: b}]}]", "[{disabled: false}]") == {"a": "", "b": ""}


def test_a_filter_belongs_to_the_providers_that_are_named_beside_it():
    assert logs("CLIENT", "[{providers: [{name: a}], filter: {expression: x}}]", "[{filter: {expression: y}}]") == {
        "a": "x"
    }
    assert logs("CLIENT", "[{filter: {expression: y}}]") == {"d": ""}


def test_what_is_switched_off_can_be_switched_on_again():
    off = "[{providers: [{name: a}], disabled: true}]"
    assert logs("CLIENT", off) == {}
    assert logs("CLIENT", off, "[{providers: [{name: a}]}]") == {"a": ""}
    assert logs("CLIENT", "[{disabled: true}]") == {}


def test_sides_are_told_apart():
    spec = "[{match: {mode: CLIENT}, providers: [{name: a}]}, {match: {mode: SERVER}, disabled: true}]"
    assert logs("CLIENT", spec) == {"a": ""}
    # The entry for servers has the providers of the entry before it, which are not the server's.
    assert logs("SERVER", spec) == {}


def test_loggers_stand_sorted_by_name():
    found = said(telemetry.access_logs, "CLIENT", "{accessLogging: [{providers: [{name: b}, {name: a}]}]}")
    assert found == (LogChoice(provider="a"), LogChoice(provider="b"))


# -- metrics ----------------------------------------------------------------------------------------------------------


def metrics(mode, *specs, default=("p",)):
    mesh = {"defaultProviders": {"metrics": list(default)}}
    return said(telemetry.metrics, mode, *(f"{{metrics: {spec}}}" for spec in specs), mesh=mesh)


def changes(mode, *specs):
    (choice,) = metrics(mode, *specs)
    return {
        change.metric: (change.drop, {tag.label: tag.expression for tag in change.tags}) for change in choice.changes
    }


def test_default_providers_count_and_named_ones_replace_them():
    assert [c.provider for c in metrics("CLIENT")] == ["p"]
    assert [c.provider for c in metrics("CLIENT", "[{providers: [{name: q}]}]")] == ["q"]
    assert metrics("CLIENT", default=()) == ()


def test_inner_changes_are_laid_over_outer_ones_label_by_label():
    outer = "[{overrides: [{match: {metric: REQUEST_COUNT}, tagOverrides: {a: {value: x}, b: {value: y}}}]}]"
    inner = "[{overrides: [{match: {metric: REQUEST_COUNT}, tagOverrides: {b: {operation: REMOVE}}}]}]"
    assert changes("CLIENT", outer, inner) == {"REQUEST_COUNT": (False, {"a": "x", "b": None})}


def test_a_match_without_a_metric_means_all_of_them():
    found = changes("CLIENT", "[{overrides: [{tagOverrides: {a: {operation: REMOVE}}}]}]")
    assert len(found) == 10
    assert set(map(str, found.values())) == {str((False, {"a": None}))}


def test_a_metric_can_be_dropped_and_brought_back():
    off = "[{overrides: [{match: {metric: REQUEST_SIZE}, disabled: true}]}]"
    on = "[{overrides: [{match: {metric: REQUEST_SIZE}, disabled: false}]}]"
    assert changes("CLIENT", off)["REQUEST_SIZE"][0] is True
    assert changes("CLIENT", off, on)["REQUEST_SIZE"][0] is False


def test_all_metrics_off_is_silence_until_any_metric_is_spoken_of_again():
    off = "[{overrides: [{match: {mode: CLIENT}, disabled: true}]}]"
    labelled = "[{overrides: [{match: {metric: RESPONSE_SIZE}, tagOverrides: {z: {value: v}}}], reportingInterval: 7s}]"
    again = "[{overrides: [{match: {metric: REQUEST_SIZE, mode: CLIENT}, tagOverrides: {a: {value: x}}}]}]"
    assert metrics("CLIENT", off) == ()
    assert len(metrics("SERVER", off)) == 1
    (revived,) = metrics("CLIENT", labelled, off, again)
    assert [c.metric for c in revived.changes] == ["REQUEST_SIZE", "RESPONSE_SIZE"]
    assert revived.reporting_interval.total_seconds == 7


def test_changes_for_providers_that_are_not_in_force_are_passed_over():
    other = "[{providers: [{name: q}], overrides: [{tagOverrides: {a: {value: x}}}]}, {providers: [{name: p}]}]"
    (choice,) = metrics("CLIENT", other)
    assert (choice.provider, choice.changes) == ("p", ())


def test_the_mesh_knows_whether_anybody_changes_a_label():
    db = listener_mesh.mesh_of("")
    labels = ("destination_app", "destination_version")
    assert not telemetry.any_changes(db, labels)
    spec = "{metrics: [{overrides: [{tagOverrides: {destination_version: {operation: REMOVE}}}]}]}"
    listener_mesh.add(db, objects(("t", "shop", spec)))
    assert telemetry.any_changes(db, labels)
    assert not telemetry.any_changes(db, ("source_app",))


# -- traces -----------------------------------------------------------------------------------------------------------


def traces(mode, *specs, default=("t",)):
    mesh = {"defaultProviders": {"tracing": list(default)}}
    return said(telemetry.traces, mode, *(f"{{tracing: {spec}}}" for spec in specs), mesh=mesh)


def test_nothing_said_leaves_the_proxys_own_tracing():
    assert traces("CLIENT", default=()) is None
    assert traces("CLIENT").provider == "t"


def test_only_the_first_provider_of_an_entry_counts():
    assert traces("CLIENT", "[{providers: [{name: a}, {name: b}]}]").provider == "a"


def test_each_level_inherits_what_it_does_not_set():
    outer = "[{randomSamplingPercentage: 5, customTags: {a: {literal: {value: x}}}, enableIstioTags: false}]"
    inner = "[{randomSamplingPercentage: 0, disableContextPropagation: true}]"
    found = traces("CLIENT", outer, inner)
    assert (found.sampling, found.istio_tags, found.propagates) == (0, False, False)
    assert [name for name, _ in found.tags] == ["a"]


def test_inner_tags_replace_the_whole_map():
    outer = "[{customTags: {a: {literal: {value: x}}}}]"
    assert [n for n, _ in traces("CLIENT", outer, "[{customTags: {b: {literal: {value: y}}}}]").tags] == ["b"]


def test_a_side_that_reports_no_spans_has_no_provider():
    spec = "[{match: {mode: SERVER}, disableSpanReporting: true}]"
    assert traces("SERVER", spec).provider == ""
    assert traces("CLIENT", spec).provider == "t"
    assert traces("SERVER", spec, "[{disableSpanReporting: false}]").provider == "t"
    assert traces("CLIENT", "[{randomSamplingPercentage: 5}]", default=()).provider == ""
