"""The verdict on one object: what is told of it, by which code, and how much."""

from typing import Any

import pytest
import validated

from mizzen.api.decode import decode_object
from mizzen.api.kinds import KINDS
from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.api.validate import faults
from mizzen.api.validate.objects import validate_object

GROUPS = ("networking.istio.io", "security.istio.io", "telemetry.istio.io", "extensions.istio.io")


def test_a_problem_names_object_place_and_rule() -> None:
    [problem] = validated.find_problems("Gateway", {"servers": []})

    assert problem == Problem(
        key=Key("Gateway", "shop", "x"),
        path="spec.servers",
        message="gateway must have at least one server",
        code=faults.REFUSED,
        level="error",
    )


@pytest.mark.parametrize("kind", [kind.kind for kind in KINDS if kind.group in GROUPS])
def test_every_kind_of_istio_has_rules(kind: str) -> None:
    problems = validated.find_problems(kind, {}, annotations={"internal.istio.io/webhook-always-reject": ""})

    assert faults.REFUSED_METADATA in {problem.code for problem in problems}


def test_kinds_of_kubernetes_have_none() -> None:
    decoded = decode_object({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": [{}]}})

    assert decoded.object is not None
    assert validate_object(Key("Service", "default", "x"), decoded.object) == ()


@pytest.mark.parametrize("name", ["edge.a", "edge_a", "", "a" * 64])
def test_a_gateway_has_a_dns_label_for_a_name(name: str) -> None:
    decoded = decode_object(validated.make_document("Gateway", {"servers": [{}]}, name=name or "x"))
    assert decoded.object is not None
    key = Key("Gateway", "shop", name)
    problems = {problem.message for problem in validate_object(key, decoded.object)}

    assert (f'invalid gateway name: "{name}"' in problems) == bool(name)


def test_the_schema_says_nothing_where_the_webhook_speaks() -> None:
    spec = {"hosts": ["a.b"], "ports": [{"number": 65536, "name": "a", "protocol": "HTTP"}]}

    assert [(p.path, p.code) for p in validated.find_problems("ServiceEntry", spec)] == [
        ("spec.ports[0].number", faults.REFUSED)
    ]


def test_very_many_warnings_do_not_hide_an_error() -> None:
    ports = [{"number": number, "name": f"p{number}"} for number in range(1, 400)]
    problems = validated.find_problems("ServiceEntry", {"hosts": ["a.b", "*"], "ports": ports})

    assert [p.message for p in problems if p.level == "error"] == [
        "invalid host *",
        "Too many: 399: must have at most 256 items",
    ]
    assert sum(p.level == "warning" for p in problems) == 100


def test_very_many_errors_are_told_by_the_first() -> None:
    problems = validated.find_problems("VirtualService", {"hosts": [f"a_{n}" for n in range(1000)], "tcp": [{}] * 1000})

    assert [problem.level for problem in problems] == ["error"] * 100 + ["warning"] * 100


@pytest.mark.parametrize(
    ("kind", "spec", "annotations", "message"),
    [
        (
            "Gateway",
            {},
            {"istio.io/dry-run": "true"},
            "shop/x has unsupported annotation istio.io/dry-run, please remove the annotation",
        ),
        (
            "AuthorizationPolicy",
            {"action": "CUSTOM"},
            {"istio.io/dry-run": "true"},
            "the annotation istio.io/dry-run currently only supports action ALLOW/DENY, found action CUSTOM in shop/x",
        ),
        (
            "AuthorizationPolicy",
            {},
            {"istio.io/dry-run": "yes"},
            'shop/x has annotation istio.io/dry-run with invalid value (yes): strconv.ParseBool: parsing "yes": '
            "invalid syntax",
        ),
        ("AuthorizationPolicy", {}, {"istio.io/dry-run": "T"}, None),
        (
            "Sidecar",
            {},
            {"internal.istio.io/webhook-always-reject": "false"},
            '"internal.istio.io/webhook-always-reject" annotation found, rejecting',
        ),
        (
            "VirtualService",
            {},
            {"internal.istio.io/parents": ""},
            '"internal.istio.io/parents" annotation found, this may not be set by users',
        ),
        (
            "VirtualService",
            {},
            {"internal.istio.io/parent-namespace": ""},
            '"internal.istio.io/parent-namespace" annotation found, this may not be set by users',
        ),
        ("VirtualService", {}, {"example.com/parents": ""}, None),
    ],
)
def test_annotations_that_admission_refuses(
    kind: str, spec: Any, annotations: dict[str, str], message: str | None
) -> None:
    problems = validated.find_problems(kind, spec, annotations=annotations)
    refused = [(p.path, p.message) for p in problems if p.code == faults.REFUSED_METADATA]

    assert refused == ([(f"metadata.annotations[{next(iter(annotations))}]", message)] if message else [])


def test_a_value_that_is_no_message_of_envoy_is_refused_with_the_parsers_reason() -> None:
    patch = {"applyTo": "CLUSTER", "patch": {"operation": "MERGE", "value": {"connect_timeout": {"a": 1}}}}
    problems = validated.find_problems("EnvoyFilter", {"configPatches": [patch]})
    [refused] = [p for p in problems if p.level == "error"]

    assert refused.path == "spec.configPatches[0].patch.value"
    assert "connect_timeout" in refused.message


@pytest.mark.parametrize(
    "name",
    [
        "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig",
        "envoy.extensions.filters.http.lua.v3.Lua",
        "udpa.type.v1.TypedStruct",
    ],
)
def test_types_that_some_envoy_takes_are_fine(name: str) -> None:
    value = {"name": "a", "typed_config": {"@type": f"type.googleapis.com/{name}"}}
    patch = {"applyTo": "HTTP_FILTER", "patch": {"operation": "INSERT_FIRST", "value": value}}
    problems = validated.find_problems("EnvoyFilter", {"configPatches": [patch]})

    assert [problem.path for problem in problems] == [""]


def test_large_bodies_are_warned_of_and_larger_ones_refused() -> None:
    def levels(size: int) -> list[str]:
        spec = {"hosts": ["a"], "http": [{"directResponse": {"status": 200, "body": {"string": "a" * size}}}]}
        return [problem.level for problem in validated.find_problems("VirtualService", spec)]

    assert [levels(size) for size in (102_400, 102_401, 1_048_576, 1_048_577)] == [
        [],
        ["warning"],
        ["warning"],
        ["error"],
    ]


def test_names_of_extensions_have_a_longest_length() -> None:
    def messages(kind: str, length: int) -> list[str]:
        module = {"url": "a", "pluginName": "a" * length, "imagePullSecret": "a" * (length - 3)}
        spec = module if kind == "WasmPlugin" else {"wasm": module}
        return [problem.message for problem in validated.find_problems(kind, spec)]

    assert messages("WasmPlugin", 256) == messages("TrafficExtension", 256) == []
    assert messages("WasmPlugin", 257) == [
        "imagePullSecret field must be less than 253 characters long",
        "pluginName field must be less than 255 characters long",
    ]
    assert "pluginName field must be less than 256 characters long" in messages("TrafficExtension", 257)


def test_names_of_variables_have_a_longest_length() -> None:
    def messages(length: int) -> list[str]:
        spec = {"url": "a", "vmConfig": {"env": [{"name": "a" * length}]}}
        return [problem.message for problem in validated.find_problems("WasmPlugin", spec)]

    assert messages(256) == []
    assert messages(257) == ["env.name field must be less than 255 characters long"]


def test_code_of_lua_has_a_longest_length() -> None:
    def messages(length: int) -> list[str]:
        found = validated.find_problems("TrafficExtension", {"lua": {"inlineCode": "é" * (length // 2)}})
        return [problem.message for problem in found]

    assert messages(65_536) == []
    assert messages(65_538) == ["lua.inlineCode exceeds maximum size of 64KB"]


def test_patterns_have_a_longest_length() -> None:
    def messages(length: int) -> list[str]:
        match = {"uri": {"regex": "a" * length}}
        spec = {"hosts": ["a"], "http": [{"match": [match], "route": [{"destination": {"host": "b"}}]}]}
        return [problem.message for problem in validated.find_problems("VirtualService", spec)]

    assert messages(1024) == []
    assert messages(1025) == ['"uri": regex is too large, max length allowed is 1024']


def test_a_pattern_for_versions_that_is_too_long_is_only_warned_of() -> None:
    def levels(length: int) -> list[str]:
        match = {"proxy": {"proxyVersion": "(" * length}}
        patch = {"applyTo": "CLUSTER", "match": match, "patch": {"operation": "REMOVE"}}
        return [problem.level for problem in validated.find_problems("EnvoyFilter", {"configPatches": [patch]})]

    assert levels(1024) == ["error", "warning"]
    assert levels(1025) == ["warning", "warning"]
