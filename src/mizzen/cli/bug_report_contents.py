"""What goes into a bug report, as a list of things to fetch.

In: a local mesh, or the addresses of control planes. Out: `Item`s: names in the archive, laid out as istioctl lays them
out, each with the function that fetches its content. Nothing is fetched here.

    cluster/…           the state of the mesh, its objects
    istio/NS/POD/…      each control plane: its log, its debug pages, its metrics
    proxies/NS/POD/…    each proxy: its log and its programs', Envoy's own pages
    analyze/…           findings over the objects
    versions            of this program, the control planes and the Envoys
"""

import fnmatch
import importlib.metadata
import json
import pathlib
import platform
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mizzen.cli import render, targets
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.local import runtime

SYSTEM = "istio-system"

_DEBUG = (
    *("adsz", "authorizationz", "cachez", "clusterz", "configz", "endpointShardz", "endpointz", "inject", "instancesz"),
    *("mcsz", "mesh", "networkz", "problems", "push_status", "registryz", "resourcesz", "syncz", "telemetryz"),
)
"""Pages that are wanted, of this control plane or istiod."""
_ENVOY = {
    "certs": "certs",
    "clusters": "clusters",
    "config_dump": "config_dump?include_eds",
    "listeners": "listeners",
    "memory": "memory",
    "runtime": "runtime",
    "server_info": "server_info",
    "stats": "stats",
    "stats_prometheus": "stats/prometheus",
}
_PROXY = "istio-proxy"


class Item(NamedTuple):
    """One file of the report."""

    name: str
    fetch: Callable[[], bytes | str]
    clean: bool = False
    """Whether what is fetched holds nothing secret any more."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods are wanted, as `NAMESPACE[/NAME]` with `*` for any text."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, namespace: str, name: str) -> bool:
        """Whether the pod is included, and not excluded."""
        included = not self.include or any(_fits(pattern, namespace, name) for pattern in self.include)
        return included and not any(_fits(pattern, namespace, name) for pattern in self.exclude)


def _fits(pattern: str, namespace: str, name: str) -> bool:
    wanted_namespace, _, wanted_name = pattern.partition("/")
    return fnmatch.fnmatchcase(namespace, wanted_namespace or "*") and fnmatch.fnmatchcase(name, wanted_name or "*")


def list_mesh(
    state: "runtime.State", layout: "runtime.Layout", choice: Choice, *, tail: int, full_secrets: bool
) -> Iterator[Item]:
    """Everything of a local mesh."""
    yield Item("versions", lambda: _versions(state))
    yield Item("cluster/state.json", layout.state.read_bytes)
    paths = [*state.manifests, str(layout.config)]
    yield from _list_objects(paths, full_secrets=full_secrets)
    yield Item("analyze/all-namespaces", lambda: _analyze(paths))
    name = f"istio/{SYSTEM}/{targets.plane_name(state)}"
    yield Item(f"{name}/discovery.log", lambda: read_tail(layout.control_log, tail))
    for plane in targets.planes_of(state):
        yield from _list_pages(plane, name)
    for pod in state.pods:
        if choice.takes(pod.namespace, pod.name):
            yield from _list_pod(pod, layout, tail)


def list_planes(planes: Sequence[targets.ControlPlane]) -> Iterator[Item]:
    """What control planes at addresses tell."""
    yield Item("versions", lambda: render.render_yaml({"client": _client(), "controlPlanes": _builds(planes)}))
    for plane in planes:
        yield from _list_pages(plane, f"istio/{SYSTEM}/{plane.name.replace(':', '_')}")


def _list_pages(plane: targets.ControlPlane, folder: str) -> Iterator[Item]:
    for page in _list_debug(plane):
        yield Item(f"{folder}/debug/{page}", partial(_read_page, plane, page))
    yield Item(f"{folder}/metrics", partial(plane.get, "metrics"))


def _list_debug(plane: targets.ControlPlane) -> Sequence[str]:
    """The pages that it has, of those that are wanted; all of these where it does not say."""
    try:
        known = plane.get_json("debug/list")
    except MizzenError:
        return _DEBUG
    return [page for page in _DEBUG if page in known] if isinstance(known, list) else _DEBUG


def _read_page(plane: targets.ControlPlane, page: str) -> bytes | str:
    """The page; what a control plane says instead of one is kept in its place."""
    try:
        return plane.get(f"debug/{page}")
    except (targets.UnexpectedStatus, targets.NotConnected) as refused:
        return f"{refused}\n"


def _list_pod(pod: "runtime.Pod", layout: "runtime.Layout", tail: int) -> Iterator[Item]:
    folder = f"proxies/{pod.namespace}/{pod.name}"
    logs = layout.log(pod.namespace, pod.name, "").parent
    for path in sorted(logs.glob("*.log")):
        name = "proxy" if path.stem == _PROXY else path.stem
        yield Item(f"{folder}/{name}.log", partial(read_tail, path, tail))
    if pod.admin:
        proxy = targets.proxy_of(pod)
        for name, query in _ENVOY.items():
            yield Item(f"{folder}/{name}", partial(proxy.get, query))


def read_tail(path: pathlib.Path, lines: int) -> str:
    """The file's last lines; all of it for 0."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as failed:
        raise MizzenError(f"cannot read {path}: {failed.strerror}") from failed
    return "".join(text.splitlines(keepends=True)[-lines:]) if lines else text


# -- objects --------------------------------------------------------------------------------------------------------


def _list_objects(paths: Sequence[str], *, full_secrets: bool) -> Iterator[Item]:
    """The files of the manifests, each where it stands below its path."""
    from mizzen.sources import tree

    read = pathlib.Path.read_text if full_secrets else _read_objects
    for number, path in enumerate(paths):
        root = pathlib.Path(path)
        try:
            files = tree.list_files(root).files
        except MizzenError:
            continue
        for file in files:
            below = pathlib.Path(file).relative_to(root) if root.is_dir() else pathlib.Path(root.name)
            name = f"cluster/objects/{number}/{below.with_suffix('.yaml')}"
            yield Item(name, partial(read, pathlib.Path(file)), clean=True)


def _read_objects(file: pathlib.Path) -> str:
    """The file's objects without what is secret in them; a file that does not parse is left out."""
    from mizzen.diagnose import redaction
    from mizzen.sources import documents, tree

    text = tree.decode_text(tree.read_bytes(str(file)))
    try:
        found = documents.parse_json(text) if file.suffix == ".json" else documents.parse_yaml(text)
    except documents.DocumentError as bad:
        # It may hold a secret that nobody can find in it, and the error may quote it.
        return f"# does not parse at line {bad.line}: left out\n"
    try:
        values = [redaction.redact_object(document.value) for document in found if document.value is not None]
        return render.render_documents("yaml", values)
    except RecursionError:
        return "# nested too deeply: left out\n"


def _analyze(paths: Sequence[str]) -> str:
    from mizzen.cli import analysis_output, analysis_run

    answer = analysis_run.analyze(analysis_run.Asked(paths=tuple(paths), all_namespaces=True))
    errors = "".join(f"Error: {error}\n" for error in answer.manifests.errors)
    found = analysis_output.render_log(answer.findings, colour=False) if answer.findings else "nothing found\n"
    return errors + found


# -- versions -------------------------------------------------------------------------------------------------------


def _client() -> dict[str, str]:
    return {
        "version": importlib.metadata.version("mizzen"),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _builds(planes: Sequence[targets.ControlPlane]) -> dict[str, str]:
    return {plane.name: _told(partial(_plane_version, plane)) for plane in planes}


def _versions(state: "runtime.State") -> str:
    proxies = [targets.proxy_of(pod) for pod in state.pods if pod.admin]
    envoys = {proxy.name: _told(partial(_envoy_version, proxy)) for proxy in proxies}
    planes = _builds(targets.planes_of(state))
    return render.render_yaml({"client": _client(), "controlPlanes": planes, "envoys": envoys})


def _plane_version(plane: targets.ControlPlane) -> str:
    return plane.get("version").decode().strip()


def _envoy_version(proxy: targets.Proxy) -> str:
    return str(json.loads(proxy.get("server_info")).get("version", ""))


def _told(ask: Callable[[], str]) -> str:
    """The answer, or why there is none: a report is made when things do not work."""
    try:
        return ask()
    except (MizzenError, ValueError) as failed:
        return f"unknown: {failed}"
