"""Which Gateways are deployed, under which names, and what they ask for."""

import pytest
from gateway_api import EDGE, gateway, plain, verdicts
from meshes import mesh_of

from mizzen.api.meta import Key
from mizzen.incremental import Engine
from mizzen.model.convert.gateways.deployments import Deployment, deployment

KEY = Key("KubernetesGateway", "edge", "gw")


def wanted(*texts: str) -> Deployment:
    found = deployment(mesh_of(EDGE, *texts), KEY)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("spec", "class_name", "deployed"),
    [
        ("", "istio", True),
        ("addresses: [{value: 192.0.2.1}]", "istio", True),
        ("addresses: [{type: Hostname, value: other}]", "istio", False),
        ("addresses: [{type: Hostname, value: other}, {value: 192.0.2.1}]", "istio", False),
        ("", "istio-waypoint", True),
        ("", "istio-remote", False),
        ("", "nobodys", False),
    ],
)
def test_a_gateway_without_a_service_of_its_own_is_deployed(spec: str, class_name: str, deployed: bool) -> None:
    db = mesh_of(EDGE, gateway(spec=spec, class_name=class_name))
    assert (deployment(db, KEY) is not None) == deployed


def test_names_follow_from_gateway_and_class_unless_annotations_say_otherwise() -> None:
    found = wanted(gateway())
    assert (found.name, found.service_account, found.service_type) == ("gw-istio", "gw-istio", "LoadBalancer")
    waypoint = wanted(gateway(class_name="istio-waypoint"))
    assert (waypoint.name, waypoint.service_type, waypoint.is_waypoint) == ("gw", "ClusterIP", True)
    own = wanted(
        gateway(
            meta=", annotations: {gateway.istio.io/name-override: a, gateway.istio.io/service-account: b, "
            "networking.istio.io/service-type: NodePort, gateway.istio.io/controller-version: '5', x: y}"
        )
    )
    assert (own.name, own.service_account, own.service_type) == ("a", "b", "NodePort")
    assert own.annotations == {"networking.istio.io/service-type": "NodePort", "x": "y"}


def test_an_address_is_what_the_load_balancer_is_to_have() -> None:
    assert wanted(gateway(spec="addresses: [{value: 192.0.2.1}]")).address == "192.0.2.1"


def test_labels_are_those_of_the_infrastructure_else_the_gateways_own() -> None:
    meta = ", labels: {own: a}, annotations: {own: b}"
    assert (wanted(gateway(meta=meta)).labels, wanted(gateway(meta=meta)).annotations) == ({"own": "a"}, {"own": "b"})
    asked = (
        "infrastructure: {labels: {asked: c, gateway.networking.k8s.io/gateway-name: other}, annotations: {asked: d}}"
    )
    found = wanted(gateway(spec=asked, meta=meta))
    assert (found.labels, found.annotations) == ({"asked": "c"}, {"asked": "d"})


def test_each_port_stands_once_under_the_name_of_its_first_listener() -> None:
    long = "x" * 70
    listeners = (
        "{name: a.b, port: 80, protocol: HTTP}, {name: again, port: 80, protocol: HTTP, hostname: c.d}, "
        "{name: a-b, port: 81, protocol: TCP}, {name: status-port, port: 82, protocol: TCP}, "
        "{name: health, port: 15021, protocol: HTTP}, "
        f"{{name: {long}, port: 443, protocol: TLS, tls: {{mode: Passthrough}}}}"
    )
    more = plain(
        "ListenerSet",
        "more",
        "web",
        "{parentRef: {name: gw, namespace: edge}, listeners: [{name: extra, port: 83, protocol: HTTP}]}",
    )
    found = wanted(gateway(listeners, "allowedListeners: {namespaces: {from: All}}"), more)
    assert [(port.name, port.number, port.protocol) for port in found.ports] == [
        ("status-port", 15021, "tcp"),
        ("a-b", 80, "http"),
        ("a-b-81", 81, "tcp"),
        ("status-port-82", 82, "tcp"),
        ("x" * 63, 443, "tls"),
        ("extra", 83, "http"),
    ]


PARAMETERS = "infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: own}}"


def config_map(name: str, namespace: str, data: str, meta: str = "") -> str:
    return f"\n---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}{meta}}}, data: {data}}}\n"  # fmt: skip


def test_the_classs_defaults_come_before_the_gateways_own_parameters() -> None:
    labelled = ", labels: {gateway.istio.io/defaults-for-class: istio}"
    found = wanted(
        gateway(spec=PARAMETERS),
        config_map("own", "edge", "{service: own, unknown: ignored}"),
        config_map("defaults", "istio-system", "{service: all, deployment: all}", labelled),
        config_map("elsewhere", "edge", "{service: no}", labelled),
        config_map("other", "istio-system", "{service: no}", labelled.replace(": istio}", ": other}")),
    )
    assert [(patch.part, patch.text) for patch in found.patches] == [
        ("deployment", "all"),
        ("service", "all"),
        ("service", "own"),
    ]


def test_parameters_that_are_missing_are_a_fault_here_and_in_the_status() -> None:
    found = wanted(gateway(spec=PARAMETERS))
    assert found.fault is not None
    assert found.fault.reason == "InvalidParameters"
    db: Engine = mesh_of(EDGE, gateway(spec=PARAMETERS))
    assert verdicts(db, "KubernetesGateway", "edge", "gw")["Accepted"] == "False InvalidParameters"
