"""Validation in the file source: Problems stand beside their objects, with file and line, and the objects in force."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mizzen.api.meta import Key
from mizzen.api.policy import AuthorizationPolicy, Rule
from mizzen.sources.files import load

FAULTY = """\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: shop}
spec:
  hosts: [reviews]
  http:
  - route:
    - destination: {host: reviews}
      weight: -1
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
"""


def write(folder: Path, text: str) -> str:
    path = folder / "mesh.yaml"
    path.write_text(text)
    return str(path)


def test_an_object_that_admission_would_refuse_is_in_force_with_its_problem(tmp_path: Path) -> None:
    path = write(tmp_path, FAULTY)
    contents = load([path])

    assert Key("VirtualService", "shop", "reviews") in contents.objects
    assert [str(finding) for finding in contents.findings] == [
        f"{path}:9: VirtualService shop/reviews: spec.http[0].route[0].weight: weight -1 < 0"
    ]


def test_items_of_a_list_have_lines_of_their_own(tmp_path: Path) -> None:
    items = [document for document in yaml.safe_load_all(FAULTY) if document["kind"] == "VirtualService"]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}, sort_keys=False)
    path = write(tmp_path, text)
    [finding] = load([path]).findings

    assert text.splitlines()[finding.origin.line - 1].strip() == "weight: -1"


def policy(spec: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "security.istio.io/v1",
            "kind": "AuthorizationPolicy",
            "metadata": {"name": "p", "namespace": "shop"},
            "spec": spec,
        }
    )


KEY = Key("AuthorizationPolicy", "shop", "p")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"rules": [{"from": [{"source": {"principal": ["a"]}}]}]}, "spec.rules[0].from[0].source.principal"),
        ({"rules": [{"to": [{"operation": {"method": ["GET"]}}]}]}, "spec.rules[0].to[0].operation.method"),
        ({"rules": [{"form": [{"source": {"principals": ["a"]}}]}]}, "spec.rules[0].form"),
        ({"rules": [{"when": [{"key": "source.ip", "value": ["10.0.0.1"]}]}]}, "spec.rules[0].when[0].value"),
        ({"acton": "DENY", "rules": [{}]}, "spec.acton"),
    ],
)
def test_a_policy_with_a_field_that_nobody_knows_denies_what_it_selects(tmp_path: Path, spec: Any, field: str) -> None:
    selecting = {**spec, "selector": {"matchLabels": {"app": "cart"}}}
    contents = load([write(tmp_path, policy(selecting))])
    closed = contents.objects[KEY]

    assert isinstance(closed, AuthorizationPolicy)
    assert (closed.spec.action, closed.spec.rules) == ("DENY", (Rule(),))
    assert closed.spec.selector is not None
    assert closed.spec.selector.match_labels == {"app": "cart"}
    errors = [(f.problem.path, f.problem.code) for f in contents.findings if f.problem.level == "error"]
    assert (field, "unknown-field") in errors


def test_a_policy_whose_selector_has_a_field_that_nobody_knows_denies_its_namespace(tmp_path: Path) -> None:
    spec = {"selector": {"matchLabel": {"app": "cart"}}, "rules": [{}]}
    closed = load([write(tmp_path, policy(spec))]).objects[KEY]

    assert isinstance(closed, AuthorizationPolicy)
    assert closed.spec.action == "DENY"
    assert closed.spec.selector is None


def test_fields_that_nobody_knows_elsewhere_only_warn(tmp_path: Path) -> None:
    path = write(tmp_path, FAULTY.replace("      weight: -1", "      weigth: 1"))
    contents = load([path])

    assert Key("VirtualService", "shop", "reviews") in contents.objects
    assert [(f.problem.level, f.problem.code) for f in contents.findings] == [("warning", "unknown-field")]


def test_unknown_metadata_of_a_policy_only_warns(tmp_path: Path) -> None:
    text = policy({"rules": [{}]}).replace("  name: p", "  name: p\n  nmae: q")
    contents = load([write(tmp_path, text)])
    found = contents.objects[KEY]

    assert isinstance(found, AuthorizationPolicy)
    assert found.spec.action == "ALLOW"
    assert [f.problem.level for f in contents.findings] == ["warning"]
