"""The webhook configurations of revisions and tags."""

from typing import Any

import msgspec
import pytest

from mizzen.api.meta import LabelSelector
from mizzen.api.selectors import selects
from mizzen.control.webhooks import guards
from mizzen.control.webhooks.documents import INJECTION, VALIDATION, Configuration
from mizzen.inject.selection import SYSTEM_NAMESPACES
from mizzen.install import webhooks
from mizzen.install.identity import Identity
from mizzen.install.webhooks import Injector, Validator, injector_configuration, validator_configuration

CANARY = Identity(revision="canary")
NAME = "kubernetes.io/metadata.name"


def prefixes(injector: Injector) -> list[str]:
    return [entry["name"].removesuffix(f".{INJECTION}") for entry in injector_configuration(injector)["webhooks"]]


def asked(injector: Injector, namespace: dict[str, str], pod: dict[str, str], name: str = "shop") -> list[str]:
    """The entries that the API server would call."""

    def matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
        return selects(msgspec.convert(selector, LabelSelector), labels)

    return [
        entry["name"].removesuffix(f".{INJECTION}")
        for entry in injector_configuration(injector)["webhooks"]
        if matches(entry["namespaceSelector"], {NAME: name, **namespace}) and matches(entry["objectSelector"], pod)
    ]


def test_a_named_revision_has_its_two_entries_and_the_default_one_four() -> None:
    assert prefixes(Injector(identity=CANARY)) == ["rev.namespace", "rev.object"]
    assert prefixes(Injector()) == ["rev.namespace", "rev.object", "namespace", "object"]
    everywhere = Injector(enable_namespaces_by_default=True)
    assert prefixes(everywhere) == ["rev.namespace", "rev.object", "namespace", "object", "auto"]
    assert prefixes(Injector(identity=CANARY, tag="default")) == prefixes(Injector())
    assert prefixes(Injector(identity=CANARY, tag="prod", enable_namespaces_by_default=True)) == [
        "rev.namespace",
        "rev.object",
    ]


@pytest.mark.parametrize(
    ("namespace", "pod", "expected"),
    [
        ({"istio-injection": "enabled"}, {}, ["namespace"]),
        ({"istio-injection": "enabled"}, {"sidecar.istio.io/inject": "false"}, []),
        ({"istio-injection": "disabled"}, {"sidecar.istio.io/inject": "true"}, []),
        ({"istio-injection": "enabled", "istio.io/rev": "default"}, {}, ["namespace"]),
        ({"istio.io/rev": "default"}, {}, ["rev.namespace"]),
        ({"istio.io/rev": "other"}, {"istio.io/rev": "default"}, []),
        ({}, {}, []),
        ({}, {"sidecar.istio.io/inject": "true"}, ["object"]),
        ({}, {"sidecar.istio.io/inject": "true", "istio.io/rev": "default"}, ["rev.object"]),
        ({}, {"istio.io/rev": "default"}, ["rev.object"]),
    ],
)
def test_which_entry_asks_about_a_pod(namespace: dict[str, str], pod: dict[str, str], expected: list[str]) -> None:
    assert asked(Injector(), namespace, pod) == expected


def test_namespaces_without_labels_are_asked_about_only_if_wanted() -> None:
    assert asked(Injector(enable_namespaces_by_default=True), {}, {}) == ["auto"]
    assert asked(Injector(enable_namespaces_by_default=True), {}, {"sidecar.istio.io/inject": "false"}) == []


def test_a_tag_asks_the_control_plane_of_its_revision() -> None:
    found = injector_configuration(Injector(identity=CANARY, tag="prod"))
    assert found["metadata"]["name"] == "istio-revision-tag-prod"
    assert found["metadata"]["labels"]["istio.io/rev"] == "canary"
    assert found["metadata"]["labels"]["istio.io/tag"] == "prod"
    assert {entry["clientConfig"]["service"]["name"] for entry in found["webhooks"]} == {"istiod-canary"}
    assert asked(Injector(identity=CANARY, tag="prod"), {"istio.io/rev": "prod"}, {}) == ["rev.namespace"]
    assert asked(Injector(identity=CANARY, tag="prod"), {"istio.io/rev": "canary"}, {}) == []


def test_names_carry_the_revision_and_a_namespace_of_one_s_own() -> None:
    elsewhere = Identity(namespace="mesh", revision="canary")
    assert Injector(identity=CANARY).name == "istio-sidecar-injector-canary"
    assert Injector(identity=elsewhere).name == "istio-sidecar-injector-canary-mesh"
    assert Injector(identity=Identity(revision="default")).name == "istio-sidecar-injector"
    assert Injector(identity=elsewhere, tag="prod").name == "istio-revision-tag-prod-mesh"
    assert Validator(identity=elsewhere).name == "istio-validator-canary-mesh"
    assert Validator(identity=elsewhere, is_default=True).name == "istiod-default-validator"


def test_an_outside_control_plane_is_asked_by_its_address_and_bundle() -> None:
    found = injector_configuration(Injector(url="https://plane.example:15017/inject", ca_bundle="Zm9v"))
    expected = {"url": "https://plane.example:15017/inject", "caBundle": "Zm9v"}
    assert [entry["clientConfig"] for entry in found["webhooks"]] == [expected] * 4


def decode(configuration: dict[str, Any]) -> Configuration:
    return msgspec.convert(configuration, Configuration)


@pytest.mark.parametrize("label", [{"istio-injection": "enabled"}, {"istio.io/rev": "default"}, {}])
@pytest.mark.parametrize("pod", [{}, {"istio.io/rev": "default"}, {"sidecar.istio.io/inject": "true"}])
def test_nothing_of_the_system_is_ever_asked_about(label: dict[str, str], pod: dict[str, str]) -> None:
    assert set(webhooks.SYSTEM_NAMESPACES) == SYSTEM_NAMESPACES
    for name in SYSTEM_NAMESPACES:
        assert asked(Injector(enable_namespaces_by_default=True), label, pod, name) == []


@pytest.mark.parametrize("label", [{"istio-injection": "enabled"}, {"istio.io/rev": "default"}, {}])
def test_the_control_plane_does_not_keep_itself_from_starting(label: dict[str, str]) -> None:
    spaces = {"istio-system": label, "kube-system": {"istio-injection": "enabled"}}
    own = {"sidecar.istio.io/inject": "false"}
    found = decode(injector_configuration(Injector(enable_namespaces_by_default=True)))
    assert len(found.entries(INJECTION)) == 5
    for _, entry in found.entries(INJECTION):
        assert guards.blocked_by_injection(entry, spaces, "istio-system", own) is None


def test_validation_asks_about_the_mesh_alone_and_begins_open() -> None:
    for validator, operator in ((Validator(identity=CANARY), "In"), (Validator(is_default=True), "DoesNotExist")):
        found = validator_configuration(validator)
        ((_, entry),) = decode(found).entries(VALIDATION)
        assert entry.failure_policy == "Ignore"
        assert guards.blocked_by_validation(entry) is None
        (expression,) = entry.object_selector.match_expressions
        assert (expression.key, expression.operator) == ("istio.io/rev", operator)
    assert validator_configuration(Validator(is_default=True))["metadata"]["labels"]["istio.io/tag"] == "default"
