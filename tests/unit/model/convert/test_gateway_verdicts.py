"""What is wrong with Gateways, their listeners and ListenerSets, told by the conditions of their statuses."""

import pytest
import yaml
from gateway_api import gateway, messages, plain, verdicts, world
from meshes import apply, delete
from traffic_certificates import OTHER, ROOT

HTTP = "{name: web, port: 80, protocol: HTTP}"


def https(tls: str, name: str = "tls", port: int = 443) -> str:
    return f"{{name: {name}, port: {port}, protocol: HTTPS, tls: {tls}}}"


def secret(name: str, namespace: str = "edge", **content: str) -> str:
    certificate, key = ROOT.issue("shop.example")
    kept = content or {"tls.crt": certificate, "tls.key": key}
    meta = {"name": name, "namespace": namespace}
    return "\n---\n" + yaml.safe_dump({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": kept})


def roots(name: str, text: str = ROOT.pem, key: str = "ca.crt", namespace: str = "edge") -> str:
    meta = {"name": name, "namespace": namespace}
    return "\n---\n" + yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: text}})


def test_a_gateway_that_is_served_is_accepted_and_programmed() -> None:
    assert verdicts(world(gateway()), "KubernetesGateway", "edge", "gw") == {
        "Accepted": "True Accepted",
        "Programmed": "True Programmed",
        "ResolvedRefs": "True ResolvedRefs",
        "web/Accepted": "True Accepted",
        "web/Conflicted": "False NoConflicts",
        "web/Programmed": "True Programmed",
        "web/ResolvedRefs": "True ResolvedRefs",
    }


# -- listeners ----------------------------------------------------------------------------------------------------

MANGLED = secret("mangled", **{"tls.crt": "no certificate", "tls.key": "no key"})
MISMATCHED = secret("mismatched", **{"tls.crt": ROOT.issue("a.example")[0], "tls.key": ROOT.issue("a.example")[1]})
KEYLESS = secret("keyless", **{"tls.crt": ROOT.issue("a.example")[0]})
GRANT = plain(
    "ReferenceGrant",
    "grant",
    "vault",
    "{from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: edge}], "
    "to: [{group: '', kind: Secret, name: granted}]}",
)


@pytest.mark.parametrize(
    ("listener", "others", "expected"),
    [
        ("{name: l, port: 80, protocol: UDP}", "", {"Accepted": "False UnsupportedProtocol"}),
        ("{name: l, port: 80, protocol: http}", "", {"Accepted": "False UnsupportedProtocol"}),
        ("{name: l, port: 80, protocol: example.com/own}", "", {"Accepted": "False UnsupportedProtocol"}),
        ("{name: l, port: 15008, protocol: HBONE}", "", {"Accepted": "False UnsupportedProtocol"}),
        (
            "{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}]}}",
            "",
            {"ResolvedRefs": "False InvalidRouteKinds", "Programmed": "True Programmed"},
        ),
        (
            "{name: l, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{group: example.com, kind: HTTPRoute}]}}",
            "",
            {"ResolvedRefs": "False InvalidRouteKinds"},
        ),
        (
            https("{certificateRefs: [{name: missing}]}", "l"),
            "",
            {"ResolvedRefs": "False InvalidCertificateRef", "Programmed": "False Invalid", "Accepted": "True Accepted"},
        ),
        (https("{certificateRefs: [{name: mangled}]}", "l"), MANGLED, {"ResolvedRefs": "False InvalidCertificateRef"}),
        (
            https("{certificateRefs: [{name: mismatched}]}", "l"),
            MISMATCHED,
            {"ResolvedRefs": "False InvalidCertificateRef"},
        ),
        (https("{certificateRefs: [{name: keyless}]}", "l"), KEYLESS, {"ResolvedRefs": "False InvalidCertificateRef"}),
        (
            https("{certificateRefs: [{kind: ConfigMap, name: trust}]}", "l"),
            roots("trust"),
            {"ResolvedRefs": "False InvalidCertificateRef"},
        ),
        (
            https("{certificateRefs: [{group: example.com, name: a}]}", "l"),
            "",
            {"ResolvedRefs": "False InvalidCertificateRef"},
        ),
        (
            https("{certificateRefs: [{name: a}, {name: b}, {name: c}]}", "l"),
            secret("a") + secret("b") + secret("c"),
            {"ResolvedRefs": "False InvalidCertificateRef"},
        ),
        (https("{options: {example.com/x: y}}", "l"), "", {"ResolvedRefs": "False InvalidCertificateRef"}),
        (
            https("{certificateRefs: [{name: other, namespace: vault}]}", "l"),
            secret("other", "vault") + GRANT,
            {
                "ResolvedRefs": "False RefNotPermitted",
                "Programmed": "False Invalid",
                "Accepted": "False NoValidCACertificate",
            },
        ),
        (
            https("{certificateRefs: [{name: granted, namespace: vault}]}", "l"),
            GRANT,
            {"ResolvedRefs": "False InvalidCertificateRef", "Accepted": "True Accepted"},
        ),
    ],
)
def test_a_bad_listener_says_why(listener: str, others: str, expected: dict[str, str]) -> None:
    """Beside a good one, which goes on; of the kinds that are wrong the listener itself may well be valid."""
    db = world(gateway(f"{HTTP.replace('80', '9000')}, {listener}"), others)
    found = verdicts(db, "KubernetesGateway", "edge", "gw")
    assert {key: found[f"l/{key}"] for key in expected} == expected
    assert found["web/Programmed"] == "True Programmed"
    is_valid = found["l/Accepted"].startswith("True") and found["l/Programmed"].startswith("True")
    assert found["Accepted"] == ("True Accepted" if is_valid else "True ListenersNotValid")


def test_a_certificate_that_is_granted_is_used() -> None:
    db = world(
        gateway(https("{certificateRefs: [{name: granted, namespace: vault}]}")), secret("granted", "vault"), GRANT
    )
    assert verdicts(db, "KubernetesGateway", "edge", "gw")["tls/ResolvedRefs"] == "True ResolvedRefs"
    delete(db, GRANT)
    assert verdicts(db, "KubernetesGateway", "edge", "gw")["tls/ResolvedRefs"] == "False RefNotPermitted"


def test_a_gateway_without_a_valid_listener_is_not_accepted() -> None:
    db = world(gateway("{name: l, port: 80, protocol: UDP}"))
    found = verdicts(db, "KubernetesGateway", "edge", "gw")
    assert (found["Accepted"], found["Programmed"]) == ("False ListenersNotValid", "True Programmed")


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("protocol: HTTP", "protocol: HTTP", "HostnameConflict"),
        ("protocol: HTTP, hostname: a.example", "protocol: HTTP, hostname: a.example", "HostnameConflict"),
        ("protocol: HTTP", "protocol: TCP", "ProtocolConflict"),
        ("protocol: TCP", "protocol: HTTP, hostname: a.example", "ProtocolConflict"),
        ("protocol: TCP", "protocol: TCP", "ProtocolConflict"),
        ("protocol: TLS, tls: {mode: Passthrough}", "protocol: TCP", "ProtocolConflict"),
        (
            "protocol: TLS, hostname: a.example, tls: {mode: Passthrough}",
            "protocol: HTTPS, hostname: a.example, tls: {certificateRefs: [{name: a}]}",
            "ProtocolConflict",
        ),
        (
            "protocol: HTTP, hostname: a.example",
            "protocol: HTTPS, hostname: b.example, tls: {certificateRefs: [{name: a}]}",
            "ProtocolConflict",
        ),
        ("protocol: TLS, hostname: a.example, tls: {mode: Passthrough}", "protocol: HTTP", "ProtocolConflict"),
    ],
)
def test_of_two_listeners_that_collide_the_first_is_served(first: str, second: str, reason: str) -> None:
    db = world(gateway(f"{{name: a, port: 443, {first}}}, {{name: b, port: 443, {second}}}"), secret("a"))
    found = verdicts(db, "KubernetesGateway", "edge", "gw")
    assert found["a/Conflicted"] == "False NoConflicts"
    assert {key: value for key, value in found.items() if key.startswith("b/")} == {
        "b/Accepted": f"False {reason}",
        "b/Conflicted": f"True {reason}",
        "b/Programmed": f"False {reason}",
    }


def test_listeners_of_several_hosts_and_a_host_of_several_protocols_get_along() -> None:
    tls = "tls: {certificateRefs: [{name: a}]}"
    listeners = (
        "{name: a, port: 443, protocol: TLS, hostname: a.example, tls: {mode: Passthrough}}, "
        f"{{name: b, port: 443, protocol: HTTPS, hostname: b.example, {tls}}}, "
        f"{{name: c, port: 443, protocol: HTTPS, hostname: '*.example', {tls}}}, "
        "{name: d, port: 80, protocol: HTTP, hostname: a.example}, "
        "{name: e, port: 80, protocol: UDP}, {name: f, port: 53, protocol: UDP}, {name: g, port: 53, protocol: TCP}"
    )
    found = verdicts(world(gateway(listeners), secret("a")), "KubernetesGateway", "edge", "gw")
    assert {found[f"{name}/Conflicted"] for name in "abcdefg"} == {"False NoConflicts"}


# -- validation of clients ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("references", "others", "reason", "accepted"),
    [
        ("[{group: '', kind: ConfigMap, name: none}]", "", "InvalidCACertificateRef", "False NoValidCACertificate"),
        (
            "[{group: '', kind: ConfigMap, name: t}]",
            roots("t", "no certificate"),
            "InvalidCACertificateRef",
            "False NoValidCACertificate",
        ),
        (
            "[{group: '', kind: ConfigMap, name: t}]",
            roots("t", key="other"),
            "InvalidCACertificateRef",
            "False NoValidCACertificate",
        ),
        (
            "[{group: '', kind: ConfigMap, name: t}, {group: '', kind: ConfigMap, name: u}]",
            roots("t") + roots("u"),
            "InvalidCACertificateRef",
            "False NoValidCACertificate",
        ),
        ("[{group: '', kind: Service, name: t}]", "", "InvalidCACertificateKind", "False NoValidCACertificate"),
        (
            "[{group: '', kind: ConfigMap, name: t, namespace: vault}]",
            roots("t", namespace="vault"),
            "RefNotPermitted",
            "False NoValidCACertificate",
        ),
    ],
)
def test_clients_cannot_be_validated_without_readable_roots(
    references: str, others: str, reason: str, accepted: str
) -> None:
    frontend = f"tls: {{frontend: {{default: {{validation: {{caCertificateRefs: {references}}}}}}}}}"
    db = world(gateway(https("{certificateRefs: [{name: a}]}"), frontend), secret("a"), others)
    found = verdicts(db, "KubernetesGateway", "edge", "gw")
    assert (found["tls/ResolvedRefs"], found["tls/Accepted"]) == (f"False {reason}", accepted)
    assert found["tls/Programmed"] == "False Invalid"


def test_a_port_may_validate_clients_in_its_own_way_and_leniency_shows() -> None:
    def validation(name: str, mode: str) -> str:
        refs = f"[{{group: '', kind: ConfigMap, name: {name}}}]"
        return f"{{validation: {{mode: {mode}, caCertificateRefs: {refs}}}}}"

    frontend = (
        f"tls: {{frontend: {{default: {validation('none', 'AllowValidOnly')}, "
        f"perPort: [{{port: 443, tls: {validation('t', 'AllowInsecureFallback')}}}]}}}}"
    )
    listeners = f"{https('{certificateRefs: [{name: a}]}')}, {https('{certificateRefs: [{name: a}]}', 'two', 9000)}"
    found = verdicts(world(gateway(listeners, frontend), secret("a"), roots("t")), "KubernetesGateway", "edge", "gw")
    assert (found["tls/ResolvedRefs"], found["two/ResolvedRefs"]) == (
        "True ResolvedRefs",
        "False InvalidCACertificateRef",
    )
    assert found["InsecureFrontendValidationMode"] == "True ConfigurationChanged"


# -- the Gateway itself -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "others", "reason"),
    [
        ("{name: none}", "", "InvalidClientCertificateRef"),
        ("{kind: ConfigMap, name: t}", roots("t"), "InvalidClientCertificateRef"),
        ("{name: m}", secret("m", **{"tls.crt": OTHER.pem}), "InvalidClientCertificateRef"),
        ("{name: a, namespace: vault}", secret("a", "vault"), "RefNotPermitted"),
    ],
)
def test_a_bad_client_certificate_is_the_gateways_own(reference: str, others: str, reason: str) -> None:
    db = world(gateway(spec=f"tls: {{backend: {{clientCertificateRef: {reference}}}}}"), others)
    found = verdicts(db, "KubernetesGateway", "edge", "gw")
    assert found["ResolvedRefs"] == f"False {reason}"
    assert found["Programmed"] == "True Programmed"


@pytest.mark.parametrize(
    ("spec", "meta", "expected"),
    [
        (
            "addresses: [{type: Hostname, value: gw-istio}, {value: 10.0.0.1}]",
            "",
            {"Accepted": "False UnsupportedAddress", "Programmed": "True Programmed", "web/Programmed": "True Programmed"},
        ),
        (
            "addresses: [{value: 10.0.0.1}, {value: 10.0.0.2}]",
            "",
            {"Accepted": "False UnsupportedAddress", "Programmed": "False UnsupportedAddress"},
        ),
        (
            "addresses: [{type: Hostname, value: none}]",
            "",
            {"Accepted": "True Accepted", "Programmed": "False AddressNotUsable"},
        ),
        (
            "addresses: [{type: Hostname, value: front.web.svc.cluster.local}]",
            "",
            {"Accepted": "True Accepted", "Programmed": "False AddressNotUsable"},
        ),
        (
            "addresses: [{type: Hostname, value: gw-istio}]",
            ", annotations: {networking.istio.io/service-type: ClusterIP}",
            {"Accepted": "False DeprecatedField", "Programmed": "True Programmed"},
        ),
        (
            "infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: none}}",
            "",
            {"Accepted": "False InvalidParameters", "Programmed": "True Programmed"},
        ),
        (
            "infrastructure: {parametersRef: {group: apps, kind: Deployment, name: none}}",
            "",
            {"Accepted": "False InvalidParameters"},
        ),
        (
            "infrastructure: {}",
            ", annotations: {gateway.istio.io/name-override: other}",
            {"Accepted": "True Accepted", "Programmed": "False AddressNotUsable"},
        ),
    ],
)  # fmt: skip
def test_a_bad_gateway_says_why(spec: str, meta: str, expected: dict[str, str]) -> None:
    found = verdicts(world(gateway(spec=spec, meta=meta)), "KubernetesGateway", "edge", "gw")
    assert {key: found.get(key) for key in expected} == expected


def test_messages_name_what_was_found_elsewhere_and_which_port_was_meant() -> None:
    listeners = "{name: web, port: 8080, protocol: HTTP}, {name: two, port: 80, protocol: HTTP}"
    db = world(gateway(listeners))
    assert messages(db, "KubernetesGateway", "edge", "gw")["Programmed"] == (
        "Assigned to service(s) gw-istio.edge.svc.cluster.local:80, but failed to assign to all requested addresses: "
        'port 8080 not found for hostname "gw-istio.edge.svc.cluster.local" (hint: the service port should be '
        "specified, not the workload port. Did you mean one of these ports: [80]?)"
    )
    apply(db, gateway(spec="addresses: [{type: Hostname, value: front.web.svc.cluster.local}]"))
    assert messages(db, "KubernetesGateway", "edge", "gw")["Programmed"] == (
        'Failed to assign to any requested addresses: hostname "front.web.svc.cluster.local" not found in namespace '
        '"edge", but it was found in namespace(s) "web"'
    )


BALANCED = """
---
apiVersion: v1
kind: Service
metadata: {name: gw-istio, namespace: edge}
spec: {type: LoadBalancer, clusterIP: 10.96.0.20, selector: {gateway: gw}, ports: [{name: p80, port: 80}]}
"""


def test_a_load_balancer_without_an_address_is_waited_for() -> None:
    db = world(gateway(), BALANCED)
    found = verdicts(db, "KubernetesGateway", "edge", "gw")
    assert (found["Accepted"], found["Programmed"]) == ("True Accepted", "False AddressNotAssigned")
    apply(db, BALANCED.rstrip() + "\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}\n")
    assert verdicts(db, "KubernetesGateway", "edge", "gw")["Programmed"] == "True Programmed"


# -- classes ------------------------------------------------------------------------------------------------------


def test_a_gateway_of_nobody_or_of_somebody_else_waits() -> None:
    foreign = plain("GatewayClass", "other", "", "{controllerName: example.com/controller}")
    db = world(gateway(class_name="other"), foreign)
    pending = {"Accepted": "Unknown Pending", "Programmed": "Unknown Pending"}
    assert verdicts(db, "KubernetesGateway", "edge", "gw") == pending
    assert verdicts(db, "GatewayClass", "", "other") == {"Accepted": "Unknown Pending"}
    delete(db, foreign)
    assert verdicts(db, "KubernetesGateway", "edge", "gw") == pending
    apply(db, plain("GatewayClass", "other", "", "{controllerName: istio.io/gateway-controller}"))
    assert verdicts(db, "GatewayClass", "", "other") == {"Accepted": "True Accepted"}
    assert verdicts(db, "KubernetesGateway", "edge", "gw")["Programmed"] == "False AddressNotUsable"  # gw-other


def test_a_remote_gateway_is_only_told_of() -> None:
    db = world(gateway(class_name="istio-remote", spec="addresses: [{value: 192.0.2.7}]"))
    assert verdicts(db, "KubernetesGateway", "edge", "gw") == {
        "Accepted": "True Accepted",
        "Programmed": "True Programmed",
    }


def test_a_waypoint_has_one_listener_only() -> None:
    good = "{name: mesh, port: 15008, protocol: HBONE}"
    found = verdicts(world(gateway(good, class_name="istio-waypoint")), "KubernetesGateway", "edge", "gw")
    assert found["mesh/Accepted"] == "True Accepted"
    found = verdicts(world(gateway(HTTP, class_name="istio-waypoint")), "KubernetesGateway", "edge", "gw")
    assert found["web/Accepted"] == "False UnsupportedProtocol"


# -- ListenerSets -------------------------------------------------------------------------------------------------


def listener_set(listeners: str = "{name: extra, port: 9000, protocol: HTTP}", namespace: str = "web") -> str:
    return plain("ListenerSet", "more", namespace, f"{{parentRef: {{name: gw, namespace: edge}}, listeners: [{listeners}]}}")  # fmt: skip


@pytest.mark.parametrize(
    ("allowed", "class_name", "expected"),
    [
        ("", "istio", "False NotAllowed"),
        ("allowedListeners: {namespaces: {from: None}}", "istio", "False NotAllowed"),
        ("allowedListeners: {namespaces: {from: Same}}", "istio", "False NotAllowed"),
        (
            "allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {team: edge}}}}",
            "istio",
            "False NotAllowed",
        ),
        ("allowedListeners: {namespaces: {from: All}}", "istio-waypoint", "False NotAllowed"),
        ("allowedListeners: {namespaces: {from: All}}", "nobodys", "Unknown Pending"),
        ("allowedListeners: {namespaces: {from: All}}", "istio", "True Accepted"),
        (
            "allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {team: web}}}}",
            "istio",
            "True Accepted",
        ),
    ],
)
def test_a_set_needs_its_gateways_leave(allowed: str, class_name: str, expected: str) -> None:
    db = world(gateway(spec=allowed, class_name=class_name), listener_set())
    found = verdicts(db, "ListenerSet", "web", "more")
    assert found["Accepted"] == expected
    assert ("extra/Accepted" in found) == expected.startswith("True")


def test_a_set_without_a_gateway_waits() -> None:
    assert verdicts(world(listener_set()), "ListenerSet", "web", "more")["Accepted"] == "Unknown Pending"


@pytest.mark.parametrize(
    ("listeners", "accepted", "programmed"),
    [
        ("{name: a, port: 80, protocol: HTTP}", "False ListenersNotValid", "False ListenersNotValid"),
        ("{name: a, port: 9000, protocol: UDP}", "False ListenersNotValid", "False ListenersNotValid"),
        (
            "{name: a, port: 9000, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}",
            "True Accepted",
            "True Programmed",
        ),
        ("{name: a, port: 7000, protocol: HTTP}", "True Accepted", "False AddressNotUsable"),
    ],
)
def test_a_set_with_bad_listeners_says_so(listeners: str, accepted: str, programmed: str) -> None:
    db = world(gateway(spec="allowedListeners: {namespaces: {from: All}}"), listener_set(listeners))
    found = verdicts(db, "ListenerSet", "web", "more")
    assert (found["Accepted"], found["Programmed"]) == (accepted, programmed)


def test_a_set_needs_a_grant_of_its_own() -> None:
    tls = "{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: granted, namespace: vault}]}}"
    db = world(gateway(spec="allowedListeners: {namespaces: {from: All}}"), listener_set(tls), secret("granted", "vault"), GRANT)  # fmt: skip
    assert verdicts(db, "ListenerSet", "web", "more")["tls/ResolvedRefs"] == "False RefNotPermitted"
    apply(db, GRANT.replace("kind: Gateway, namespace: edge", "kind: ListenerSet, namespace: web"))
    assert verdicts(db, "ListenerSet", "web", "more")["tls/ResolvedRefs"] == "True ResolvedRefs"
