"""From a container of a pod to the command line and the environment of a process.

In: the container, the pod as it was injected with its status, and the ConfigMaps and Secrets of the mesh. Out: a
`Program`, with every reference resolved by Kubernetes' rules, or a `LocalError` that names the reference at fault.
Programs come from this machine, as a local mesh has no images: a container needs a `command`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil

import msgspec

from mizzen.api.kube.data import ConfigMap, Secret
from mizzen.api.kube.pods import (
    Container,
    EnvFromSource,
    EnvVar,
    KeySelector,
    ObjectFieldSelector,
    Pod,
    ResourceFieldSelector,
)
from mizzen.api.meta import Key, Object
from mizzen.errors import LocalError

Lookup = Callable[[Key], Object | None]
"""The object of that name, as the manifests have it now."""

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What a container without limits sees of its machine."""

    cpus: int
    memory_bytes: int


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What to execute."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]


def build_program(container: Container, pod: Pod, base: Mapping[str, str], lookup: Lookup, machine: Machine) -> Program:
    """The program of a container; `base` is the environment that an image would bring."""
    environ = {**base, **build_environ(container, pod, base, lookup, machine)}
    argv = tuple(expand(word, environ) for word in (*container.command, *container.args))
    return Program(argv=argv, environ=environ)


def build_environ(
    container: Container, pod: Pod, base: Mapping[str, str], lookup: Lookup, machine: Machine
) -> dict[str, str]:
    """The variables that the container declares, in order: later ones may refer to earlier ones."""
    namespace = pod.metadata.namespace
    environ: dict[str, str] = {}
    for source in container.env_from:
        environ.update(_many(source, namespace, lookup))
    for variable in container.env:
        value = _value(variable, container, pod, lookup, machine)
        if value is not None:
            environ[variable.name] = expand(value, {**base, **environ}) if variable.value_from is None else value
    return environ


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replaces `$(NAME)`; `$$` is a dollar sign, and a name that is not there stays as it was written."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return environ.get(match[1], match[0])

    return _REFERENCE.sub(replace, text)


def _many(source: EnvFromSource, namespace: str, lookup: Lookup) -> Iterator[tuple[str, str]]:
    reference = source.config_map_ref or source.secret_ref
    if reference is None:
        return
    kind = "ConfigMap" if source.config_map_ref else "Secret"
    item = lookup(Key(kind, namespace, reference.name))
    if item is None:
        if not reference.optional:
            raise LocalError(f"envFrom: there is no {kind} {namespace}/{reference.name}")
        return
    for name, value in sorted(texts_of(item).items()):
        yield source.prefix + name, value


def texts_of(item: Object) -> dict[str, str]:
    """The entries of a ConfigMap or a Secret that are text."""
    if isinstance(item, ConfigMap):
        return dict(item.data)
    if isinstance(item, Secret):
        names = {*item.data, *item.string_data}
        return {name: (item.get(name) or b"").decode("utf-8", "surrogateescape") for name in names}
    return {}


def _value(variable: EnvVar, container: Container, pod: Pod, lookup: Lookup, machine: Machine) -> str | None:
    """The variable's value; None leaves it unset."""
    source = variable.value_from
    if source is None:
        return variable.value
    if source.field_ref:
        return field_value(source.field_ref, pod)
    if source.resource_field_ref:
        return _resource_value(source.resource_field_ref, container, pod, machine)
    if source.config_map_key_ref:
        return _entry("ConfigMap", source.config_map_key_ref, pod, lookup)
    if source.secret_key_ref:
        return _entry("Secret", source.secret_key_ref, pod, lookup)
    return ""


def _entry(kind: str, selector: KeySelector, pod: Pod, lookup: Lookup) -> str | None:
    key = Key(kind, pod.metadata.namespace, selector.name)
    item = lookup(key)
    value = texts_of(item).get(selector.key) if item else None
    if value is None and not selector.optional:
        missing = f"has no entry {selector.key}" if item else "does not exist"
        raise LocalError(f"env: {key} {missing}")
    return value


def field_value(selector: ObjectFieldSelector, pod: Pod) -> str:
    """The downward API: a field of the pod as text; empty for one that is not set."""
    path = selector.field_path
    if match := _SUBSCRIPT.fullmatch(path):
        holder = pod.metadata.labels if match[1] == "labels" else pod.metadata.annotations
        return holder.get(match[2], "")
    status = pod.status
    values = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "metadata.labels": render_map(pod.metadata.labels),
        "metadata.annotations": render_map(pod.metadata.annotations),
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name or "default",
        "status.hostIP": status.host_ip if status else "",
        "status.podIP": status.pod_ip if status else "",
        "status.podIPs": ",".join(address.ip for address in status.pod_ips) if status else "",
    }
    if path not in values:
        raise LocalError(f"fieldRef: {path} is no field that the downward API has")
    return values[path]


def render_map(values: Mapping[str, str]) -> str:
    """Labels or annotations as the downward API writes them into a file."""
    return "\n".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in sorted(values.items()))


def _resource_value(selector: ResourceFieldSelector, container: Container, pod: Pod, machine: Machine) -> str:
    """A limit or request in units of its divisor, rounded up; a limit that is not set is all that the machine has."""
    if selector.container_name and selector.container_name != container.name:
        others = {other.name: other for other in (*pod.spec.containers, *pod.spec.init_containers)}
        if selector.container_name not in others:
            raise LocalError(f"resourceFieldRef: there is no container {selector.container_name}")
        container = others[selector.container_name]
    section, _, resource = selector.resource.partition(".")
    resources = container.resources
    amounts = {} if resources is None else resources.limits if section == "limits" else resources.requests
    whole = {"cpu": Fraction(machine.cpus), "memory": Fraction(machine.memory_bytes)}
    stated = amounts.get(resource)
    amount = stated.amount if stated is not None else whole.get(resource, Fraction(0))
    divisor = selector.divisor.amount if selector.divisor is not None else Fraction(0)
    return str(ceil(amount / (divisor or 1)))
