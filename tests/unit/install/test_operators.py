"""Files that say what an installation is to be."""

import pytest
import yaml

from mizzen.errors import DecodeError
from mizzen.install.operators import layer_of
from mizzen.install.values import lay_over

OPERATOR = """
apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
spec:
  profile: default
  hub: registry.example
  tag: 1.2.3
  revision: canary
  meshConfig: {accessLogFile: /dev/stdout}
  components:
    pilot:
      enabled: true
      k8s:
        env: [{name: PILOT_HTTP10, value: "true"}]
        resources: {requests: {cpu: 2}}
        hpaSpec: {minReplicas: 2}
    ingressGateways:
    - name: istio-ingressgateway
      enabled: true
      label: {istio: edge}
      k8s: {hpaSpec: {maxReplicas: 3}, serviceAnnotations: {cloud: x}, service: {type: NodePort}}
    cni: {enabled: false}
  values:
    global: {proxy: {logLevel: debug}}
"""


def test_an_istio_operator_is_read_as_values() -> None:
    values = lay_over([layer_of(yaml.safe_load(OPERATOR))])
    assert values.warnings == ()
    assert (values.text("global.hub"), values.text("global.tag"), values.text("revision")) == (
        "registry.example",
        "1.2.3",
        "canary",
    )
    assert values.get("meshConfig.accessLogFile") == "/dev/stdout"
    assert values.get("pilot.env") == {"PILOT_HTTP10": "true"}
    assert values.get("pilot.resources.requests") == {"cpu": 2, "memory": "2048Mi"}
    assert values.get("pilot.autoscaleMin") == 2
    assert values.get("global.proxy.logLevel") == "debug"
    gateway = values.gateways["istio-ingressgateway"]
    assert gateway["labels"] == {"istio": "edge"}
    assert gateway["autoscaling"]["maxReplicas"] == 3
    assert gateway["service"]["annotations"] == {"cloud": "x"}
    assert gateway["service"]["type"] == "NodePort"


def test_what_an_istio_operator_asks_in_vain_is_told() -> None:
    spec = {
        "profile": "ambient",
        "compatibilityVersion": "1.30",
        "components": {"ztunnel": {"enabled": True}, "pilot": {"k8s": {"overlays": []}}},
    }
    values = lay_over([layer_of({"apiVersion": "install.istio.io/v1alpha1", "kind": "IstioOperator", "spec": spec})])
    told = " ".join(values.warnings)
    for name in ("profile", "compatibilityVersion", "components.ztunnel", "pilot.k8s.overlays"):
        assert f"unknown value {name} has no effect" in told


def test_plain_values_are_themselves_and_other_objects_are_refused() -> None:
    assert layer_of({"pilot": {"replicaCount": 2}}) == {"pilot": {"replicaCount": 2}}
    with pytest.raises(DecodeError, match="got a Pod"):
        layer_of({"apiVersion": "v1", "kind": "Pod"})
