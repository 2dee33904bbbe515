"""Builders of the Kubernetes objects that tests of the local mesh need, with everything else left at its default."""

from mizzen.api.kube.pods import Container, Pod, PodCondition, PodIP, PodSpec, PodStatus, PodTemplate
from mizzen.api.kube.services import Service, ServicePort, ServiceSpec
from mizzen.api.kube.workloads import Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec
from mizzen.api.meta import ObjectMeta

COMMAND = ("python3", "app.py")


def template(name: str, command: tuple[str, ...] = COMMAND, **spec: object) -> PodTemplate:
    return PodTemplate(
        metadata=ObjectMeta(labels={"app": name}),
        spec=PodSpec(containers=(Container(name="app", command=command),), **spec),
    )


def deployment(
    name: str, pods: PodTemplate | None = None, replicas: int | None = 1, namespace: str = "shop"
) -> Deployment:
    spec = DeploymentSpec(replicas=replicas, template=pods or template(name))
    return Deployment(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def stateful_set(
    name: str, pods: PodTemplate | None = None, replicas: int | None = 2, service: str = "", namespace: str = "shop"
) -> StatefulSet:
    spec = StatefulSetSpec(replicas=replicas, template=pods or template(name), service_name=service)
    return StatefulSet(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def service(name: str, *ports: ServicePort, namespace: str = "shop", **spec: object) -> Service:
    chosen = ports or (ServicePort(name="http", port=80, target_port=8080),)
    selector = spec.pop("selector", {"app": name})
    return Service(
        metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(ports=chosen, selector=selector, **spec)
    )


def pod(name: str, address: str, app: str, *containers: Container, namespace: str = "shop", **spec: object) -> Pod:
    """A pod that runs and is ready."""
    status = PodStatus(
        phase="Running",
        pod_ip=address,
        pod_ips=(PodIP(ip=address),),
        host_ip="10.44.0.1",
        conditions=(PodCondition(type="Ready", status="True"),),
    )
    chosen = containers or (Container(name="app", command=COMMAND),)
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": app}),
        spec=PodSpec(containers=chosen, **spec),
        status=status,
    )
