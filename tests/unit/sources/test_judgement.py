"""One object whatever it holds: nothing that a user writes gets out as an exception."""

import pytest

from mizzen.api.policy import AuthorizationPolicy
from mizzen.sources import judgement
from mizzen.sources.judgement import judge

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
POLICY = {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": {"name": "p"}, "spec": {}}


@pytest.mark.parametrize("kind", [["Pod"], [], {}, {"a": 1}, 7, None, True])
def test_a_kind_that_is_no_text_is_a_problem(kind):
    judged = judge({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}})
    assert judged.decoded.object is None
    assert judged.stand_in is None


def _fail(*_: object) -> object:
    raise RuntimeError("a fault")


def test_a_fault_of_validation_leaves_the_object_in_force_and_is_told(monkeypatch):
    monkeypatch.setattr(judgement, "validate_object", _fail)
    judged = judge(SERVICE)
    assert judged.decoded.object is not None
    assert [(p.code, p.level) for p in judged.problems] == [("not-validated", "warning")]


def test_a_fault_of_reading_fails_the_object_and_closes_a_policy(monkeypatch):
    monkeypatch.setattr(judgement, "decode_object", _fail)
    assert judge(SERVICE).decoded.outcome == "failed"
    stand_in = judge(POLICY).stand_in
    assert isinstance(stand_in, AuthorizationPolicy)
    assert (stand_in.metadata.name, stand_in.metadata.namespace) == ("p", "default")
