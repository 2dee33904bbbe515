"""What a local mesh deploys for Gateways that nobody deploys."""

from gateway_api import EDGE, gateway
from local_objects import deployment
from meshes import documents

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key, Object
from mizzen.inject.values import InjectionConfig
from mizzen.local.managed import with_gateways
from mizzen.local.workloads import expand, template_hash

CONFIG = InjectionConfig(dialect="envoy")
DEPLOYMENT, SERVICE = Key("Deployment", "edge", "gw-istio"), Key("Service", "edge", "gw-istio")


def objects(*texts: str) -> dict[Key, Object]:
    found = [decode_object(document) for text in texts for document in documents(text)]
    return {one.key: one.object for one in found if one.key is not None and one.object is not None}


def test_a_gateway_brings_its_deployment_and_service_and_the_pods_follow() -> None:
    given = objects(gateway())
    found = with_gateways(given, CONFIG, {})
    assert found.objects.keys() - given.keys() == {DEPLOYMENT, SERVICE}
    (pod,) = expand(found.objects.values())
    assert pod.owner == DEPLOYMENT
    environ = {one.name: one.value for one in pod.pod.spec.containers[0].env}
    assert environ["ISTIO_META_MIZZEN_DIALECT"] == "envoy"
    assert found.remarks == ()


def test_what_the_manifests_have_themselves_stays() -> None:
    given = objects(EDGE, gateway())
    found = with_gateways(given, CONFIG, {})
    assert found.objects[SERVICE] is given[SERVICE]
    assert DEPLOYMENT in found.objects


def test_without_gateways_nothing_is_added_and_a_bad_one_is_told() -> None:
    assert with_gateways(objects(EDGE), CONFIG, {}).objects == objects(EDGE)
    bad = gateway(spec="infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: none}}")
    found = with_gateways(objects(bad), CONFIG, {})
    assert found.objects == objects(bad)
    assert "parametersRef ConfigMap edge/none not found" in found.remarks[0]


def test_equal_manifests_give_equal_pods() -> None:
    once, again = (with_gateways(objects(gateway()), CONFIG, {}).objects for _ in range(2))
    assert once == again
    assert [pod.key for pod in expand(once.values())] == [pod.key for pod in expand(again.values())]


def test_a_template_with_quantities_has_a_hash() -> None:
    spec = "{containers: [{name: a, command: [a], resources: {limits: {cpu: 1, memory: 64Mi}}}]}"
    text = f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{template: {{spec: {spec}}}}}}}"
    (found,) = objects(text).values()
    assert template_hash(found.spec.template) != template_hash(deployment("a").spec.template)
