"""The manifests of managed Gateways."""

from typing import Any

import golden
import pytest
from gateway_api import gateway, route
from meshes import apply, mesh_of, proxy, told

from mizzen.api.meta import Key
from mizzen.api.networking.selectors import PolicyTargetReference
from mizzen.compile import resource
from mizzen.inject.gateways.manifests import Rendered, gateway_manifests
from mizzen.inject.values import InjectionConfig
from mizzen.model.attachments import Audience, is_for
from mizzen.model.convert.gateways.deployments import deployment
from mizzen.model.workloads import freeze

KEY = Key("KubernetesGateway", "edge", "gw")
PARAMETERS = "infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: own}}"


def rendered(text: str, *others: str, config: InjectionConfig | None = None, **mesh: Any) -> Rendered:
    wanted = deployment(mesh_of(text, *others), KEY)
    assert wanted is not None
    return gateway_manifests(wanted, config, mesh)


def documents(text: str, *others: str, config: InjectionConfig | None = None, **mesh: Any) -> dict[str, dict[str, Any]]:
    found = rendered(text, *others, config=config, **mesh)
    assert found.problems == ()
    return {document["kind"]: document for document in found.documents}


def parameters(**data: str) -> str:
    entries = "".join(f"\n  {name}: '{text}'" for name, text in data.items())
    return (
        f"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: own, namespace: edge}}\ndata:{entries or ' {}'}\n"
    )


def container(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (only,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def test_three_objects_of_one_name_that_find_each_other() -> None:
    found = documents(gateway())
    assert list(found) == ["ServiceAccount", "Deployment", "Service"]
    assert {(d["metadata"]["name"], d["metadata"]["namespace"]) for d in found.values()} == {("gw-istio", "edge")}
    selector = {"gateway.networking.k8s.io/gateway-name": "gw"}
    spec = found["Deployment"]["spec"]
    assert spec["selector"]["matchLabels"] == found["Service"]["spec"]["selector"] == selector
    labels = spec["template"]["metadata"]["labels"]
    assert labels.items() >= selector.items()
    assert labels["sidecar.istio.io/inject"] == "false"
    assert labels["gateway.istio.io/managed"] == "istio.io-gateway-controller"
    assert spec["template"]["spec"]["serviceAccountName"] == "gw-istio"


def test_what_was_rendered_serves_the_gateway() -> None:
    found = documents(gateway())
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gw-0", "namespace": "edge", "labels": labels},
        "spec": found["Deployment"]["spec"]["template"]["spec"],
        "status": {"podIP": "10.0.0.20", "phase": "Running"},
    }
    db = mesh_of(gateway(), route())
    golden.set_object(db, found["Service"])
    golden.set_object(db, pod)
    who = proxy("edge", "gw-0", ip="10.0.0.20", kind="router", labels=labels)
    assert list(told(db, who, resource.LISTENER)) == ["0.0.0.0_80"]
    apply(db, gateway(name="other"))
    assert list(told(db, who, resource.LISTENER)) == ["0.0.0.0_80"]


def test_the_proxy_is_a_router_of_the_installation() -> None:
    config = InjectionConfig(hub="example.com/mesh", tag="1.2.3", revision="canary", image_pull_secrets=("pull",))
    found = documents(gateway(), config=config, trustDomain="corp.example")
    only = container(found)
    assert only["image"] == "example.com/mesh/proxyv2:1.2.3"
    assert only["args"][:2] == ["proxy", "router"]
    env = {one["name"]: one.get("value") for one in only["env"]}
    assert env["TRUST_DOMAIN"] == "corp.example"
    assert env["CA_ADDR"] == "istiod-canary.istio-system.svc:15012"
    assert env["ISTIO_META_OWNER"] == "kubernetes://apis/apps/v1/namespaces/edge/deployments/gw-istio"
    probe = only["startupProbe"]
    assert (probe["failureThreshold"], probe["periodSeconds"], probe["httpGet"]["port"]) == (30, 1, 15021)
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["sysctls"] == [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert {mount["name"] for mount in only["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_a_waypoint_is_one_inside_the_cluster() -> None:
    found = documents(gateway("{name: mesh, port: 15008, protocol: HBONE}", class_name="istio-waypoint"))
    assert container(found)["args"][:2] == ["proxy", "waypoint"]
    service = found["Service"]
    assert service["spec"]["type"] == "ClusterIP"
    assert service["metadata"]["annotations"] == {"networking.istio.io/traffic-distribution": "PreferClose"}


def test_the_gateway_owns_what_was_made_for_it_once_it_is_in_a_cluster() -> None:
    assert "ownerReferences" not in documents(gateway())["Service"]["metadata"]
    (owner,) = documents(gateway(meta=", uid: abc"))["Service"]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Gateway", "gw", "abc")


def test_a_long_name_is_cut_in_labels_and_policies_still_find_the_gateway() -> None:
    name = "g" * 80
    wanted = deployment(mesh_of(gateway(name=name)), Key("KubernetesGateway", "edge", name))
    assert wanted is not None
    (_, made, _) = gateway_manifests(wanted).documents
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert len(labels["gateway.networking.k8s.io/gateway-name"]) == 63
    audience = Audience("router", "edge", freeze(labels))
    reference = PolicyTargetReference(group="gateway.networking.k8s.io", kind="Gateway", name=name)
    assert is_for(audience, "edge", None, (reference,))
    other = PolicyTargetReference(group="gateway.networking.k8s.io", kind="Gateway", name="g" * 79)
    assert not is_for(audience, "edge", None, (other,))


# -- customisation ------------------------------------------------------------------------------------------------


def test_patches_are_laid_over_their_objects_and_ask_for_an_autoscaler() -> None:
    found = documents(
        gateway(spec=PARAMETERS),
        parameters(
            deployment="{spec: {replicas: 4, template: {spec: {containers: [{name: istio-proxy, tty: true}]}}}}",
            service="{spec: {externalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30080}]}}",
            serviceAccount="{metadata: {annotations: {role: edge}}}",
            horizontalPodAutoscaler="{spec: {minReplicas: 2, maxReplicas: 5}}",
            podDisruptionBudget="{spec: {minAvailable: 1}}",
        ),
    )
    assert found["Deployment"]["spec"]["replicas"] == 4
    assert container(found)["tty"] is True
    assert container(found)["args"][:2] == ["proxy", "router"]
    assert found["Service"]["spec"]["externalTrafficPolicy"] == "Local"
    assert next(p for p in found["Service"]["spec"]["ports"] if p["port"] == 80)["nodePort"] == 30080
    assert found["ServiceAccount"]["metadata"]["annotations"] == {"role": "edge"}
    scaler = found["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"], scaler["scaleTargetRef"]["name"]) == (2, 5, "gw-istio")
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]


def test_a_patch_cannot_rename_what_it_is_laid_over() -> None:
    patch = "{kind: ClusterRoleBinding, apiVersion: v9, metadata: {name: other, namespace: kube-system}}"
    found = documents(gateway(spec=PARAMETERS), parameters(serviceAccount=patch))
    assert found["ServiceAccount"]["metadata"]["namespace"] == "edge"
    assert found["ServiceAccount"]["metadata"]["name"] == "gw-istio"
    assert found["ServiceAccount"]["apiVersion"] == "v1"


@pytest.mark.parametrize("text", ["[a]", "text", "{a: b", "a: &x [*x]"])
def test_a_patch_that_does_not_read_leaves_everything_undone_and_says_so(text: str) -> None:
    found = rendered(gateway(spec=PARAMETERS), parameters(deployment=text))
    assert found.documents == ()
    (problem,) = found.problems
    assert problem.key == KEY
    assert "ConfigMap edge/own deployment: " in problem.message


def test_missing_parameters_and_bad_annotations_are_problems() -> None:
    (missing,) = rendered(gateway(spec=PARAMETERS)).problems
    assert missing.message == "parametersRef ConfigMap edge/own not found"
    (bad,) = rendered(gateway(meta=", annotations: {sidecar.istio.io/proxyCPU: lots}")).problems
    assert bad.key == KEY
