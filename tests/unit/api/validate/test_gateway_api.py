"""What an API server refuses of the Gateway API's objects is refused from files too, in its words."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from msgspec.structs import fields as struct_fields

from mizzen.api.decode import decode_object
from mizzen.api.kinds import kind_of_api
from mizzen.api.shape import Shape, shape_of
from mizzen.api.validate.crd.gateway_api_bounds import BOUNDS, REQUIRED
from mizzen.api.validate.objects import is_refused, validate_object
from mizzen.sources import entries

SCHEMAS = pathlib.Path(__file__).parents[1] / "schemas"
CRDS = sorted(SCHEMAS.glob("gateway.networking.k8s.io_*.yaml"))
SERVED = [path for path in CRDS if not path.stem.endswith("_UDPRoute")]
EMPTY_BY_DEFAULT = ("group", "numerator")
"""Required fields whose empty value is a value: the core group, and zero."""


def refusals(kind: str, spec: str, version: str = "v1") -> list[str]:
    raw = {
        "apiVersion": f"gateway.networking.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "it", "namespace": "web"},
        "spec": yaml.safe_load(spec),
    }
    decoded = decode_object(raw)
    if decoded.object is None or decoded.key is None:
        return [str(problem) for problem in decoded.problems]
    problems = validate_object(decoded.key, decoded.object)
    assert is_refused(decoded.object, problems) == bool(problems)
    return [f"{problem.path}: {problem.message}" for problem in problems]


PARENT = "parentRefs: [{name: edge}]"
BACKEND = "backendRefs: [{name: front, port: 80}]"
LISTENER = "gatewayClassName: istio, listeners: [{name: web, port: 80, protocol: HTTP}]"


def test_what_the_corpus_holds_is_not_refused() -> None:
    assert refusals("HTTPRoute", f"{{{PARENT}, rules: [{{{BACKEND}}}]}}") == []
    assert refusals("HTTPRoute", "{parentRefs: [{group: '', kind: Service, name: cart, port: 80}]}") == []
    assert refusals("Gateway", f"{{{LISTENER}}}") == []


@pytest.mark.parametrize(
    ("kind", "spec", "path", "message"),
    [
        ("HTTPRoute", "{parentRefs: [{name: a}, {name: a, sectionName: b}]}", "spec.parentRefs", "must be specified"),
        ("HTTPRoute", "{parentRefs: [{name: a}, {name: a}]}", "spec.parentRefs", "must be unique"),
        ("TCPRoute", "{parentRefs: [{name: a, port: 1}, {name: a}], rules: [{backendRefs: [{name: b, port: 1}]}]}",
         "spec.parentRefs", "sectionName or port must be specified"),
        ("HTTPRoute", "{rules: [{name: x}, {name: x}]}", "spec.rules", "Rule name must be unique"),
        ("HTTPRoute", "{rules: []}", "spec.rules", "at least 1"),
        ("HTTPRoute", "{hostnames: ['a.*.example']}", "spec.hostnames[0]", "should match"),
        ("HTTPRoute", "{hostnames: [Shop.example]}", "spec.hostnames[0]", "should match"),
        ("HTTPRoute", "{rules: [{backendRefs: [{name: front}]}]}", "spec.rules[0].backendRefs[0]", "Must have port"),
        ("HTTPRoute", "{rules: [{backendRefs: [{port: 80}]}]}", "spec.rules[0].backendRefs[0].name", "Required value"),
        ("HTTPRoute", "{rules: [{backendRefs: [{name: a, port: 0}]}]}", "spec.rules[0].backendRefs[0].port", "1"),
        ("HTTPRoute", "{rules: [{backendRefs: [{name: a, port: 1, weight: -1}]}]}",
         "spec.rules[0].backendRefs[0].weight", "greater than or equal to 0"),
        ("HTTPRoute", "{rules: [{matches: [{path: {value: cart}}]}]}", "spec.rules[0].matches[0].path", "absolute path"),
        ("HTTPRoute", "{rules: [{matches: [{path: {value: /a//b}}]}]}", "spec.rules[0].matches[0].path", "'//'"),
        ("HTTPRoute", "{rules: [{matches: [{path: {value: /a/..}}]}]}", "spec.rules[0].matches[0].path", "end with '/..'"),
        ("HTTPRoute", "{rules: [{matches: [{path: {value: '/a b'}}]}]}", "spec.rules[0].matches[0].path", "valid char"),
        ("HTTPRoute", "{rules: [{matches: [{headers: [{name: a, value: '1'}, {name: a, value: '2'}]}]}]}",
         "spec.rules[0].matches[0].headers[1].name", "Duplicate value"),
        ("HTTPRoute", "{rules: [{timeouts: {request: 1s, backendRequest: 2s}}]}", "spec.rules[0].timeouts", "longer"),
        ("HTTPRoute", "{rules: [{filters: [{type: CORS}]}]}", "spec.rules[0].filters[0]", "cors must be specified"),
        ("HTTPRoute", "{rules: [{filters: [{type: CORS, cors: {}, urlRewrite: {}}]}]}",
         "spec.rules[0].filters[0]", "urlRewrite must be nil"),
        ("HTTPRoute", "{rules: [{filters: [{type: URLRewrite, urlRewrite: {}}, {type: URLRewrite, urlRewrite: {}}]}]}",
         "spec.rules[0].filters", "URLRewrite filter cannot be repeated"),
        ("HTTPRoute",
         "{rules: [{filters: [{type: RequestRedirect, requestRedirect: {}}, {type: URLRewrite, urlRewrite: {}}]}]}",
         "spec.rules[0].filters", "but not both"),
        ("HTTPRoute",
         f"{{rules: [{{filters: [{{type: RequestRedirect, requestRedirect: {{}}}}], {BACKEND}}}]}}",
         "spec.rules[0]", "must not be used together with backendRefs"),
        ("HTTPRoute",
         "{rules: [{matches: [{path: {type: Exact, value: /a}}], filters: [{type: URLRewrite, urlRewrite: "
         "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}]}]}",
         "spec.rules[0]", "exactly one PathPrefix match"),
        ("HTTPRoute",
         "{rules: [{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath}}}]}]}",
         "spec.rules[0].filters[0].urlRewrite.path", "replaceFullPath must be specified"),
        ("HTTPRoute",
         "{rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 1}, percent: 1, "
         "fraction: {numerator: 1}}}]}]}",
         "spec.rules[0].filters[0].requestMirror", "Only one of percent or fraction"),
        ("HTTPRoute",
         "{rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 1}, "
         "fraction: {numerator: 3, denominator: 2}}}]}]}",
         "spec.rules[0].filters[0].requestMirror.fraction", "less than or equal to denominator"),
        ("HTTPRoute", "{rules: [{filters: [{type: CORS, cors: {allowOrigins: ['*', 'https://a.example']}}]}]}",
         "spec.rules[0].filters[0].cors.allowOrigins", "alongside other origins"),
        ("HTTPRoute",
         "{rules: [{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: ' b'}]}}]}]}",
         "spec.rules[0].filters[0].requestHeaderModifier.set[0].value", "should match"),
        ("HTTPRoute", "{rules: [{retry: {codes: [200]}}]}", "spec.rules[0].retry.codes[0]", "400"),
        ("GRPCRoute", "{rules: [{matches: [{method: {type: Exact}}]}]}", "spec.rules[0].matches[0].method", "One or both"),
        ("GRPCRoute", "{rules: [{matches: [{method: {service: 'a/b'}}]}]}", "spec.rules[0].matches[0].method", "service"),
        ("TLSRoute", "{hostnames: [10.0.0.1], rules: [{backendRefs: [{name: a, port: 1}]}]}", "spec.hostnames", "an IP"),
        ("TLSRoute", "{rules: [{backendRefs: [{name: a, port: 1}]}]}", "spec.hostnames", "Required value"),
        ("TCPRoute", "{rules: [{backendRefs: []}]}", "spec.rules[0].backendRefs", "Required value"),
        ("Gateway", "{gatewayClassName: istio}", "spec.listeners", "Required value"),
        ("Gateway", "{gatewayClassName: i, listeners: [{name: a, port: 80, protocol: HTTP, tls: {options: {a: b}}}]}",
         "spec.listeners", "tls must not be specified"),
        ("Gateway", "{gatewayClassName: i, listeners: [{name: a, port: 80, protocol: TLS}]}", "spec.listeners",
         "tls mode must be set"),
        ("Gateway",
         "{gatewayClassName: i, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {mode: Passthrough}}]}",
         "spec.listeners", "must be Terminate for protocol HTTPS"),
        ("Gateway", "{gatewayClassName: i, listeners: [{name: a, port: 80, protocol: TCP, hostname: a.example}]}",
         "spec.listeners", "hostname must not be specified"),
        ("Gateway", "{gatewayClassName: i, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {}}]}",
         "spec.listeners[0].tls", "certificateRefs or options"),
        ("Gateway", "{gatewayClassName: i, listeners: [{name: a, port: 80, protocol: HTTP}, "
         "{name: a, port: 81, protocol: HTTP}]}", "spec.listeners[1].name", "Duplicate value"),
        ("Gateway", "{gatewayClassName: i, listeners: [{name: a, port: 80, protocol: HTTP}, "
         "{name: b, port: 80, protocol: HTTP}]}", "spec.listeners", "Combination of port, protocol and hostname"),
        ("Gateway", f"{{{LISTENER}, addresses: [{{type: Hostname, value: a b}}]}}", "spec.addresses[0]", "Hostname value"),
        ("Gateway", f"{{{LISTENER}, addresses: [{{type: Hostname, value: a}}, {{type: Hostname, value: a}}]}}",
         "spec.addresses", "Hostname values must be unique"),
        ("Gateway", f"{{{LISTENER}, infrastructure: {{labels: {{'a b': c}}}}}}", "spec.infrastructure.labels", "Label"),
        ("ListenerSet", "{listeners: [{name: a, port: 80, protocol: HTTP}]}", "spec.parentRef", "Required value"),
        ("BackendTLSPolicy", "{targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: a.example}}",
         "spec.validation", "must specify either CACertificateRefs or WellKnownCACertificates"),
        ("BackendTLSPolicy",
         "{targetRefs: [{group: '', kind: Service, name: a}, {group: '', kind: Service, name: a}], "
         "validation: {hostname: a.example, wellKnownCACertificates: System}}",
         "spec.targetRefs", "sectionName must be unique"),
        ("BackendTLSPolicy",
         "{targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: a.example, "
         "wellKnownCACertificates: System, subjectAltNames: [{type: URI, hostname: a.example}]}}",
         "spec.validation.subjectAltNames[0]", "must contain URI"),
        ("ReferenceGrant", "{to: [{group: '', kind: Secret}]}", "spec.from", "Required value"),
        ("GatewayClass", "{controllerName: istio}", "spec.controllerName", "should match"),
    ],
)  # fmt: skip
def test_a_rule_of_the_schemas_refuses(kind: str, spec: str, path: str, message: str) -> None:
    found = refusals(kind, spec)
    assert any(one.startswith(f"{path}: ") and message in one for one in found), found


def test_a_refused_object_does_not_come_out_of_a_file() -> None:
    text = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: bad, namespace: web}
spec: {rules: [{backendRefs: [{name: front}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: good, namespace: web}
spec: {rules: [{backendRefs: [{name: front, port: 80}]}]}
"""
    bad, good = entries.read_yaml(text)
    assert (bad.outcome, bad.object) == ("failed", None)
    assert [str(problem) for _, problem in bad.problems] == [
        'HTTPRoute web/bad: spec.rules[0].backendRefs[0]: Invalid value: "object": Must have port for Service reference'
    ]
    assert (good.outcome, good.problems) == ("decoded", ())


# -- the tables against the schemas -------------------------------------------------------------------------------


def limits(schema: dict[str, Any], shape: Shape, path: str) -> Iterator[tuple[str, Shape, str, dict[str, Any]]]:
    """Every field of a schema with its path, the Struct it stands in, its Python name and what the schema says."""
    python = {info.encode_name: info.name for info in struct_fields(shape.cls)}
    for wire, own in (schema.get("properties") or {}).items():
        if wire not in python:
            continue
        field = shape.fields[wire]
        required = wire in schema.get("required", ())
        yield f"{path}.{wire}", shape, python[wire], {**own, "is_required": required}
        inner = own.get("items") if field.container == "list" else own
        if field.shape is not None and isinstance(inner, dict):
            yield from limits(inner, field.shape, f"{path}.{wire}")


def beyond(own: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values just beyond each limit of a field."""
    if "maxLength" in own:
        yield "maxLength", "a" * (own["maxLength"] + 1)
    if "maxItems" in own:
        yield "maxItems", ("a",) * (own["maxItems"] + 1)
    if "minimum" in own:
        yield "minimum", own["minimum"] - 1
    if own.get("maximum", 2**31) < 2**31 - 1:
        yield "maximum", own["maximum"] + 1


@pytest.mark.parametrize("path", SERVED, ids=lambda p: p.stem.split("_")[1])
def test_every_limit_of_the_schemas_is_held(path: pathlib.Path) -> None:
    crd = yaml.safe_load(path.read_text())
    kind = kind_of_api(crd["group"], crd["names"]["kind"])
    assert kind is not None
    spec = shape_of(kind.type).fields["spec"].shape
    assert spec is not None
    missing = []
    for where, shape, name, own in limits(crd["versions"][0]["schema"]["spec"], spec, "spec"):
        bounds = BOUNDS.get(shape.cls, {}).get(name, ())
        for limit, value in beyond(own):
            caught = False
            for bound in bounds:
                try:
                    caught = caught or bool(list(bound(value)))
                except AttributeError:
                    continue  # A rule that looks into items; these here are none.
            if not caught:
                missing.append(f"{where}: {limit}")
        default = getattr(shape.cls(), name)
        if own["is_required"] and not default and name not in (*REQUIRED.get(shape.cls, ()), *EMPTY_BY_DEFAULT):
            missing.append(f"{where}: required")
    assert missing == []
