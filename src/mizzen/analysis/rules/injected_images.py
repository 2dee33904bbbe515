"""Injected images: sidecars of another version than the injector's, and images that nobody filled in.

In: Namespaces, pods, Deployments, the injector's ConfigMap, ProxyConfigs, webhook configurations. Out: IST0146,
IST0147, IST0158.
"""

from typing import Any

from mizzen.analysis import catalogue, membership, objects
from mizzen.analysis.cluster import MUTATING, WebhookConfiguration
from mizzen.analysis.findings import Finding, report
from mizzen.analysis.membership import INJECTION, PROXY, REVISION
from mizzen.analysis.rules.injection import injector_values, value_at
from mizzen.api.kube.cluster import Namespace
from mizzen.api.kube.pods import Pod, PodSpec
from mizzen.api.kube.workloads import Deployment
from mizzen.api.meta import Key
from mizzen.api.networking.proxy_config import ProxyConfig
from mizzen.api.selectors import selects
from mizzen.incremental import Engine, query
from mizzen.model import mesh, workloads

_AUTO = "auto"
_OWN_IMAGE = "sidecar.istio.io/proxyImage"


@query
def check_versions(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Pods of a namespace whose sidecar is not the one that its injector would give them."""
    found: Namespace | None = db.input(key)
    if found is None:
        return ()
    labels = found.metadata.labels
    revision = "default" if labels.get(INJECTION) == "enabled" else labels.get(REVISION)
    image = _injected_image(db, revision) if revision else ""
    if not image:
        return ()
    different = [pod.name for pod in objects.keys_in(db, "Pod", key.name) if _differs(db, pod, image)]
    if not different:
        return ()
    return (report(catalogue.PODS_ISTIO_PROXY_IMAGE_MISMATCH_IN_NAMESPACE, key, sorted(different)),)


def _injected_image(db: Engine, revision: str) -> str:
    values = injector_values(db, revision)
    image, hub, tag = (value_at(values, f"global.{path}") for path in ("proxy.image", "hub", "tag"))
    if not image:
        return ""
    return str(image) if "/" in str(image) else f"{hub}/{image}:{tag}"


@query
def _differs(db: Engine, key: Key, image: str) -> bool:
    pod: Pod | None = db.input(key)
    if pod is None or _OWN_IMAGE in pod.metadata.annotations:
        return False
    kind = _image_type(db, key.namespace, pod)
    allowed = (image, f"{image}-{kind}") if kind else (image,)
    return any(image not in allowed for image in _proxy_images(pod.spec))


def _proxy_images(spec: PodSpec) -> list[str]:
    return [c.image for c in (*spec.containers, *spec.init_containers) if c.name == PROXY]


def _image_type(db: Engine, namespace: str, pod: Pod) -> str:
    """The build of the image that ProxyConfigs ask for, the nearest one first, or else the mesh config."""
    root = mesh.root_namespace(db)
    named: list[tuple[int, str]] = []
    for space in dict.fromkeys((namespace, root)):
        for key in objects.keys_in(db, "ProxyConfig", space):
            found: ProxyConfig = db.input(key)
            selector = workloads.freeze(found.spec.selector.match_labels) if found.spec.selector else ()
            if found.spec.image is None or not workloads.selects(selector, workloads.freeze(pod.metadata.labels)):
                continue
            named.append((0 if selector else 1 if space == namespace else 2, found.spec.image.image_type))
    default: Any = mesh.mesh_config(db).default_config
    of_mesh = default.image.image_type if default is not None and default.image is not None else ""
    return min(named)[1] if named else str(of_mesh)


@query
def check_pod(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A pod whose sidecar's image was to be filled in by an injector, and was not."""
    pod: Pod | None = db.input(key)
    if pod is None or not _is_auto(pod.spec):
        return ()
    return (report(catalogue.IMAGE_AUTO_WITHOUT_INJECTION_ERROR, key, "Pod", key.name),)


@query
def check_deployment(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A Deployment with such an image, of whose pods none of the injectors that are known is told."""
    found: Deployment | None = db.input(key)
    if found is None or not _is_auto(found.spec.template.spec) or not objects.exists(db, MUTATING):
        return ()
    namespace = membership.namespace_labels(db, key.namespace) or {}
    labels = found.spec.template.metadata.labels
    for _, configuration in objects.values(db, MUTATING):
        if _injects(configuration, dict(namespace), dict(labels)):
            return ()
    return (report(catalogue.IMAGE_AUTO_WITHOUT_INJECTION_WARNING, key, "Deployment", key.name),)


def _injects(found: WebhookConfiguration, namespace: dict[str, str], labels: dict[str, str]) -> bool:
    return any(
        hook.name.endswith("istio.io")
        and selects(hook.namespace_selector, namespace)
        and selects(hook.object_selector, labels)
        for hook in found.webhooks
    )


def _is_auto(spec: PodSpec) -> bool:
    return any(container.name == PROXY and container.image == _AUTO for container in spec.containers)
