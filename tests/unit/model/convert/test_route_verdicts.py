"""What is wrong with routes and BackendTLSPolicies, told by the conditions of their statuses."""

import pytest
import yaml
from gateway_api import gateway, messages, plain, route, verdicts, world
from meshes import apply, delete
from traffic_certificates import ROOT

from mizzen.api.meta import Key
from mizzen.incremental import Engine
from mizzen.model.convert.status.gateways import gateway_status

SERVICE = "{group: '', kind: Service, name: front}"
BACKEND = "{backendRefs: [{name: front, port: 80}]}"


# -- parents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listener", "parent", "spec", "accepted"),
    [
        ("allowedRoutes: {namespaces: {from: All}}", "sectionName: web", "", "True Accepted"),
        ("allowedRoutes: {namespaces: {from: All}}", "port: 80", "", "True Accepted"),
        ("allowedRoutes: {namespaces: {from: All}}", "sectionName: none", "", "False NoMatchingParent"),
        ("allowedRoutes: {namespaces: {from: All}}", "port: 81", "", "False NoMatchingParent"),
        ("hostname: a.example", "sectionName: web", "", "False NotAllowedByListeners"),
        ("allowedRoutes: {namespaces: {from: Same}}", "", "", "False NotAllowedByListeners"),
        (
            "allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: edge}}}}",
            "",
            "",
            "False NotAllowedByListeners",
        ),
        (
            "allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: Exists}]}}}",
            "",
            "",
            "True Accepted",
        ),
        (
            "allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: NotIn, "
            "values: [web]}]}}}",
            "",
            "",
            "False NotAllowedByListeners",
        ),
        (
            "allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}",
            "",
            "",
            "False NotAllowedByListeners",
        ),
        (
            "hostname: '*.shop.example', allowedRoutes: {namespaces: {from: All}}",
            "",
            "hostnames: [shop.example]",
            "False NoMatchingListenerHostname",
        ),
        (
            "hostname: a.example, allowedRoutes: {namespaces: {from: All}}",
            "",
            "hostnames: [b.example, '*.a.example']",
            "False NoMatchingListenerHostname",
        ),
        (
            "hostname: a.example, allowedRoutes: {namespaces: {from: Same}}",
            "",
            "hostnames: [b.example]",
            "False NoMatchingListenerHostname",
        ),
        (
            "hostname: a.shop.example, allowedRoutes: {namespaces: {from: All}}",
            "",
            "hostnames: ['*.example']",
            "True Accepted",
        ),
    ],
)
def test_a_route_attaches_where_everything_fits(listener: str, parent: str, spec: str, accepted: str) -> None:
    db = world(
        gateway(f"{{name: web, port: 80, protocol: HTTP, {listener}}}"),
        route(parent=f"{{name: gw, namespace: edge, {parent}}}", spec=spec),
    )
    assert verdicts(db, "HTTPRoute", "web", "route") == {
        "gw/Accepted": accepted,
        "gw/ResolvedRefs": "True ResolvedRefs",
    }
    assert (len(attached(db)) > 0) == accepted.startswith("True")


def attached(db: Engine) -> list[str]:
    """The listeners of the Gateway that have routes."""
    found = gateway_status(db, Key("KubernetesGateway", "edge", "gw"))
    assert found is not None
    return [one.name for one in found.listeners if one.attached_routes]


def test_kinds_attach_to_the_protocols_that_carry_them() -> None:
    free = "allowedRoutes: {namespaces: {from: All}}"
    listeners = (
        f"{{name: http, port: 80, protocol: HTTP, {free}}}, {{name: tcp, port: 9000, protocol: TCP, {free}}}, "
        f"{{name: tls, port: 443, protocol: TLS, tls: {{mode: Passthrough}}, {free}}}"
    )
    for kind, fitting in (
        ("HTTPRoute", ["http"]),
        ("GRPCRoute", ["http"]),
        ("TCPRoute", ["tcp"]),
        ("TLSRoute", ["tls"]),
    ):
        db = world(gateway(listeners), route(kind=kind))
        assert verdicts(db, kind, "web", "route")["gw/Accepted"] == "True Accepted"
        assert attached(db) == fitting
        for name in {"http", "tcp", "tls"} - set(fitting):
            apply(db, route(kind=kind, parent=f"{{name: gw, namespace: edge, sectionName: {name}}}"))
            assert verdicts(db, kind, "web", "route")["gw/Accepted"] == "False NotAllowedByListeners"


@pytest.mark.parametrize(
    "parent",
    [
        "{name: none, namespace: edge}",
        "{name: gw}",
        "{name: foreign, namespace: edge}",
        "{kind: ListenerSet, name: more}",
        "{group: example.com, kind: Gateway, name: gw, namespace: edge}",
        "{group: '', kind: Gateway, name: gw, namespace: edge}",
    ],
)
def test_of_a_parent_that_is_not_ours_nothing_is_said(parent: str) -> None:
    refused = plain(
        "ListenerSet",
        "more",
        "web",
        "{parentRef: {name: gw, namespace: edge}, listeners: [{name: a, port: 9000, protocol: HTTP}]}",
    )
    db = world(gateway(), gateway(name="foreign", class_name="other"), refused, route(parent=parent))
    assert verdicts(db, "HTTPRoute", "web", "route") == {}


def test_of_several_listeners_one_that_takes_it_is_enough() -> None:
    listeners = (
        "{name: a, port: 80, protocol: HTTP, hostname: a.example, allowedRoutes: {namespaces: {from: All}}}, "
        "{name: b, port: 80, protocol: HTTP, hostname: b.example}, {name: c, port: 80, protocol: HTTP, hostname: c.x}"
    )
    db = world(gateway(listeners), route(spec="hostnames: [a.example, b.example]"))
    assert verdicts(db, "HTTPRoute", "web", "route")["gw/Accepted"] == "True Accepted"
    apply(db, route(spec="hostnames: [b.example]"))
    assert messages(db, "HTTPRoute", "web", "route")["gw/Accepted"] == (
        'hostnames matched parent hostname "b.example", but namespace "web" is not allowed by the parent'
    )


def test_a_listener_that_gave_way_takes_no_route() -> None:
    free = "allowedRoutes: {namespaces: {from: All}}"
    db = world(
        gateway(f"{{name: a, port: 80, protocol: TCP, {free}}}, {{name: b, port: 80, protocol: HTTP, {free}}}"), route()
    )
    assert verdicts(db, "HTTPRoute", "web", "route")["gw/Accepted"] == "False NotAllowedByListeners"
    assert attached(db) == []


# -- rules --------------------------------------------------------------------------------------------------------

OTHER_SERVICE = plain("Service", "back", "store", "{clusterIP: 10.96.2.2, ports: [{name: http, port: 80}]}", group="v1")


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("{backendRefs: [{name: none, port: 80}]}", "BackendNotFound"),
        ("{backendRefs: [{name: back, namespace: store, port: 80}]}", "RefNotPermitted"),
        ("{backendRefs: [{kind: Deployment, group: apps, name: front, port: 80}]}", "InvalidKind"),
        ("{backendRefs: [{name: front.web.svc.cluster.local, port: 80}]}", "InvalidDestination"),
        ("{backendRefs: [{name: front}]}", "InvalidDestination"),
        (
            "{backendRefs: [{group: networking.istio.io, kind: Hostname, name: a.example, port: 80}]}",
            "BackendNotFound",
        ),
        (
            "{backendRefs: [{group: networking.istio.io, kind: Hostname, name: a.b, namespace: web, port: 80}]}",
            "InvalidDestination",
        ),
        ("{backendRefs: [{name: none, port: 80}]}, {backendRefs: [{name: front}]}", "InvalidDestination"),
        ("{filters: [{type: ExtensionRef, extensionRef: {group: a.b, kind: C, name: d}}]}", "InvalidFilter"),
        ("{filters: [{type: ExternalAuth}]}", "InvalidFilter"),
        (
            "{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}], "
            "backendRefs: [{name: front, port: 80}]}",
            "BackendNotFound",
        ),
        (
            "{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: back, namespace: store, port: 80}}}], "
            "backendRefs: [{name: front, port: 80}]}",
            "RefNotPermitted",
        ),
        (
            "{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: \"b\\u0001\"}]}}]}",
            "InvalidFilter",
        ),
        (
            "{backendRefs: [{name: front, port: 80, filters: [{type: URLRewrite, urlRewrite: {hostname: a.b}}]}]}",
            "InvalidFilter",
        ),
    ],
)  # fmt: skip
def test_a_rule_that_does_not_resolve_says_why(rules: str, reason: str) -> None:
    db = world(gateway(), OTHER_SERVICE, route(rules))
    assert verdicts(db, "HTTPRoute", "web", "route") == {
        "gw/Accepted": "True Accepted",
        "gw/ResolvedRefs": f"False {reason}",
    }


@pytest.mark.parametrize(("kind", "protocol"), [("TCPRoute", "TCP"), ("TLSRoute", "TLS, tls: {mode: Passthrough}")])
@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ("{name: none, port: 9000}", "False BackendNotFound"),
        ("{name: back, namespace: store, port: 80}", "False RefNotPermitted"),
        ("{group: a.b, kind: C, name: d, port: 1}", "False InvalidKind"),
        ("{name: front}", "False InvalidDestination"),
        ("{name: front, port: 9000}", "True ResolvedRefs"),
    ],
)
def test_routes_of_connections_are_judged_alike(kind: str, protocol: str, backend: str, reason: str) -> None:
    listener = f"{{name: l, port: 9000, protocol: {protocol}, allowedRoutes: {{namespaces: {{from: All}}}}}}"
    db = world(gateway(listener), OTHER_SERVICE, route(f"{{backendRefs: [{backend}]}}", kind=kind))
    assert verdicts(db, kind, "web", "route")["gw/ResolvedRefs"] == reason


def test_filters_of_other_groups_are_not_known_to_grpc_routes_either() -> None:
    rules = f"{{filters: [{{type: ExtensionRef, extensionRef: {{group: a.b, kind: C, name: d}}}}], {BACKEND[1:]}"
    db = world(gateway(), route(rules, kind="GRPCRoute"))
    assert verdicts(db, "GRPCRoute", "web", "route")["gw/ResolvedRefs"] == "False InvalidFilter"


def test_a_mirror_that_does_not_resolve_takes_a_grpc_route_with_it() -> None:
    mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}"
    db = world(gateway(), route(f"{{filters: [{mirror}], {BACKEND[1:]}", kind="GRPCRoute"))
    assert verdicts(db, "GRPCRoute", "web", "route")["gw/ResolvedRefs"] == "False BackendNotFound"


@pytest.mark.parametrize(
    ("origin", "to", "resolved"),
    [
        ("kind: HTTPRoute, namespace: web", "group: '', kind: Service", "True ResolvedRefs"),
        ("kind: HTTPRoute, namespace: web", "group: '', kind: Service, name: back", "True ResolvedRefs"),
        ("kind: HTTPRoute, namespace: web", "group: '', kind: Service, name: other", "False RefNotPermitted"),
        ("kind: HTTPRoute, namespace: edge", "group: '', kind: Service", "False RefNotPermitted"),
        ("kind: GRPCRoute, namespace: web", "group: '', kind: Service", "False RefNotPermitted"),
        ("kind: HTTPRoute, namespace: web", "group: '', kind: Secret", "False RefNotPermitted"),
    ],
)
def test_a_grant_is_for_what_it_names(origin: str, to: str, resolved: str) -> None:
    grant = plain(
        "ReferenceGrant",
        "grant",
        "store",
        f"{{from: [{{group: gateway.networking.k8s.io, {origin}}}], to: [{{group: a.b, kind: C}}, {{{to}}}]}}",
    )
    rules = "{backendRefs: [{name: back, namespace: store, port: 80}]}"
    db = world(gateway(), OTHER_SERVICE, route(rules), grant)
    assert verdicts(db, "HTTPRoute", "web", "route")["gw/ResolvedRefs"] == resolved
    delete(db, grant)
    assert verdicts(db, "HTTPRoute", "web", "route")["gw/ResolvedRefs"] == "False RefNotPermitted"


# -- parents of the mesh ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "accepted"),
    [
        (SERVICE, "True Accepted"),
        ("{group: '', kind: Service, name: front, port: 1}", "True Accepted"),
        ("{group: '', kind: Service, name: none}", "False NoMatchingParent"),
        ("{group: networking.istio.io, kind: ServiceEntry, name: none}", "False NoMatchingParent"),
    ],
)
def test_a_service_as_parent_has_to_exist(parent: str, accepted: str) -> None:
    found = verdicts(world(route(parent=parent)), "HTTPRoute", "web", "route")
    assert set(found.values()) == {accepted, "True ResolvedRefs"}


def test_no_grant_is_needed_in_the_mesh() -> None:
    rules = "{backendRefs: [{name: back, namespace: store, port: 80}]}"
    db = world(OTHER_SERVICE, route(rules, parent=SERVICE))
    assert verdicts(db, "HTTPRoute", "web", "route")["front/ResolvedRefs"] == "True ResolvedRefs"


# -- BackendTLSPolicy ---------------------------------------------------------------------------------------------


def policy(targets: str, validation: str, *, name: str = "policy", meta: str = "", day: int = 1) -> str:
    dated = f', creationTimestamp: "2026-01-{day:02}T00:00:00Z"{meta}'
    spec = f"{{targetRefs: [{targets}], validation: {{hostname: front.example, {validation}}}}}"
    return plain("BackendTLSPolicy", name, "web", spec, meta=dated)


def roots(name: str, text: str = ROOT.pem) -> str:
    meta = {"name": name, "namespace": "web"}
    return "\n---\n" + yaml.safe_dump(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": text}}
    )


MISSING = "{group: '', kind: Service, name: none}"
SYSTEM = "wellKnownCACertificates: System"
ROOTS = "caCertificateRefs: [{group: '', kind: ConfigMap, name: roots}]"


@pytest.mark.parametrize(
    ("target", "validation", "accepted", "resolved"),
    [
        (SERVICE, SYSTEM, "True Accepted", "True ResolvedRefs"),
        (SERVICE, ROOTS, "True Accepted", "True ResolvedRefs"),
        ("{group: '', kind: Service, name: front, sectionName: http}", SYSTEM, "True Accepted", "True ResolvedRefs"),
        ("{group: '', kind: Service, name: none}", SYSTEM, "False TargetNotFound", "True ResolvedRefs"),
        (
            "{group: '', kind: Service, name: front, sectionName: grpc}",
            SYSTEM,
            "False TargetNotFound",
            "True ResolvedRefs",
        ),
        ("{group: apps, kind: Deployment, name: front}", SYSTEM, "False TargetNotFound", "True ResolvedRefs"),
        (SERVICE, "wellKnownCACertificates: example.com/all", "False Invalid", "True ResolvedRefs"),
        (
            SERVICE,
            "caCertificateRefs: [{group: '', kind: ConfigMap, name: none}]",
            "False NoValidCACertificate",
            "False InvalidCACertificateRef",
        ),
        (
            SERVICE,
            "caCertificateRefs: [{group: '', kind: ConfigMap, name: bad}]",
            "False NoValidCACertificate",
            "False InvalidCACertificateRef",
        ),
        (
            SERVICE,
            "caCertificateRefs: [{group: '', kind: Secret, name: roots}]",
            "False NoValidCACertificate",
            "False InvalidKind",
        ),
    ],
)
def test_a_policy_needs_a_target_and_roots(target: str, validation: str, accepted: str, resolved: str) -> None:
    db = world(gateway(), route(), roots("roots"), roots("bad", "no certificate"), policy(target, validation))
    found = verdicts(db, "BackendTLSPolicy", "web", "policy")
    named = "none" if "name: none}" in target else "front"
    assert (found[f"{named}/Accepted"], found[f"{named}/ResolvedRefs"]) == (accepted, resolved)
    reaches_gateway = "TargetNotFound" not in accepted
    assert found.get("gw/Accepted") == (accepted if reaches_gateway else None)


def test_of_two_policies_the_older_counts_and_when_it_goes_the_other() -> None:
    old = policy(SERVICE, SYSTEM, name="old", day=1)
    db = world(gateway(), route(), old, policy(SERVICE, SYSTEM, name="new", day=2))
    assert verdicts(db, "BackendTLSPolicy", "web", "old")["front/Accepted"] == "True Accepted"
    found = verdicts(db, "BackendTLSPolicy", "web", "new")
    assert (found["front/Accepted"], found["gw/Accepted"]) == ("False Conflicted", "False Conflicted")
    delete(db, old)
    assert verdicts(db, "BackendTLSPolicy", "web", "new")["front/Accepted"] == "True Accepted"


def test_policies_of_several_ports_do_not_conflict_and_one_may_stand_aside() -> None:
    ports = [f"{{group: '', kind: Service, name: front, sectionName: {port}}}" for port in ("http", "tcp")]
    aside = policy(
        SERVICE, SYSTEM, name="aside", meta=", annotations: {istio.io/ignore-policy-attachment: 'true'}", day=1
    )
    db = world(
        policy(ports[0], SYSTEM, name="a", day=2),
        policy(ports[1], SYSTEM, name="b", day=3),
        policy(SERVICE, SYSTEM, name="c", day=4),
        aside,
    )
    assert verdicts(db, "BackendTLSPolicy", "web", "aside")["front/Accepted"] == "False IgnoredByIstio"
    for name in "abc":
        assert verdicts(db, "BackendTLSPolicy", "web", name)["front/Accepted"] == "True Accepted"


@pytest.mark.parametrize("targets", [f"{SERVICE}, {MISSING}", f"{MISSING}, {SERVICE}"])
def test_that_a_target_is_missing_is_not_the_gateways_fault(targets: str) -> None:
    found = verdicts(world(gateway(), route(), policy(targets, SYSTEM)), "BackendTLSPolicy", "web", "policy")
    assert found["front/Accepted"] == "True Accepted"
    assert found["none/Accepted"] == "False TargetNotFound"
    assert found["gw/Accepted"] == "True Accepted"


@pytest.mark.parametrize("order", [0, 1])
def test_a_gateway_of_several_targets_is_told_of_the_one_at_fault(order: int) -> None:
    targets = (SERVICE, "{group: '', kind: Service, name: front, sectionName: tcp}")
    db = world(
        gateway(),
        route(),
        policy(SERVICE, SYSTEM, name="old"),
        policy(", ".join(targets if order else reversed(targets)), SYSTEM, name="new", day=2),
    )
    assert verdicts(db, "BackendTLSPolicy", "web", "new")["gw/Accepted"] == "False Conflicted"


def test_a_gateway_whose_routes_lead_to_a_host_of_a_service_entry_is_told_of_its_policy() -> None:
    entry = plain(
        "ServiceEntry",
        "outside",
        "web",
        "{hosts: [a.example, b.example], ports: [{number: 443, name: tls, protocol: HTTPS}], resolution: DNS}",
        group="networking.istio.io/v1",
    )
    rule = "{backendRefs: [{group: networking.istio.io, kind: Hostname, name: b.example, port: 443}]}"
    target = "{group: networking.istio.io, kind: ServiceEntry, name: outside}"
    db = world(gateway(), entry, route(rule), policy(target, SYSTEM))
    found = verdicts(db, "BackendTLSPolicy", "web", "policy")
    assert found["outside/Accepted"] == found["gw/Accepted"] == "True Accepted"


def test_a_policy_tells_of_every_gateway_that_leads_to_its_target_up_to_sixteen() -> None:
    gateways = [gateway(name=f"gw{i:02}") for i in range(20)]
    parents = ", ".join(f"{{name: gw{i:02}, namespace: edge}}" for i in range(20))
    db = world(*gateways, route(parent=parents), policy(SERVICE, SYSTEM))
    found = verdicts(db, "BackendTLSPolicy", "web", "policy")
    assert [key for key in found if key.endswith("/Accepted")] == [
        "front/Accepted",
        *(f"gw{i:02}/Accepted" for i in range(15)),
    ]
