"""AdmissionReview: the question of an API server, and the answer.

In: the body of a request, of `admission.k8s.io/v1` or `v1beta1`. Out: a `Request`; an `Answer` becomes a body of the
version that was asked. The object stays plain data, since injection and validation read it differently.
"""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from mizzen.errors import DecodeError

_VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_MOST_WARNINGS = 20
_LONGEST_WARNING = 256
"""Characters; an API server cuts longer ones, and all of them together at 4096."""


class Names(msgspec.Struct, frozen=True):
    """A kind or a resource of an API group."""

    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What somebody wants to write."""

    uid: str
    kind: Names = Names()
    resource: Names = Names()
    name: str = ""
    namespace: str = ""
    operation: str = ""
    object: dict[str, Any] | None = None
    dry_run: bool | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it may be written, and how changed."""

    allowed: bool
    message: str = ""
    """Why not."""
    warnings: Sequence[str] = ()
    patch: Sequence[dict[str, Any]] = ()
    """Operations of a JSON Patch."""


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """A question with the version that it was asked in."""

    request: Request
    api_version: str = _VERSIONS[0]

    def answer(self, answer: Answer) -> bytes:
        """The body that carries the answer."""
        response: dict[str, Any] = {"uid": self.request.uid, "allowed": answer.allowed}
        if not answer.allowed:
            response["status"] = {"status": "Failure", "message": answer.message}
        if answer.patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(list(answer.patch))).decode()
        if answer.warnings:
            response["warnings"] = [_shorten(text) for text in answer.warnings[:_MOST_WARNINGS]]
        document = {"apiVersion": self.api_version, "kind": "AdmissionReview", "response": response}
        return msgspec.json.encode(document)


_review = msgspec.json.Decoder(Review)


def decode(body: bytes) -> Review:
    """Raises DecodeError for what is no review of a version that is known."""
    try:
        review = _review.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DecodeError(f"no AdmissionReview: {error}") from error
    if review.api_version not in _VERSIONS:
        raise DecodeError(f"AdmissionReview of {review.api_version}; known are {', '.join(_VERSIONS)}")
    return review


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_WARNING else f"{line[: _LONGEST_WARNING - 1]}…"
