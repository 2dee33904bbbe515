"""AdmissionReviews: what is understood, and how an answer is carried."""

import base64
import json

import pytest
from kube_webhooks import review

from mizzen.control.webhooks.reviews import Answer, decode
from mizzen.errors import DecodeError


def encode(**changes: object) -> bytes:
    return json.dumps({**review({"kind": "Pod"}), **changes}).encode()


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_the_answer_has_the_version_and_the_uid_of_the_question(version: str) -> None:
    asked = decode(encode(apiVersion=version))
    answered = json.loads(asked.answer(Answer(allowed=True)))
    assert (answered["apiVersion"], answered["kind"]) == (version, "AdmissionReview")
    assert answered["response"] == {"uid": asked.request.uid, "allowed": True}


def test_a_patch_is_carried_as_base64() -> None:
    patch = [{"op": "remove", "path": "/a"}]
    response = json.loads(decode(encode()).answer(Answer(allowed=True, patch=patch)))["response"]
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == patch


def test_a_refusal_says_why() -> None:
    response = json.loads(decode(encode()).answer(Answer(allowed=False, message="no")))["response"]
    assert not response["allowed"]
    assert response["status"]["message"] == "no"
    assert "patch" not in response


def test_warnings_are_lines_that_an_api_server_does_not_cut() -> None:
    long = "word " * 200
    answer = Answer(allowed=True, warnings=["one\nand two", long, *(["more"] * 100)])
    warnings = json.loads(decode(encode()).answer(answer))["response"]["warnings"]
    assert warnings[0] == "one and two"
    assert len(warnings) < 50
    assert max(map(len, warnings)) <= 256


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"apiVersion": "admission.k8s.io/v1"}',
        b"\xff",
        b'{"request": {"uid": 1}}',
        b'{"request": ' + b"[" * 100_000,
    ],
)
def test_anything_else_is_no_review(body: bytes) -> None:
    with pytest.raises(DecodeError, match="no AdmissionReview"):
        decode(body)


def test_a_review_of_a_version_to_come_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"admission\.k8s\.io/v2"):
        decode(encode(apiVersion="admission.k8s.io/v2"))
