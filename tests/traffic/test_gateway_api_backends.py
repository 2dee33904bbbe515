"""Backends of routes at a gateway: shares, backends that are not there, grants, and TLS to the backend."""

from collections import Counter

import pytest
from eventually import eventually_blocking
from traffic_gateway_api import authority, route, routed, to
from traffic_manifests import behaviour, service
from traffic_programs import statuses
from traffic_shares import assert_share

NEAR, FAR = "app: echo, place: near", "app: echo, place: far"
COUNT = 400


def shared(*backends: str) -> str:
    return f"- {{backendRefs: [{', '.join(backends)}]}}"


# -- shares -----------------------------------------------------------------------------------------------------------


@behaviour(
    service("api-split-near", selector=NEAR),
    service("api-split-far", selector=FAR),
    route(
        "api-split",
        shared(
            "{name: api-split-near, port: 80, weight: 1}",
            "{name: api-split-far, port: 80, weight: 3}",
            "{name: api-split-never, port: 80, weight: 0}",
        ),
    ),
)
def test_requests_are_shared_by_weight_and_a_backend_without_any_gets_none(entrance):
    pods = Counter(answer.pod for answer in entrance.send("api-split", count=COUNT, workers=4))
    assert pods.keys() == {"near", "far"}
    assert_share(pods["far"], COUNT, 0.75)


@behaviour(
    service("api-even-near", selector=NEAR),
    service("api-even-far", selector=FAR),
    route("api-even", f"- {{{to('api-even-near', 'api-even-far')}}}"),
)
def test_without_weights_the_shares_are_equal(entrance):
    pods = Counter(answer.pod for answer in entrance.send("api-even", count=COUNT, workers=4))
    assert_share(pods["far"], COUNT, 0.5)


# -- nothing there ----------------------------------------------------------------------------------------------------

EMPTY = {
    "nobody": "",
    "zero": "{name: api-here, port: 80, weight: 0}",
    "unknown": "{name: api-unknown, port: 80}",
    "port": "{name: api-here, port: 8123}",
    "kind": "{group: example.com, kind: Bucket, name: api-here, port: 80}",
}


@behaviour(
    service("api-here"),
    route(
        "api-empty",
        "\n".join(
            f"- {{matches: [{{path: {{value: /{name}}}}}]{f', backendRefs: [{backend}]' if backend else ''}}}"
            for name, backend in {**EMPTY, "good": "{name: api-here, port: 80}"}.items()
        ),
    ),
)
@pytest.mark.parametrize("name", EMPTY)
def test_a_rule_without_a_backend_that_could_answer_gives_500_and_its_siblings_work(entrance, name):
    assert entrance.get("api-empty", f"/{name}").status == 500
    assert entrance.get("api-empty", "/good").status == 200


@behaviour(
    service("api-half"),
    route(
        "api-halved",
        shared("{name: api-half, port: 80, weight: 1}", "{group: example.com, kind: Bucket, name: b, weight: 1}"),
    ),
)
def test_a_refused_backend_keeps_its_share_of_requests(entrance):
    found = statuses(entrance.send("api-halved", count=COUNT, workers=4))
    assert found.keys() == {200, 500}
    assert_share(found[500], COUNT, 0.5)


@behaviour(
    service("api-broken"),
    route(
        "api-broken",
        f"- {{matches: [{{path: {{value: /good}}}}], {to('api-broken')}}}\n"
        f"- {{filters: [{{type: ExtensionRef, extensionRef: {{group: e.com, kind: K, name: n}}}}], {to('api-broken')}}}",
    ),
)
def test_a_filter_that_nobody_knows_takes_the_whole_route(entrance):
    assert entrance.get("api-broken", "/good").status == 404


# -- grants -----------------------------------------------------------------------------------------------------------

AWAY = "backendRefs: [{name: NAME, namespace: outside, port: 80}]"


def away(name: str) -> str:
    """A Service of the namespace `outside`, where there are no sidecars."""
    return service(name, selector="app: outer").replace(f"name: {name}}}", f"name: {name}, namespace: outside}}", 1)


def grant(name: str, source: str, target: str) -> str:
    return f"""
kind: ReferenceGrant
metadata: {{name: {name}, namespace: outside}}
spec:
  from: [{{group: gateway.networking.k8s.io, {source}}}]
  to: [{{group: "", {target}}}]
---
"""


GRANTS = {
    "granted": ("kind: HTTPRoute, namespace: traffic", "kind: Service", 200),
    "by-name": ("kind: HTTPRoute, namespace: traffic", "kind: Service, name: api-by-name", 200),
    "other-name": ("kind: HTTPRoute, namespace: traffic", "kind: Service, name: api-else", 500),
    "other-kind": ("kind: GRPCRoute, namespace: traffic", "kind: Service, name: api-other-kind", 500),
    "other-namespace": ("kind: HTTPRoute, namespace: scoped", "kind: Service, name: api-other-namespace", 500),
    "other-target": ("kind: HTTPRoute, namespace: traffic", "kind: Secret, name: api-other-target", 500),
}
NAMED = {
    name: target if "name:" in target else f"{target}, name: api-{name}" for name, (_, target, _) in GRANTS.items()
}


@behaviour(
    *(
        away(f"api-{name}")
        + route(f"api-{name}", f"- {{{AWAY.replace('NAME', f'api-{name}')}}}")
        + grant(f"api-{name}", source, NAMED[name])
        for name, (source, _, _) in GRANTS.items()
    )
)
def test_a_backend_of_another_namespace_needs_a_grant_for_just_that(entrance):
    answers = {name: entrance.get(f"api-{name}") for name in GRANTS}
    assert {name: answer.status for name, answer in answers.items()} == {n: s for n, (_, _, s) in GRANTS.items()}
    assert answers["granted"].pod == "outer"


@behaviour(away("api-revoked"), route("api-revoked", f"- {{{AWAY.replace('NAME', 'api-revoked')}}}"))
def test_a_grant_may_come_and_be_taken_back(entrance, mesh):
    assert entrance.get("api-revoked").status == 500
    mesh.apply(
        "revoked", [grant("api-revoked", "kind: HTTPRoute, namespace: traffic", "kind: Service, name: api-revoked")]
    )
    assert entrance.get("api-revoked").status == 200
    mesh.apply("revoked", [])
    assert entrance.get("api-revoked").status == 500


MIRRORED = """
- filters:
    - {type: RequestMirror, requestMirror: {backendRef: {name: api-peeked, namespace: outside, port: 80}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: api-peeked-far, port: 80}}}
  backendRefs: [{name: api-peek, port: 80}]
"""


@behaviour(routed("api-peek", MIRRORED, selector=NEAR), away("api-peeked"), service("api-peeked-far", selector=FAR))
def test_a_mirror_of_another_namespace_without_a_grant_gets_no_copies(entrance, mesh, outer):
    answer = entrance.get("api-peek")
    assert answer.pod == "near"
    assert [seen.pod for seen in eventually_blocking(lambda: mesh["far"].received(answer.case))] == ["far"]
    assert outer.received(answer.case) == []


# -- TLS to the backend -----------------------------------------------------------------------------------------------

POLICIES = {
    "trusted": ("hostname: trusted.example.com", "roots", 200),
    "by-san": ("hostname: any.example, subjectAltNames: [{type: Hostname, hostname: outer.example.com}]", "roots", 200),
    "wrong-san": ("hostname: any.example, subjectAltNames: [{type: Hostname, hostname: a.example}]", "roots", 503),
    "wrong-uri": ("hostname: any.example, subjectAltNames: [{type: URI, uri: 'spiffe://a/b'}]", "roots", 503),
    "wrong-roots": ("hostname: wrong-roots.example.com", "strangers", 503),
    "no-roots": ("hostname: no-roots.example.com", "missing", 503),
    "system": ("hostname: system.example.com, wellKnownCACertificates: System", "", 503),
}


def secured(name: str, validation: str, roots: str, target: str = "") -> str:
    """A Service whose port is TLS at the backend, and a policy that says so."""
    trusted = f", caCertificateRefs: [{{group: '', kind: ConfigMap, name: api-{roots}}}]" if roots else ""
    return f"""
kind: Service
metadata: {{name: {name}, namespace: outside}}
spec:
  selector: {{app: outer}}
  ports: [{{name: http, port: 80, targetPort: 8443}}, {{name: http-plain, port: 81, targetPort: 8080}}]
---
kind: BackendTLSPolicy
metadata: {{name: {name}, namespace: outside}}
spec:
  targetRefs: [{{group: "", kind: Service, name: {name}{target}}}]
  validation: {{{validation}{trusted}}}
---
"""


SECURED = [
    authority("api-roots", "outside"),
    authority("api-strangers", "outside", trusted=False),
    *(
        secured(f"api-tls-{name}", validation, roots)
        + route(f"api-tls-{name}", f"- {{{to(f'api-tls-{name}')}}}", namespace="outside")
        for name, (validation, roots, _) in POLICIES.items()
    ),
]


@behaviour(*SECURED)
@pytest.mark.parametrize("name", POLICIES)
def test_a_backend_behind_tls_is_asked_by_its_name_and_believed_by_policy(entrance, name):
    validation, _, expected = POLICIES[name]
    answer = entrance.get(f"api-tls-{name}")
    assert answer.status == expected
    if expected == 200:
        assert answer.seen.kind == "https"
        assert f"hostname: {answer.seen.sni}" in validation


@behaviour(*SECURED)
def test_sidecars_follow_the_policy_of_a_service_too(client):
    answer = client.get("http://api-tls-trusted.outside/")
    assert (answer.seen.kind, answer.seen.sni) == ("https", "trusted.example.com")
    for name in ("wrong-san", "wrong-roots"):
        assert client.get(f"http://api-tls-{name}.outside/").status == 503


@behaviour(
    *SECURED[:1],
    secured("api-tls-port", "hostname: outer.example.com", "roots", ", sectionName: http"),
    route(
        "api-tls-port",
        "- {matches: [{path: {value: /plain}}], backendRefs: [{name: api-tls-port, port: 81}]}\n"
        "- {backendRefs: [{name: api-tls-port, port: 80}]}",
        namespace="outside",
    ),
)
def test_a_policy_may_be_for_one_port(entrance):
    assert [entrance.get("api-tls-port", path).seen.kind for path in ("/", "/plain")] == ["https", "http"]


LATER = secured("api-tls-later", "hostname: outer.example.com", "roots")
PLAIN = LATER.partition("---")[0]


@behaviour(*SECURED[:1], PLAIN, route("api-tls-later", f"- {{{to('api-tls-later')}}}", namespace="outside"))
def test_a_policy_changes_running_traffic_and_goes_with_its_object(entrance, mesh):
    assert entrance.get("api-tls-later").status == 503
    mesh.apply("secured", [LATER.removeprefix(PLAIN)])
    assert entrance.get("api-tls-later").seen.sni == "outer.example.com"
    mesh.apply("secured", [])
    assert entrance.get("api-tls-later").status == 503
