"""Objects made for validation: a kind and a spec in, the Problems of admission out."""

from collections.abc import Mapping
from typing import Any

from mizzen.api.decode import decode_object
from mizzen.api.kinds import kind_named
from mizzen.api.problems import Problem
from mizzen.api.validate.objects import validate_object


def make_document(kind: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    """A document of an object `shop/x`; `metadata` adds to its name and namespace."""
    return {
        "apiVersion": kind_named(kind).api_version,
        "kind": kind_named(kind).kind,
        "metadata": {"name": "x", "namespace": "shop", **metadata},
        "spec": dict(spec),
    }


def find_problems(kind: str, spec: Mapping[str, Any], **metadata: Any) -> tuple[Problem, ...]:
    """What validation says of an object that decodes without a word."""
    decoded = decode_object(make_document(kind, spec, **metadata))
    assert decoded.object is not None, decoded.problems
    assert decoded.key is not None
    assert decoded.problems == ()
    return validate_object(decoded.key, decoded.object)
