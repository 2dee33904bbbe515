"""What injection adds to a pod, before it meets what the pod already has.

In: the workload with its overrides and the mesh's choices. Out: a `Template`: containers, volumes, labels and
annotations of the templates `sidecar` or `gateway`. Which template a pod gets is its annotation
`inject.istio.io/templates`, else the installation's default.
"""

from typing import Any

import msgspec

from mizzen.api.problems import Problem
from mizzen.inject import environment, interception, proxy, volumes
from mizzen.inject.mesh import MeshChoices
from mizzen.inject.overrides import Overrides, annotation_problem
from mizzen.inject.proxy import ProxyShape, Role
from mizzen.inject.values import InjectionConfig
from mizzen.inject.workload import CORE_DUMP, PROXY, Manifest, Workload, items, mapping

TEMPLATES = "inject.istio.io/templates"

_ROLES: dict[str, Role] = {"sidecar": "sidecar", "gateway": "router"}
_DEFAULT_CONTAINER = ("kubectl.kubernetes.io/default-logs-container", "kubectl.kubernetes.io/default-container")
_NETWORK = "topology.istio.io/network"


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that are merged into the pod."""

    shape: ProxyShape
    proxy: dict[str, Any]
    init_containers: list[dict[str, Any]]
    volumes: list[dict[str, Any]]
    image_pull_secrets: list[dict[str, Any]]
    sysctls: list[dict[str, Any]]
    labels: dict[str, str]
    annotations: dict[str, str]


def build_template(
    pod: Manifest, workload: Workload, config: InjectionConfig, overrides: Overrides, mesh: MeshChoices
) -> Template | Problem:
    """The parts for one pod, or a Problem when it asks for a template that is not built in."""
    chosen = _choose_role(workload, config)
    if isinstance(chosen, Problem):
        return chosen
    sidecar = chosen == "sidecar"
    shape = ProxyShape(
        role=chosen,
        native=overrides.native_sidecar and sidecar,
        hold_application=(config.hold_application or mesh.hold_application) and sidecar,
    )
    spec = mapping(pod, "spec")
    network = workload.labels.get(_NETWORK) or config.network
    return Template(
        shape=shape,
        proxy=proxy.build_proxy(
            shape,
            config,
            overrides,
            image=proxy.build_image(overrides.proxy_image, config, overrides, mesh),
            env=environment.build_environment(workload, config, overrides, mesh, network=network),
            mounts=volumes.build_mounts(config, overrides),
        ),
        init_containers=_init_containers(spec, config, overrides, mesh) if sidecar else [],
        volumes=volumes.build_volumes(config, overrides, service_account=str(spec.get("serviceAccountName") or "")),
        image_pull_secrets=[{"name": name} for name in config.image_pull_secrets],
        sysctls=[] if sidecar else [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        labels=_labels(chosen, workload, mesh, network),
        annotations=_annotations(chosen, workload, config, overrides),
    )


def _choose_role(workload: Workload, config: InjectionConfig) -> Role | Problem:
    text = workload.annotations.get(TEMPLATES)
    asked = [name.strip() for name in text.split(",") if name.strip()] if text is not None else config.default_templates
    names = [name for alias in asked for name in config.aliases.get(alias, (alias,))]
    unknown = [name for name in names if name not in _ROLES]
    if unknown or not names:
        known = ", ".join(sorted(_ROLES))
        wrong = f"template {unknown[0]!r} is not built in" if unknown else "no template is named"
        message = f"{wrong}; there are: {known}"
        return annotation_problem(TEMPLATES, message)
    return _ROLES[names[-1]]


def _init_containers(
    spec: Manifest, config: InjectionConfig, overrides: Overrides, mesh: MeshChoices
) -> list[dict[str, Any]]:
    image = proxy.build_image(
        overrides.proxy_image if "/" in overrides.proxy_image else config.init_image, config, overrides, mesh
    )
    init = interception.build_init(
        config,
        overrides,
        image=image,
        proxy_uid=_proxy_uid(spec, config),
        resources=proxy.build_resources("sidecar", config, overrides),
        env=environment.metadata(mesh),
    )
    containers = [init] if init is not None else []
    return [*containers, _core_dump(image, config)] if config.core_dumps else containers


def _proxy_uid(spec: Manifest, config: InjectionConfig) -> int:
    """The user that the proxy will run as, which capture must leave alone: the pod's own word on it wins."""
    for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
        user = mapping(container, "securityContext").get("runAsUser")
        if container.get("name") == PROXY and isinstance(user, int):
            return user
    return config.proxy_uid


def _core_dump(image: str, config: InjectionConfig) -> dict[str, Any]:
    container: dict[str, Any] = {"name": CORE_DUMP, "image": image}
    if config.image_pull_policy:
        container["imagePullPolicy"] = config.image_pull_policy
    command = "sysctl -w kernel.core_pattern=/var/lib/istio/data/core.proxy && ulimit -c unlimited"
    return {
        **container,
        "command": ["/bin/sh"],
        "args": ["-c", command],
        "resources": {},
        "securityContext": {
            "allowPrivilegeEscalation": True,
            "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]},
            "privileged": True,
            "readOnlyRootFilesystem": False,
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
        },
    }


def _labels(role: Role, workload: Workload, mesh: MeshChoices, network: str) -> dict[str, str]:
    labels = {}
    if role == "sidecar":
        labels["security.istio.io/tlsMode"] = workload.labels.get("security.istio.io/tlsMode") or "istio"
    if mesh.proxy_metadata.get("ISTIO_META_ENABLE_HBONE") == "true":
        labels["networking.istio.io/tunnel"] = "http"
    labels["service.istio.io/canonical-name"] = workload.canonical_name
    labels["service.istio.io/canonical-revision"] = workload.canonical_revision
    if network:
        labels[_NETWORK] = network
    return labels


def _annotations(role: Role, workload: Workload, config: InjectionConfig, overrides: Overrides) -> dict[str, str]:
    annotations = {"istio.io/rev": config.revision_name}
    if workload.containers:
        first = str(workload.containers[0].get("name", ""))
        annotations |= {name: workload.annotations.get(name, first) for name in _DEFAULT_CONTAINER}
    if role == "sidecar":
        present = workload.annotations.get(interception.NETWORKS, "")
        annotations |= interception.build_cni_annotations(config, overrides, present)
    annotations |= {
        name: value for name, value in config.injected_annotations.items() if name not in workload.annotations
    }
    return annotations
