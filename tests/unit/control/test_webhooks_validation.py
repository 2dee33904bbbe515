"""Reviews of the mesh's objects: what is refused in which words, what is warned of, and what is counted."""

import json
import pathlib
from typing import Any

import pytest
import yaml
from kube_webhooks import review as asked_about

from mizzen.api.kinds import KINDS
from mizzen.control.webhooks import validation
from mizzen.control.webhooks.reviews import Answer, decode

RULES = pathlib.Path(__file__).parents[1] / "api" / "validate" / "rules"
API_VERSIONS = {kind.kind: kind.api_version for kind in KINDS if kind.group.endswith(".istio.io")}


def an_object(kind: str, spec: Any, **more: Any) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "shop", **more.pop("metadata", {})}
    return {
        "apiVersion": API_VERSIONS.get(kind, "networking.istio.io/v1"),
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        **more,
    }


def ask(document: dict[str, Any] | None, **request: Any) -> Answer:
    return validation.review(decode(json.dumps(asked_about(document, **request)).encode()).request)


def route(**more: Any) -> dict[str, Any]:
    return an_object("VirtualService", {"hosts": ["a"], "http": [{"route": [{"destination": {"host": "a"}}]}]}, **more)


def cases() -> list[Any]:
    found = []
    for path in sorted(RULES.glob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        for number, rule in enumerate(document["rules"]):
            if str(rule["at"]).startswith("spec"):
                name = f"{path.stem}-{number}"
                found.append(pytest.param(path.stem, {**document["base"], **rule["fires"]}, rule, id=name))
    return found


@pytest.mark.parametrize(("kind", "spec", "rule"), cases())
def test_every_rule_of_every_kind_is_said_at_admission(kind: str, spec: Any, rule: Any) -> None:
    answer = ask(an_object(kind, spec, metadata=rule.get("metadata", {})))
    if rule.get("level", "error") == "error":
        assert not answer.allowed
        assert answer.message.startswith("configuration is invalid: ")
        assert rule["says"] in answer.message
    elif answer.allowed:
        assert rule["says"] in answer.warnings


def test_several_errors_are_listed() -> None:
    message = ask(an_object("Gateway", {"servers": [{"port": {"number": 0, "protocol": "x", "name": "a"}}]})).message
    assert message.startswith("configuration is invalid: ")
    assert "errors occurred:\n\t* " in message


def test_a_field_of_another_type_does_not_decode() -> None:
    answer = ask(an_object("VirtualService", {"hosts": "a"}))
    assert not answer.allowed
    assert answer.message.startswith("error decoding configuration: spec.hosts: ")


def test_unknown_fields_are_warned_of_but_refused_in_policies() -> None:
    document = route()
    document["spec"]["htpp"] = []
    answer = ask(document)
    assert answer.allowed
    assert any(warning.startswith("spec.htpp: unknown field") for warning in answer.warnings)
    policy = ask(an_object("AuthorizationPolicy", {"rulse": []}))
    assert not policy.allowed
    assert "spec.rulse" in policy.message


def test_unknown_keys_beside_the_spec_are_refused() -> None:
    assert ask(route(status={})).allowed
    answer = ask(route(spce={}))
    assert answer.message == 'unknown field "spce" on VirtualService resource shop/x'


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (an_object("Nothing", {}), "networking.istio.io/v1, Kind=Nothing"),
        ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}, "/v1, Kind=Service"),
    ],
)
def test_kinds_that_are_not_known_are_refused(document: dict[str, Any], shown: str) -> None:
    assert ask(document).message == f"unrecognized type {shown}"


def test_the_version_does_not_matter() -> None:
    assert ask({**route(), "apiVersion": "networking.istio.io/v1alpha3"}).allowed


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_other_operations_pass(operation: str) -> None:
    assert ask(an_object("VirtualService", {"hosts": []}), operation=operation).allowed


def test_a_review_without_an_object_is_refused() -> None:
    assert ask(route(), object=None).message.startswith("cannot decode configuration: ")


def test_an_object_whose_name_is_yet_to_be_made_is_judged() -> None:
    document = route()
    document["metadata"] = {"generateName": "x-"}
    assert ask(document, namespace="shop").allowed
    document["spec"] = {"hosts": []}
    assert not ask(document, namespace="shop").allowed


def test_the_namespace_is_the_requests() -> None:
    document = an_object("AuthorizationPolicy", {"action": "DENY"})
    del document["metadata"]["namespace"]
    assert "invalid policy x.shop: " in ask(document, namespace="shop").message


def test_what_must_always_be_refused_is() -> None:
    gateway = an_object("Gateway", {}, metadata={"annotations": {"internal.istio.io/webhook-always-reject": "true"}})
    assert "internal.istio.io/webhook-always-reject" in ask(gateway).message


def test_metrics_count_what_is_not_only_tried() -> None:
    labels = ("networking.istio.io", "v1", "virtualservices")

    def counts() -> tuple[float, float, float]:
        passed, failed = validation._PASSED, validation._FAILED
        other = failed.value(*labels, "unsupported_operation")
        return passed.value(*labels), failed.value(*labels, "invalid_resource"), other

    before = counts()
    bad = an_object("VirtualService", {"hosts": []})
    ask(route())
    ask(bad)
    ask(bad, operation="DELETE")
    ask(route(), dryRun=True)
    ask(bad, dryRun=True)
    assert counts() == tuple(count + 1 for count in before)
