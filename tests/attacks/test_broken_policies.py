"""A policy that breaks while it is in force goes on refusing; mended, it says what is written in it."""

import pytest
from attack_calls import Request
from attack_manifests import documents
from traffic_manifests import render

_POLICY = """
kind: AuthorizationPolicy
metadata: {name: changing}
spec:
  selector: {matchLabels: {app: deny}}
  action: DENY
  rules: [{to: [{operation: {paths: [/changing], ports: ["8080"]}}]}]
"""
_SPOILT = {
    "not-yaml": "kind: AuthorizationPolicy\nmetadata: {name: changing, namespace: vault\nspec: [\n",
    "rules-of-another-type": render(documents(_POLICY)).replace("  rules:\n", "  rules: nobody\n  _rules:\n"),
    "an-action-that-is-none": render(documents(_POLICY)).replace("DENY", "REFUSE"),
    "a-misspelt-field": render(documents(_POLICY)).replace("paths:", "pathes:"),
}
_CHANGING = Request(pod="deny", path="/changing")
_CHANGED = Request(pod="deny", path="/changed")


@pytest.fixture(scope="module")
def broken(mesh):
    """A policy that was good once; in the end it is good again, and another."""
    mesh.apply("changing", documents(_POLICY))
    yield
    mesh.apply("changing", documents(_POLICY.replace("/changing", "/changed")))
    assert _CHANGING.perform(mesh).let_in
    assert not _CHANGED.perform(mesh).let_in


@pytest.mark.parametrize("spoilt", _SPOILT.values(), ids=_SPOILT)
def test_a_policy_that_breaks_goes_on_refusing(spoilt, mesh, broken):
    mesh.write("changing", spoilt)
    mesh.apply("other", [])  # Read after the broken file, hence in force after it.
    refused = _CHANGING.perform(mesh)
    assert not refused.let_in
    assert refused.answer == "403 RBAC: access denied"
    assert _CHANGED.perform(mesh).let_in
