"""Injection of one pod: the entry of this package.

In: a raw pod or pod template, the Namespace object if its labels have a say, the mesh config as written, and the
installation's `InjectionConfig`. Out: an `Injection`: the pod with its sidecar, or the pod as it was with the reason or
the Problems. Whatever the outcome, the input is not changed, and injecting a result again gives the same result.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from mizzen.api.problems import Problem
from mizzen.inject import prometheus
from mizzen.inject.environment import APP_PROBERS, PROMETHEUS, text
from mizzen.inject.merge import merge_container, merge_named, without_auto_image
from mizzen.inject.mesh import MeshChoices, read_mesh
from mizzen.inject.overrides import Overrides, read_overrides
from mizzen.inject.probes import rewrite_probes
from mizzen.inject.selection import decide
from mizzen.inject.strip import OVERRIDES, STATUS, strip_injection
from mizzen.inject.template import Template, build_template
from mizzen.inject.values import InjectionConfig
from mizzen.inject.workload import (
    CORE_DUMP,
    INIT,
    PROXY,
    VALIDATION,
    Manifest,
    Owner,
    items,
    mapping,
    read_workload,
    texts,
)


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for one pod; exactly one of injected, skipped and refused holds."""

    pod: dict[str, Any]
    skipped_reason: str | None = None
    """Why the pod was left as it is."""
    problems: tuple[Problem, ...] = ()
    """Why the pod cannot be injected; an admission webhook refuses it."""

    @property
    def injected(self) -> bool:
        """Whether the pod has its proxy now."""
        return self.skipped_reason is None and not self.problems


def inject_pod(
    pod: Manifest,
    *,
    namespace: Manifest | None = None,
    mesh: Mapping[str, Any] | None = None,
    config: InjectionConfig | None = None,
    owner: Owner | None = None,
) -> Injection:
    """The pod with its proxy.

    `namespace` decides with its labels as the webhook's selectors do; None leaves that stage out, as offline
    injection does. `owner` names the workload of a pod template; a pod names its own.
    """
    config = config or InjectionConfig()
    metadata = mapping(pod, "metadata")
    names = (metadata.get("namespace"), mapping(namespace or {}, "metadata").get("name"), owner and owner.namespace)
    name = str(next(filter(None, names), "default"))
    decision = decide(pod, namespace=namespace, namespace_name=name, config=config)
    if not decision.inject:
        return Injection(pod=dict(pod), skipped_reason=decision.reason)
    original = strip_injection(pod)
    annotations = texts(mapping(original, "metadata"), "annotations")
    choices, faults = read_mesh(mesh, annotations)
    overrides, more = read_overrides(
        annotations,
        config,
        status_port=choices.status_port or config.status_port,
        interception_mode=choices.interception_mode,
    )
    if overrides is None or faults:
        return Injection(pod=dict(pod), problems=faults + more)
    scrape, faults = _merge_scrape(annotations, overrides, choices)
    if faults:
        return Injection(pod=dict(pod), problems=faults)
    workload = read_workload(original, namespace=name, owner=owner)
    built = build_template(original, workload, config, overrides, choices)
    if isinstance(built, Problem):
        return Injection(pod=dict(pod), problems=(built,))
    return Injection(pod=_assemble(original, built, scrape, config, overrides))


def _merge_scrape(
    annotations: Mapping[str, str], overrides: Overrides, mesh: MeshChoices
) -> tuple[prometheus.Scrape, tuple[Problem, ...]]:
    wanted = mesh.prometheus_merge if overrides.merge_metrics is None else overrides.merge_metrics
    if not wanted:
        return prometheus.Scrape(annotations=annotations), ()
    return prometheus.merge_scrape(annotations, status_port=mesh.mesh_status_port)


def _assemble(
    pod: Manifest, template: Template, scrape: prometheus.Scrape, config: InjectionConfig, overrides: Overrides
) -> dict[str, Any]:
    """Puts the template into the pod: containers in Istio's order, then what depends on all of them."""
    metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
    own = _Own(spec, template)
    rewritten = _rewrite(own, overrides)
    proxy = own.overlay(template.proxy)
    extra = [text(PROMETHEUS, _json(scrape.application))] if scrape.application else []
    extra += [text(APP_PROBERS, _json(dict(sorted(rewritten.probers.items()))))] if rewritten.probers else []
    if extra:
        proxy = {**proxy, "env": [*proxy.get("env", []), *extra]}
    inits = [own.overlay(container) for container in template.init_containers]
    init_containers = _order_inits(inits, rewritten.init_containers, proxy if template.shape.native else None)
    containers = rewritten.containers
    if not template.shape.native:
        first = template.shape.hold_application
        containers = [proxy, *containers] if first else [*containers, proxy]
    changed = {**spec, **_merged_lists(spec, template)}
    changed |= _security_context(spec, template)
    changed["containers"] = containers
    if init_containers:
        changed["initContainers"] = init_containers
    annotations = {**scrape.annotations, **template.annotations, **own.annotation()}
    annotations[STATUS] = _status(template, spec, config)
    labels = {**texts(metadata, "labels"), **template.labels}
    return {**pod, "metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": changed}


class _Own:
    """The user's containers: those of the application, and those meant to be laid over injected ones."""

    def __init__(self, spec: Manifest, template: Template) -> None:
        names = {template.proxy["name"], *(container["name"] for container in template.init_containers)}
        self.containers = [c for c in items(spec, "containers") if c.get("name") not in names]
        self.init_containers = [c for c in items(spec, "initContainers") if c.get("name") not in names]
        self._overlays = {
            field: [without_auto_image(c) for c in items(spec, field) if c.get("name") in names]
            for field in ("containers", "initContainers")
        }

    def overlay(self, injected: Manifest) -> dict[str, Any]:
        """The injected container with the user's own of that name laid over it."""
        result = dict(injected)
        for container in (c for overlays in self._overlays.values() for c in overlays):
            if container.get("name") == injected["name"]:
                result = merge_container(result, container)
        return result

    def annotation(self) -> dict[str, str]:
        """What the user wrote, so that a later injection can start from it."""
        kept = {field: overlays for field, overlays in self._overlays.items() if overlays}
        return {OVERRIDES: _json(kept)} if kept else {}


class _Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    """The application's containers with probes that the agent answers."""

    containers: list[Any]
    init_containers: list[Any]
    probers: Mapping[str, Any]


def _rewrite(own: _Own, overrides: Overrides) -> _Rewritten:
    if not overrides.rewrite_probes or overrides.status_port == 0:
        return _Rewritten(containers=own.containers, init_containers=own.init_containers, probers={})
    probers: dict[str, Any] = {}
    lists: list[list[Any]] = []
    for containers in (own.containers, own.init_containers):
        pairs = [rewrite_probes(container, status_port=overrides.status_port) for container in containers]
        lists.append([container for container, _ in pairs])
        for _, found in pairs:
            probers |= found
    return _Rewritten(containers=lists[0], init_containers=lists[1], probers=probers)


def _order_inits(injected: list[Any], own: list[Any], native: Any | None) -> list[Any]:
    """Classic: validation, the user's, init, core dumps. Native: the proxy starts before the user's."""

    def named(name: str) -> list[Any]:
        return [container for container in injected if container["name"] == name]

    if native is None:
        return [*named(VALIDATION), *own, *named(INIT), *named(CORE_DUMP)]
    return [*named(INIT), *named(VALIDATION), native, *named(CORE_DUMP), *own]


def _merged_lists(spec: Manifest, template: Template) -> dict[str, Any]:
    merged: dict[str, Any] = {"volumes": merge_named(template.volumes, items(spec, "volumes"))}
    if template.image_pull_secrets:
        merged["imagePullSecrets"] = merge_named(template.image_pull_secrets, items(spec, "imagePullSecrets"))
    return merged


def _security_context(spec: Manifest, template: Template) -> dict[str, Any]:
    """The pod's own context; a gateway may bind low ports unless the pod sets sysctls of that name."""
    if not template.sysctls:
        return {}
    context = mapping(spec, "securityContext")
    sysctls = merge_named(template.sysctls, items(context, "sysctls"))
    return {"securityContext": {**context, "sysctls": sysctls}}


def _status(template: Template, spec: Manifest, config: InjectionConfig) -> str:
    """What was added, for a later injection to take away; what the pod brought under the same name is not."""

    def added(field: str, injected: list[dict[str, Any]]) -> list[str] | None:
        brought = {item.get("name") for item in items(spec, field)}
        return [item["name"] for item in injected if item["name"] not in brought] or None

    inits = [container["name"] for container in template.init_containers]
    native = template.shape.native
    names = {
        "initContainers": [*inits, *([PROXY] if native else [])] or None,
        "containers": None if native else [PROXY],
        "volumes": added("volumes", template.volumes),
        "imagePullSecrets": added("imagePullSecrets", template.image_pull_secrets),
        "revision": config.revision_name,
    }
    return _json(names)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
