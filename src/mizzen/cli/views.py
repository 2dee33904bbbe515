"""What the command line can see of a mesh: its objects, and what its proxies hold.

In: manifests (`-f`), a file with one proxy's dump (`--file`), a control plane, or a local mesh. Out: a
`View`. Objects come from the manifests, completed as a mesh would, else from the local mesh. A proxy's dump is its
Envoy's own where that can be asked, else the control plane's word, else what would be compiled from the objects.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mizzen.cli import offline, planes, targets
from mizzen.cli.reach import Reach
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.api.kube.pods import Pod
    from mizzen.api.kube.services import Service
    from mizzen.api.meta import Key
    from mizzen.diagnose.dump import Dump
    from mizzen.incremental import Engine
    from mizzen.local import runtime
    from mizzen.sources.files import Contents


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about where to look."""

    manifests: tuple[str, ...] = ()
    mesh_file: str = ""
    dump_file: str = ""
    reach: Reach = Reach()
    """The control plane to ask for proxies' dumps, if one is named."""
    mesh: str = ""
    namespace: str = ""


class View:
    """A mesh as it is seen."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._state: runtime.State | None = None
        if request.manifests:
            self.contents: Contents = _complete(offline.load(request.manifests))
        else:
            self._state = targets.read_state(request.mesh)
            self.contents = _read_mesh(self._state, targets.find_layout(request.mesh))
        self.engine: Engine = offline.fill(self.contents, request.mesh_file)

    @property
    def state(self) -> "runtime.State | None":
        """Of the local mesh; None where manifests are looked at."""
        return self._state

    @property
    def published(self) -> Mapping[tuple[str, str, int], str]:
        """Addresses of this machine, by namespace, name and port of the Service that they lead to."""
        published = self._state.published if self._state is not None else ()
        return {(each.namespace, each.service, each.port): each.address for each in published}

    def find_pod(self, reference: str) -> "Pod":
        """The Pod of `[TYPE/]NAME[.NAMESPACE]`; of a workload the first by name."""
        return find_pod(self.contents.objects, reference, self._request.namespace)

    def find_service(self, reference: str) -> "Service":
        """The Service of `NAME[.NAMESPACE]`."""
        from mizzen.api.meta import Key

        name, namespace = _split(reference, self._request.namespace)
        found: Any = self.contents.objects.get(Key("Service", namespace, name))
        if found is None:
            raise MizzenError(f'services "{name}" not found{_hint(self.contents.objects, "Service", name, namespace)}')
        service: Service = found
        return service

    def select_pods(self, labels: Mapping[str, str], namespace: str = "") -> "list[Pod]":
        """The Pods with these labels, of one namespace or all, by name."""
        keys = [key for key in _keys(self.contents.objects, "Pod") if namespace in ("", key.namespace)]
        pods: list[Any] = [self.contents.objects[key] for key in keys]
        return [pod for pod in pods if labels.items() <= pod.metadata.labels.items()]

    def dump(self, pod: "Pod") -> "Dump | None":
        """What the pod's proxy holds; None where it has no proxy."""
        from mizzen.diagnose import dump
        from mizzen.diagnose.describe import pods

        if not pods.has_proxy(pod):
            return None
        name = f"{pod.metadata.name}.{pod.metadata.namespace}"
        if self._request.reach.names_control_plane:
            return planes.find_sent(planes.find_planes(self._request.reach), name)
        if self._state is not None:
            return dump.parse_dump(targets.find_proxy(name, namespace="", mesh=self._request.mesh).get("config_dump"))
        return self._compiled(pod)

    def described_dump(self, pod: "Pod") -> "Dump | None":
        """The same, but of the file that was named, if one was."""
        from mizzen.diagnose import dump

        if self._request.dump_file:
            return dump.parse_dump(targets.read_file(self._request.dump_file))
        return self.dump(pod)

    def _compiled(self, pod: "Pod") -> "Dump":
        from mizzen.diagnose import nodes, snapshot
        from mizzen.model import mesh, proxy

        node = nodes.build_node(pod, mesh.domain(self.engine))
        return snapshot.as_dump(snapshot.take_snapshot(self.engine, proxy.parse_node(node)))


def find_pod(objects: "Mapping[Key, Any]", reference: str, default_namespace: str) -> "Pod":
    """The Pod of `[TYPE/]NAME[.NAMESPACE]` among objects; of a workload the first by name."""
    is_workload, name = targets.split_type(reference)
    name, namespace = _split(name, default_namespace)
    there = [key for key in _keys(objects, "Pod") if key.namespace == namespace]
    # Pods are named after their owner.
    found = [key for key in there if (key.name.startswith(f"{name}-") if is_workload else key.name == name)]
    if found:
        pod: Pod = objects[found[0]]
        return pod
    if is_workload:
        raise MizzenError(f'no pods match "{reference}"')
    raise MizzenError(f'unable to retrieve Pod: pods "{name}" not found{_hint(objects, "Pod", name, namespace)}')


def _split(reference: str, default_namespace: str) -> tuple[str, str]:
    """Name and namespace; the namespace after the last dot, else that of the command line."""
    name, dot, namespace = reference.rpartition(".")
    return (name, namespace) if dot else (reference, default_namespace or "default")


def _keys(objects: "Mapping[Key, Any]", kind: str) -> "list[Key]":
    return sorted(key for key in objects if key.kind == kind)


def _hint(objects: "Mapping[Key, Any]", kind: str, name: str, namespace: str) -> str:
    """The same name in other namespaces, or what there is in this one."""
    keys = _keys(objects, kind)
    elsewhere = [key for key in keys if key.name == name]
    near = elsewhere or [key for key in keys if key.namespace == namespace]
    shown = ", ".join(f"{key.name}.{key.namespace}" for key in (near or keys)[:5])
    return f" in namespace {namespace}" + (f"; there are {shown}" if shown else f"; there is no {kind} at all")


def read_sent(monitoring: Sequence[str], name: str, *, with_endpoints: bool = False) -> bytes:
    """The dump of what the first control plane that knows the proxy sent it."""
    query = f"debug/config_dump?proxyID={name}" + ("&include_eds=true" if with_endpoints else "")
    for plane in targets.find_control_planes(mesh="", addresses=monitoring):
        try:
            return plane.get(query)
        except targets.NotConnected:
            continue
    raise MizzenError(planes.UNSENT)


def read_objects(paths: Sequence[str]) -> "Contents":
    """The objects under the paths; what is wrong with them is another command's affair."""
    from mizzen.sources import files

    return files.load(paths)


def _complete(contents: "Contents") -> "Contents":
    """With the pods and addresses that a mesh would give to what the manifests leave open."""
    from mizzen.local import foretold

    offline.tell_excess(contents)
    return msgspec.structs.replace(contents, objects=foretold.complete(contents.objects, "istio"))


def _read_mesh(state: "runtime.State", layout: "runtime.Layout") -> "Contents":
    """The objects that the control plane of a local mesh reads, the Pods with the readiness of their containers."""
    from mizzen.api.meta import Key

    contents = read_objects([*state.manifests, *([str(layout.config)] if layout.config.exists() else [])])
    objects: dict[Any, Any] = dict(contents.objects)
    for pod in state.pods:
        key = Key("Pod", pod.namespace, pod.name)
        if key in objects:
            objects[key] = _with_containers(objects[key], pod)
    return msgspec.structs.replace(contents, objects=objects)


def _with_containers(pod: "Pod", running: "runtime.Pod") -> "Pod":
    from mizzen.api.kube.pods import ContainerStatus, PodStatus

    init = {container.name for container in pod.spec.init_containers}
    stay = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    found = [ContainerStatus(name=each.name, ready=each.ready) for each in running.containers]
    status = msgspec.structs.replace(
        pod.status or PodStatus(),
        container_statuses=tuple(each for each in found if each.name not in init),
        init_container_statuses=tuple(each for each in found if each.name in stay),
    )
    return msgspec.structs.replace(pod, status=status)


def find_proxies(reference: str, *, selector: str, namespace: str, mesh: str) -> list[targets.Proxy]:
    """The proxy of a pod of the local mesh, or those of all its pods with the labels of a selector."""
    if not selector:
        return [targets.find_proxy(reference, namespace=namespace, mesh=mesh)]
    view = View(Request(mesh=mesh))
    pods = view.select_pods(parse_selector(selector), namespace)
    running = view.state.pods if view.state is not None else ()
    names = {(pod.metadata.name, pod.metadata.namespace) for pod in pods}
    found = [pod for pod in running if pod.admin and (pod.name, pod.namespace) in names]
    if not found:
        raise MizzenError(f"no pods found with label selector {selector}")
    return [targets.proxy_of(pod) for pod in found]


def parse_selector(text: str) -> dict[str, str]:
    """Labels of `NAME=VALUE,…`."""
    pairs = [part.replace("==", "=").partition("=") for part in text.split(",") if part.strip()]
    if not pairs or not all(name.strip() and equals for name, equals, _ in pairs):
        raise MizzenError(f"{text!r} is no selector: labels are written as NAME=VALUE, with a comma between them")
    return {name.strip(): value.strip() for name, _, value in pairs}
