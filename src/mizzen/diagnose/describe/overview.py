"""The whole description of a pod, or of a Service: its parts in istioctl's order.

In: the objects in an engine, the pod or Service, and how dumps are had. Out: lines.
"""

from collections.abc import Iterator

from mizzen.api.kube.pods import Pod
from mizzen.api.kube.services import Service
from mizzen.diagnose.describe import gateways, peers, pods, services
from mizzen.diagnose.describe.gateways import Outside
from mizzen.diagnose.describe.subject import Subject
from mizzen.diagnose.describe.text import RULE
from mizzen.diagnose.dump import Dump
from mizzen.diagnose.nodes import PROXY_CONTAINER
from mizzen.incremental import Engine
from mizzen.model import objects

_NO_SERVICES = "https://istio.io/docs/setup/kubernetes/additional-setup/requirements/"


def describe_meshed_pod(db: Engine, pod: Pod, source: Dump, outside: Outside) -> Iterator[str]:
    """What follows the pod's own lines: its Services, its mutual TLS, where it is exposed."""
    namespace = pod.metadata.namespace
    found = services.find_services(db, pod)
    if not found:
        yield f"Warning: No Kubernetes Services select pod {pod.metadata.name} (see {_NO_SERVICES} )"
    subjects = [Subject(service=service, pods=(pod,), namespace=namespace) for service in found]
    for subject in subjects:
        yield RULE
        yield from services.describe_service(db, subject, source)
    yield RULE
    yield from peers.describe_peers(db, pod)
    if subjects:
        yield from _ruled(gateways.describe_exposure(db, subjects, outside))


def describe_whole_service(db: Engine, service: Service, outside: Outside) -> Iterator[str]:
    """A Service from where its ready pods stand; the proxy of the first of them is looked at."""
    metadata = service.metadata
    found: list[Pod] = [db.input(key) for key in objects.in_namespace(db, "Pod", metadata.namespace)]
    every = [pod for pod in found if services.selects(service, pod)]
    if not every:
        yield f'Service "{metadata.name}" has no pods.'
        return
    ready = [pod for pod in every if pods.is_ready(pod)]
    meshed = [pod for pod in ready if pods.has_proxy(pod)]
    for pod in ready:
        if pod not in meshed:
            yield f'Pod {pod.metadata.name}: no container "{PROXY_CONTAINER}" in pod'
    if not meshed:
        yield f'Service "{metadata.name}" has no Istio pods.  ({len(every)} pods in service).'
        yield "Use `mizzen kube-inject` or redeploy with Istio automatic sidecar injection."
        return
    others = (pod for pod in ready if pod not in meshed)
    subject = Subject(service=service, pods=(*meshed, *others), namespace=metadata.namespace)
    yield from services.describe_service(db, subject, outside.dump(meshed[0]))
    yield from _ruled(gateways.describe_exposure(db, (subject,), outside))


def _ruled(lines: list[str]) -> Iterator[str]:
    if lines:
        yield RULE
        yield from lines
