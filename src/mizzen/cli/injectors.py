"""`mizzen experimental check-inject` and `injector list`: who puts sidecars into which pods, and why not.

In: objects of a cluster: webhook configurations, Namespaces, Pods, ConfigMaps, from files (`-f`) or from the API server
of a kubeconfig; or a local mesh, whose own injector stands in for a webhook. Out: tables as istioctl prints them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mizzen.cli import clusters, options, render, views
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.diagnose.table import Table
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.analysis.cluster import WebhookConfiguration
    from mizzen.analysis.injectors import Verdict
    from mizzen.api.kube.cluster import Namespace
    from mizzen.api.kube.pods import Pod
    from mizzen.api.meta import Key

_READ = ("MutatingWebhookConfiguration", "Namespace", "Pod", "ConfigMap")
"""The kinds of a cluster that these commands look at."""
_LOCAL = "mizzen up"
"""What injects in a local mesh."""
_UNNAMED = "default"

_files = options.manifests_option("manifests", help="Objects; repeatable.")


class _Scene(NamedTuple):
    """What is known of a cluster."""

    objects: "Mapping[Key, Any]"
    hooks: "list[WebhookConfiguration]"
    is_local: bool

    def completed(self) -> "Mapping[Key, Any]":
        """The objects with the pods that their workloads would make."""
        from mizzen.local import foretold

        return self.objects if self.is_local else foretold.complete(self.objects)

    @property
    def pods(self) -> "list[Pod]":
        return self._of_kind("Pod")

    @property
    def namespaces(self) -> "list[Namespace]":
        return self._of_kind("Namespace")

    def _of_kind(self, kind: str) -> list[Any]:
        return [self.objects[key] for key in sorted(self.objects) if key.kind == kind]


def _look(manifests: tuple[str, ...], mesh: str, kubeconfig: str, context: str) -> _Scene:
    from mizzen.analysis import cluster, injectors
    from mizzen.cli import analysis_files, analysis_live

    live = None if manifests or mesh else analysis_live.read(kubeconfig, context, only=_READ)
    documents = live.documents if live is not None else ()
    if not (manifests or documents):
        view = views.View(views.Request(mesh=mesh))
        return _Scene(_with_namespaces(view.contents.objects), [injectors.default_injector(_LOCAL)], True)
    found = analysis_files.load(manifests, analysis_files.Asked(), cluster=documents)
    if found.errors and manifests:
        raise MizzenError(found.errors[0])
    objects: dict[Key, Any] = dict(found.objects)
    hooks = [value for key, value in sorted(objects.items()) if key.kind == cluster.MUTATING]
    return _Scene(objects, [hook for hook in hooks if injectors.is_injector(hook)], False)


def _with_namespaces(objects: "Mapping[Key, Any]") -> "dict[Key, Any]":
    """The objects and a Namespace where there is none: there a local mesh injects every pod."""
    from mizzen.analysis.membership import INJECTION
    from mizzen.api.kube.cluster import Namespace
    from mizzen.api.meta import Key, ObjectMeta

    found = dict(objects)
    for name in {key.namespace for key in objects if key.kind == "Pod"}:
        metadata = ObjectMeta(name=name, labels={INJECTION: "enabled"})
        found.setdefault(Key("Namespace", "", name), Namespace(metadata=metadata))
    return found


@click.command("check-inject", cls=Command)
@click.argument("pod", metavar="[[TYPE/]NAME[.NAMESPACE]]", required=False)
@click.option(
    "-l", "--labels", "selector", default="", metavar="LABEL=VALUE,…", help="A pod with these labels instead."
)
@_files
@options.namespace_option
@options.mesh_option
@clusters.cluster_options
def check_inject(
    pod: str | None,
    selector: str,
    manifests: tuple[str, ...],
    namespace: str,
    mesh: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Tell whether a pod gets a sidecar, from which webhook, and why."""
    from mizzen.analysis import injectors

    if bool(pod) == bool(selector):
        raise MizzenError("check-inject requires either a pod name or labels (-l)")
    scene = _look(manifests, mesh, kubeconfig, context)
    if not scene.hooks:
        raise MizzenError("no Istio injection hooks present.")
    if selector:
        labels, where = views.parse_selector(selector), namespace or _UNNAMED
        verdicts = injectors.judge(scene.hooks, labels, _namespace_labels(scene, where))
    else:
        found = views.find_pod(scene.completed(), pod or "", namespace)
        where = found.metadata.namespace
        verdicts = injectors.judge(scene.hooks, found.metadata.labels, _namespace_labels(scene, where))
        verdicts = [_second_stage(verdict, found) for verdict in verdicts] if scene.is_local else verdicts
    click.echo(render.render_table(_build_verdicts(verdicts)), nl=False)
    if sum(verdict.injects for verdict in verdicts) > 1:
        click.echo("ERROR: multiple webhooks will inject, which can lead to errors")


def _namespace_labels(scene: _Scene, name: str) -> Mapping[str, str]:
    from mizzen.api.meta import Key

    found = scene.objects.get(Key("Namespace", "", name))
    if found is None:
        raise MizzenError(f'namespaces "{name}" not found')
    labels: Mapping[str, str] = found.metadata.labels
    return labels


def _second_stage(verdict: "Verdict", pod: "Pod") -> "Verdict":
    """The injector's own word on a pod that it is asked for."""
    from mizzen.inject import selection
    from mizzen.inject.values import InjectionConfig

    if not verdict.injects:
        return verdict
    metadata = {"labels": dict(pod.metadata.labels), "annotations": dict(pod.metadata.annotations)}
    plain = {"metadata": metadata, "spec": {"hostNetwork": pod.spec.host_network}}
    decision = selection.decide_pod(plain, namespace_name=pod.metadata.namespace, config=InjectionConfig())
    return verdict if decision.inject else verdict._replace(injects=False, reason=decision.reason)


def _build_verdicts(verdicts: "list[Verdict]") -> Table:
    rows = ((each.webhook, each.revision, "✔" if each.injects else "✘", each.reason) for each in verdicts)
    return Table(columns=("WEBHOOK", "REVISION", "INJECTED", "REASON"), rows=tuple(rows), padding=2)


@click.group("injector", cls=AliasGroup)
def injector() -> None:
    """Look at the injectors of sidecars."""


@injector.command("list", cls=Command)
@_files
@options.mesh_option
@clusters.cluster_options
def list_injectors(manifests: tuple[str, ...], mesh: str, kubeconfig: str, context: str) -> None:
    """List the namespaces that are injected, and the hooks that do it."""
    from mizzen.analysis import injectors

    scene = _look(manifests, mesh, kubeconfig, context)
    spaces = injectors.list_spaces(scene.namespaces, scene.pods, scene.hooks)
    if spaces:
        columns = ("NAMESPACE", "ISTIO-REVISION", "POD-REVISIONS")
        click.echo(render.render_table(Table(columns=columns, rows=tuple(spaces), padding=1)))
    else:
        click.echo("No Istio injected namespaces present.\n")
    if not scene.hooks:
        click.echo("No Istio injection hooks present.")
        return
    rows = tuple(
        (each.namespace or "DOES NOT AUTOINJECT", each.name, each.revision, _image(scene, each))
        for each in injectors.list_hooks(scene.hooks, scene.namespaces)
    )
    table = Table(columns=("NAMESPACES", "INJECTOR-HOOK", "ISTIO-REVISION", "SIDECAR-IMAGE"), rows=rows, padding=1)
    click.echo(render.render_table(table), nl=False)


def _image(scene: _Scene, hook: Any) -> str:
    """The proxy's image by the injector's ConfigMap; in a local mesh there are no images."""
    from mizzen.api.meta import Key
    from mizzen.inject import values

    if scene.is_local:
        return "upstream Envoy"
    name = "istio-sidecar-injector" if hook.revision == "default" else f"istio-sidecar-injector-{hook.revision}"
    found = scene.objects.get(Key("ConfigMap", "istio-system", name))
    if found is None:
        return ""
    config = values.decode_injector({"data": dict(found.data)}, values.InjectionConfig())
    return config.proxy_image if "/" in config.proxy_image else f"{config.hub}/{config.proxy_image}:{config.tag}"
