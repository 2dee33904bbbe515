"""The documents of a tag: copied from the revision that it stands for, and owned by nobody's installer."""

import copy
from typing import Any

import pytest

from mizzen.install.identity import Identity
from mizzen.install.manifests import manifests
from mizzen.install.tags import Tag, deactivate, own_entry, tag_documents
from mizzen.install.values import lay_over
from mizzen.install.webhooks import Injector, injector_configuration

CANARY = Identity(revision="canary")
BUNDLE = "Um9vdHM="


def canary(**changes: Any) -> dict[str, Any]:
    made = injector_configuration(Injector(identity=CANARY, ca_bundle=BUNDLE, **changes))
    made["metadata"]["labels"] |= {"app.kubernetes.io/managed-by": "mizzen", "mine": "too"}
    return made


def documents(name: str = "prod", validator: Any = None, **changes: Any) -> dict[str, dict[str, Any]]:
    tag = Tag(**{"name": name, "identity": CANARY, "injector": canary(), **changes})
    return {each["kind"]: each for each in tag_documents(tag, validator)}


def test_a_tag_selects_by_its_own_name_and_asks_whom_its_revision_asks():
    made = documents(injector=canary(reinvocation_policy="IfNeeded", path="/inject/net/a"))
    injector = made["MutatingWebhookConfiguration"]
    assert injector["metadata"]["name"] == "istio-revision-tag-prod"
    assert [each["name"] for each in injector["webhooks"]] == [
        "rev.namespace.sidecar-injector.istio.io",
        "rev.object.sidecar-injector.istio.io",
    ]
    for entry in injector["webhooks"]:
        service = {"name": "istiod-canary", "namespace": "istio-system", "path": "/inject/net/a", "port": 443}
        assert entry["clientConfig"] == {"service": service, "caBundle": BUNDLE}
        assert entry["reinvocationPolicy"] == "IfNeeded"
        assert {"key": "istio.io/rev", "operator": "In", "values": ["prod"]} in (
            entry["namespaceSelector"]["matchExpressions"] + entry["objectSelector"]["matchExpressions"]
        )
    assert set(made) == {"MutatingWebhookConfiguration", "Service"}


def test_what_makes_a_tag_says_whose_it_is_and_bears_no_mark_of_an_installer():
    for made in documents("default").values():
        labels = made["metadata"]["labels"]
        assert labels["istio.io/rev"] == "canary"
        assert labels["istio.io/tag"] == "default"
        assert labels["mine"] == "too"
        assert not {"app.kubernetes.io/managed-by", "operator.istio.io/component"} & set(labels)


@pytest.mark.parametrize(
    ("policy", "expected"), [(None, "Ignore"), ("Ignore", "Ignore"), ("Fail", "Fail")], ids=["none", "open", "closed"]
)
def test_the_default_tag_brings_a_validator_no_more_open_than_the_one_before(policy, expected):
    before = {"webhooks": [{"name": "validation.istio.io", "failurePolicy": policy}]} if policy else None
    validator = documents("default", before)["ValidatingWebhookConfiguration"]
    assert validator["metadata"]["name"] == "istiod-default-validator"
    (entry,) = validator["webhooks"]
    assert entry["failurePolicy"] == expected
    assert entry["clientConfig"]["service"]["path"] == "/validate"
    assert entry["clientConfig"]["caBundle"] == BUNDLE
    assert entry["objectSelector"] == {"matchExpressions": [{"key": "istio.io/rev", "operator": "DoesNotExist"}]}


def test_a_control_plane_elsewhere_is_asked_at_its_url_for_both():
    made = documents("default", injector=canary(url="https://there.example:15017/inject/cluster/a?x=1"))
    for entry in made["MutatingWebhookConfiguration"]["webhooks"]:
        assert entry["clientConfig"]["url"] == "https://there.example:15017/inject/cluster/a?x=1"
        assert "service" not in entry["clientConfig"]
    (entry,) = made["ValidatingWebhookConfiguration"]["webhooks"]
    assert entry["clientConfig"] == {"url": "https://there.example:15017/validate", "caBundle": BUNDLE}


def test_the_default_tag_injects_by_the_old_label_and_on_request_where_nothing_is_said():
    assert len(documents("default")["MutatingWebhookConfiguration"]["webhooks"]) == 4
    entries = documents("default", injects_by_default=True)["MutatingWebhookConfiguration"]["webhooks"]
    assert entries[-1]["name"] == "auto.sidecar-injector.istio.io"
    assert len(documents("prod", injects_by_default=True)["MutatingWebhookConfiguration"]["webhooks"]) == 2


def test_the_service_of_a_tag_leads_where_the_revisions_own_does():
    ports = [{"name": "https-webhook", "port": 443, "targetPort": 15017, "nodePort": 30001}]
    found = {"spec": {"ports": ports, "selector": {"app": "istiod", "pick": "me"}, "clusterIP": "10.0.0.1"}}
    service = documents(service=copy.deepcopy(found))["Service"]
    assert service["metadata"]["name"] == "istiod-revision-tag-prod"
    assert service["spec"] == {
        "ports": [{"name": "https-webhook", "port": 443, "targetPort": 15017}],
        "selector": {"app": "istiod", "pick": "me"},
    }
    assert documents()["Service"]["spec"]["selector"] == {"app": "istiod", "istio.io/rev": "canary"}


def test_an_installation_brings_the_services_of_its_tags():
    values = lay_over([{"revision": "canary", "revisionTags": ["prod", "canary"]}])
    made = {each["metadata"]["name"]: each for each in manifests(values) if each["kind"] == "Service"}
    assert set(made) == {"istiod-canary", "istiod-revision-tag-prod"}
    tagged = made["istiod-revision-tag-prod"]
    assert tagged["spec"] == made["istiod-canary"]["spec"] == documents()["Service"]["spec"]
    assert tagged["metadata"]["labels"]["istio.io/tag"] == "prod"
    assert "istio.io/tag" not in made["istiod-canary"]["metadata"]["labels"]


def test_another_name_is_the_configurations_alone():
    made = documents(configuration="mine")
    assert made["MutatingWebhookConfiguration"]["metadata"]["name"] == "mine"
    assert made["Service"]["metadata"]["name"] == "istiod-revision-tag-prod"


def test_a_deactivated_injector_is_asked_about_nothing_and_all_else_of_it_stays():
    found = injector_configuration(Injector())
    changes = deactivate(found)
    assert changes["metadata"] == {"name": "istio-sidecar-injector"}
    assert [each["name"] for each in changes["webhooks"]] == [each["name"] for each in found["webhooks"]]
    never = {"matchLabels": {"istio.io/deactivated": "never-match"}}
    for entry in changes["webhooks"]:
        assert entry == {"name": entry["name"], "namespaceSelector": never, "objectSelector": never}


def test_a_configuration_without_an_injector_has_nothing_to_copy():
    assert own_entry({"webhooks": [{"name": "other.example"}]}) is None
    assert own_entry({}) is None
