"""The Helm chart makes the objects that `mizzen manifest generate` prints, rendered by the real Helm."""

import json
import pathlib
import subprocess
from typing import Any

import pytest
import yaml

from mizzen.install.crds.definitions import mesh_crds
from mizzen.install.manifests import manifests
from mizzen.install.values import lay_over

ROOT = pathlib.Path(__file__).parents[2]
EMBEDDED = {"mesh": yaml.safe_load, "meshNetworks": yaml.safe_load}
"""Texts of ConfigMaps in which Helm and we write the same YAML by other rules of style."""

CASES: dict[str, str] = {
    "defaults": "{}",
    "a revision": "{revision: canary}",
    "the default revision by its name": "{revision: default, revisionTags: [default, prod]}",
    "tags": "{revision: 1-32-0, revisionTags: [prod, default, 1-32-0]}",
    "another namespace": "{global: {istioNamespace: mesh}, revisionTags: [prod]}",
    "no autoscaler": "{pilot: {autoscaleEnabled: false, replicaCount: 3}}",
    "more of an autoscaler": """
pilot:
  autoscaleMin: 2
  autoscaleMax: 9
  memory: {targetAverageUtilization: 70}
  autoscaleBehavior: {scaleDown: {stabilizationWindowSeconds: 300}}
""",
    "no disruption budget": "{global: {defaultPodDisruptionBudget: {enabled: false}}}",
    "another disruption budget": "{pilot: {pdb: {minAvailable: null, maxUnavailable: 1}}}",
    "a mesh config": """
meshConfig:
  trustDomain: example.com
  rootNamespace: mesh-config
  accessLogFile: /dev/stdout
  defaultConfig:
    holdApplicationUntilProxyStarts: true
    proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true"}
  extensionProviders:
  - name: otel
    opentelemetry: {service: otel.example.svc.cluster.local, port: 4317}
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  defaultProviders: {metrics: []}
global:
  meshID: mesh1
  network: network1
  multiCluster: {clusterName: cluster1}
  meshNetworks:
    network1: {endpoints: [{fromRegistry: cluster1}], gateways: [{address: 1.1.1.1, port: 15443}]}
""",
    "a default taken away": "{meshConfig: {trustDomain: null, enablePrometheusMerge: null}}",
    "gateways": """
gateways:
  istio-ingressgateway:
    enabled: true
    service: {annotations: {cloud: "yes", number: 1}, loadBalancerIP: 10.1.1.1, externalTrafficPolicy: Local}
  istio-egressgateway: {enabled: true, autoscaling: {enabled: false}, podDisruptionBudget: null}
  east-west:
    namespace: edge
    labels: {app: east-west, topology.istio.io/network: network1}
    env: {ISTIO_META_REQUESTED_NETWORK_VIEW: network1, NUMBER: 1}
    podAnnotations: {example: true}
    serviceAccount: {annotations: {role: arn}}
    replicaCount: 2
    autoscaling: {minReplicas: 2, autoscaleBehavior: {scaleUp: {stabilizationWindowSeconds: 0}}}
    tolerations: [{key: edge, operator: Exists}]
    service: {type: NodePort, ports: [{name: tls, port: 15443, targetPort: 15443, nodePort: 30443}]}
revision: canary
""",
    "monitoring": "{serviceMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}}}",
    "dashboards": "{dashboards: {enabled: true, labels: {grafana_folder: mesh}}}",
    "resources and scheduling": """
global:
  priorityClassName: system-cluster-critical
  imagePullPolicy: Always
  imagePullSecrets: [registry, other]
pilot:
  resources: {requests: {cpu: 1}, limits: {memory: 4Gi}}
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: control, operator: Exists, effect: NoSchedule}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
  rollingMaxSurge: 1
  rollingMaxUnavailable: 0
  seccompProfile: null
""",
    "images": "{global: {hub: registry.example/mesh, tag: 1, variant: distroless}, pilot: {tag: 2.5, image: control}}",
    "a whole image": "{pilot: {image: registry.example/control@sha256:00, hub: other}}",
    "arguments and environment": """
global: {logging: {level: "default:debug,ads:info"}, logAsJson: true, proxy: {clusterDomain: example.internal}}
pilot:
  env: {PILOT_HTTP10: true, PILOT_TRACE_SAMPLING: 5, A_NUMBER: 1.5, CLUSTER_ID: own}
  extraContainerArgs: [--shutdownDuration=5s, --ctrlz_port=0]
  traceSampling: 0.5
  keepaliveMaxServerConnectionAge: 10m
  volumes: [{name: extra, emptyDir: {}}]
  volumeMounts: [{name: extra, mountPath: /extra}]
""",
    "labels and annotations": """
pilot:
  podLabels: {team: mesh, app: stolen, istio.io/rev: stolen}
  podAnnotations: {prometheus.io/scrape: "false", number: 7}
  deploymentLabels: {team: mesh}
  serviceAnnotations: {example: true}
  serviceAccountAnnotations: {role: arn}
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv6, IPv4]
""",
    "injection": """
sidecarInjectorWebhook:
  enableNamespacesByDefault: true
  reinvocationPolicy: IfNeeded
  neverInjectSelector: [{matchExpressions: [{key: job-name, operator: Exists}]}]
  injectedAnnotations: {a: "<b>&c"}
  aliases: {mine: [sidecar]}
global: {proxy: {autoInject: disabled, resources: {limits: null}, lifecycle: {preStop: {sleep: {seconds: 5}}}}}
pilot: {cni: {enabled: true}}
""",
    "a control plane elsewhere": """
istiodRemote: {injectionURL: "https://plane.example:15017/inject", injectionCABundle: Zm9v}
base: {validationURL: "https://plane.example:15017/validate", validationCABundle: Zm9v}
""",
    "nothing in the place of something": """
pilot:
  env: {CLUSTER_ID: "", PILOT_TRACE_SAMPLING: null, OWN: null, EMPTY: ""}
  podAnnotations: {prometheus.io/scrape: "", prometheus.io/port: null, own: null}
  podLabels: {own: null, empty: ""}
  cpu: null
  memory: null
  resources: null
  pdb: null
  autoscaleMin: 0
  autoscaleMax: 0
  rollingMaxSurge: 0
  traceSampling: 0
gateways:
  edge:
    env: {OWN: null}
    podAnnotations: {prometheus.io/scrape: "", prometheus.io/port: null}
    resources: {limits: null}
    terminationGracePeriodSeconds: 0
    labels: {app: edge, own: null}
    autoscaling: {minReplicas: 0}
    service: {ports: [], annotations: {own: null}}
  none: null
meshConfig: {rootNamespace: "", defaultProviders: null, defaultConfig: {discoveryAddress: null}}
revisionTags: null
dashboards: {enabled: true, labels: {grafana_dashboard: null, own: null}}
""",
    "signers of Kubernetes": "{global: {certSigners: [example.com/signer, example.com/*]}}",
    "a path of one's own": "{istiodRemote: {injectionPath: /inject/cluster/east/net/n1}}",
}


def rendered(helm: pathlib.Path, values: dict[str, Any], folder: pathlib.Path) -> list[dict[str, Any]]:
    namespace = values.get("global", {}).get("istioNamespace", "istio-system")
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    command = [helm, "template", "any", ROOT / "charts/mizzen", "-n", namespace, "-f", file]
    more = ["--include-crds"]
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    answer = subprocess.run([*command, *more], capture_output=True, text=True, env=environment, check=False)
    assert answer.returncode == 0, answer.stderr
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(answer.stdout, loader) if each is not None]


def by_name(documents: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for each in documents:
        key = (each["apiVersion"], each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
        assert key not in found, f"{key} is there twice"
        found[key] = each
    return found


def without_nulls(value: Any) -> Any:
    """As the API server stores it, for whom a null in a manifest is nothing."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def read_embedded(document: dict[str, Any]) -> dict[str, Any]:
    if document["kind"] != "ConfigMap":
        return document
    data = {name: EMBEDDED.get(name, str)(text) for name, text in document["data"].items()}
    return {**document, "data": data}


@pytest.mark.parametrize("case", CASES)
def test_chart_and_program_make_the_same_objects(helm: pathlib.Path, case: str, tmp_path: pathlib.Path) -> None:
    values = yaml.safe_load(CASES[case])
    laid = lay_over([values])
    assert laid.warnings == ()
    ours, theirs = by_name(manifests(laid)), by_name(rendered(helm, values, tmp_path))
    assert sorted(ours) == sorted(theirs)
    for key, document in ours.items():
        assert without_nulls(read_embedded(document)) == without_nulls(read_embedded(theirs[key])), key


def test_a_case_that_changes_nothing_would_prove_nothing() -> None:
    default = manifests(lay_over([]))
    for case, text in CASES.items():
        if case != "defaults":
            assert manifests(lay_over([yaml.safe_load(text)])) != default, case


def test_the_chart_has_every_definition(helm: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = [each for each in rendered(helm, {}, tmp_path) if each["kind"] == "CustomResourceDefinition"]
    assert {each["metadata"]["name"] for each in found} == {each["metadata"]["name"] for each in mesh_crds()}
