"""The control plane's workload: what it is started with is what the program takes."""

from typing import Any

import pytest

from mizzen import settings
from mizzen.cli.discovery import discovery
from mizzen.control.options import parse_address
from mizzen.inject.pod import inject_pod
from mizzen.inject.values import decode_injector
from mizzen.install.config_maps import injector_config_map
from mizzen.install.control_plane import control_plane_documents
from mizzen.install.gateways import gateway_documents
from mizzen.install.values import lay_over


def found(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in control_plane_documents(lay_over([values]))}


def pod_of(values: dict[str, Any]) -> dict[str, Any]:
    template: dict[str, Any] = found(values)["Deployment"]["spec"]["template"]
    return template


def container_of(values: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod_of(values)["spec"]["containers"]
    assert isinstance(container, dict)
    return container


@pytest.mark.parametrize(
    "values", [{}, {"global": {"logAsJson": True}, "pilot": {"extraContainerArgs": ["--shutdownDuration=5s"]}}]
)
def test_the_program_takes_its_arguments_and_serves_the_ports_of_the_service(values: dict[str, Any]) -> None:
    container = container_of(values)
    name, *arguments = container["args"]
    assert name == discovery.name
    chosen = discovery.make_context(name, arguments).params
    flags = ("grpc_addr", "secure_addr", "mutual_addr", "monitoring_addr", "http_addr", "https_addr")
    addresses = [parse_address(flag, chosen[flag]) for flag in flags]
    assert {address.host for address in addresses if address} == {""}, "other pods reach them"
    served = {address.port for address in addresses if address}
    assert {port["containerPort"] for port in container["ports"]} == served
    targets = {port["targetPort"] for port in found(values)["Service"]["spec"]["ports"]}
    assert targets <= served
    assert container["readinessProbe"]["httpGet"]["port"] in served
    assert chosen["as_json"] == ("global" in values)


def environment_of(values: dict[str, Any]) -> dict[str, str]:
    fields = {"metadata.name": "istiod-0", "metadata.namespace": "mesh", "spec.serviceAccountName": "istiod"}
    return {
        each["name"]: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container_of(values)["env"]
    }


def test_the_environment_is_understood() -> None:
    values = {"revision": "canary", "pilot": {"traceSampling": 2.5, "env": {"PILOT_HTTP10": True}}}
    loaded, warnings = settings.load(environment_of(values))
    assert warnings == ()
    assert loaded.instance == settings.Instance(name="istiod-0", namespace="mesh", revision="canary")
    assert loaded.features.trace_sampling == 2.5
    assert loaded.features.http10
    plain, warnings = settings.load(environment_of({}))
    assert (plain.instance.revision, warnings) == ("default", ())


def test_the_pod_has_no_rights_on_its_node_and_is_never_injected() -> None:
    pod, container = pod_of({}), container_of({})
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    stolen = {"pilot": {"podLabels": {"sidecar.istio.io/inject": "true", "app": "other"}}}
    for template in (pod, pod_of(stolen)):
        assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
        assert template["metadata"]["labels"]["app"] == "istiod"


def test_replicas_are_the_autoscaler_s_if_there_is_one() -> None:
    assert "replicas" not in found({})["Deployment"]["spec"]
    assert found({})["HorizontalPodAutoscaler"]["spec"]["minReplicas"] == 1
    fixed = found({"pilot": {"autoscaleEnabled": False, "replicaCount": 2}})
    assert fixed["Deployment"]["spec"]["replicas"] == 2
    assert "HorizontalPodAutoscaler" not in fixed


def test_a_whole_image_is_taken_as_it_is() -> None:
    assert container_of({})["image"] == "localhost/mizzen/pilot:0.1.0"
    assert container_of({"global": {"hub": "h", "tag": 1, "variant": "debug"}})["image"] == "h/pilot:1-debug"
    assert container_of({"pilot": {"image": "r/x@sha256:1"}})["image"] == "r/x@sha256:1"


def test_a_gateway_s_pod_is_made_a_gateway_by_the_injector() -> None:
    values = lay_over([{"revision": "canary", "gateways": {"edge": {}}}])
    (deployment,) = (each for each in gateway_documents(values) if each["kind"] == "Deployment")
    config = decode_injector(injector_config_map(values))
    space = {"metadata": {"name": "istio-system", "labels": {}}}
    injection = inject_pod(deployment["spec"]["template"], namespace=space, config=config)
    assert injection.injected
    (container,) = injection.pod["spec"]["containers"]
    assert container["image"] == "localhost/mizzen/proxyv2:0.1.0"
    assert container["args"][:2] == ["proxy", "router"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    sysctls = injection.pod["spec"]["securityContext"]["sysctls"]
    assert sysctls == [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert environment["CA_ADDR"] == "istiod-canary.istio-system.svc:15012"
    other = inject_pod(
        deployment["spec"]["template"], namespace=space, config=decode_injector(injector_config_map(lay_over([{}])))
    )
    assert not other.injected, "it is for the control plane of its revision alone"
