"""Strategic merge of patches."""

from typing import Any

import pytest

from mizzen.inject.gateways.strategic import merge


@pytest.mark.parametrize(
    ("manifest", "patch", "merged"),
    [
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}, "c": 1}, {"a": {"$patch": "delete"}}, {"c": 1}),
        ({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        (
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
        ),
        (
            {"containers": [{"name": "istio-proxy", "ports": [{"containerPort": 1, "name": "x"}]}]},
            {"containers": [{"name": "istio-proxy", "ports": [{"containerPort": 1, "name": "y"}], "tty": True}]},
            {"containers": [{"name": "istio-proxy", "ports": [{"containerPort": 1, "name": "y"}], "tty": True}]},
        ),
        (
            {"ports": [{"port": 80, "name": "web"}, {"port": 443, "name": "tls"}]},
            {"ports": [{"port": 80, "nodePort": 30080}, {"port": 443, "$patch": "delete"}]},
            {"ports": [{"port": 80, "name": "web", "nodePort": 30080}]},
        ),
        (
            {"volumes": [{"name": "a"}, {"name": "b"}]},
            {"volumes": [{"$patch": "replace"}, {"name": "c"}]},
            {"volumes": [{"name": "c"}]},
        ),
        ({}, {"spec": {"x": {"y": None, "z": 1}}}, {"spec": {"x": {"z": 1}}}),
        ({"a": 1}, {"$setElementOrder/env": [{"name": "A"}]}, {"a": 1}),
    ],
)
def test_a_patch_is_laid_over(manifest: dict[str, Any], patch: dict[str, Any], merged: dict[str, Any]) -> None:
    before = repr(manifest)
    assert merge(manifest, patch) == merged
    assert repr(manifest) == before
