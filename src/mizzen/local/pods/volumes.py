"""The files of a pod's volumes, below the pod's folder.

In: the pod, its containers' mounts, and the ConfigMaps and Secrets of the mesh. Out: a tree of `File`s with their
modes, which a `Folder` lays down; each is replaced as a whole, so that a reader never sees half a file. Read are
configMap, secret, emptyDir, downwardAPI and projected volumes; any other kind is refused by name. Tokens and the mesh's
root certificate, which Kubernetes would project, come from the caller.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from mizzen.api.kube.data import ConfigMap, Secret
from mizzen.api.kube.pods import KeyToPath, ObjectFieldSelector, Pod, Volume, VolumeMount
from mizzen.api.message import FreeForm
from mizzen.api.meta import Key
from mizzen.errors import LocalError
from mizzen.inject.workload import PROXY
from mizzen.local.pods.containers import Lookup, field_value

Token = Callable[[str], str]
"""A token of the pod's service account for an audience."""

_DEFAULT_MODE = 0o644


class File(msgspec.Struct, frozen=True):
    """One file; `mode` None makes a directory for the proxy, or for everybody in the pod if it is shared."""

    path: str
    """Relative to the pod's folder."""
    content: bytes = b""
    mode: int | None = _DEFAULT_MODE
    shared: bool = False

    def __repr__(self) -> str:
        return f"File({self.path!r}, {len(self.content)} bytes)"


def build_files(pod: Pod, lookup: Lookup, token: Token) -> tuple[File, ...]:
    """Every file of every mount, by path; a mount that two containers share stands once."""
    volumes = {volume.name: volume for volume in pod.spec.volumes}
    files: dict[str, File] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        shared = container.name != PROXY
        for mount in container.volume_mounts:
            if mount.name not in volumes:
                raise LocalError(f"container {container.name} mounts {mount.name}, which is no volume of the pod")
            for file in _mounted(mount, volumes[mount.name], pod, lookup, token):
                earlier = files.get(file.path, file)
                files[file.path] = msgspec.structs.replace(file, shared=shared or earlier.shared)
    return tuple(files[path] for path in sorted(files))


def _mounted(mount: VolumeMount, volume: Volume, pod: Pod, lookup: Lookup, token: Token) -> Iterator[File]:
    base = PurePosixPath(mount.mount_path.strip("/"))
    for file in _entries(volume, pod, lookup, token):
        if mount.sub_path and file.path != mount.sub_path:
            continue
        path = base if mount.sub_path else base / file.path
        if ".." in path.parts or path.is_absolute():
            raise LocalError(f"volume {mount.name}: {path} leaves the pod's folder")
        yield msgspec.structs.replace(file, path=str(path))


def _entries(volume: Volume, pod: Pod, lookup: Lookup, token: Token) -> Iterator[File]:
    """The volume's content, with paths relative to the volume."""
    if volume.config_map:
        source = volume.config_map
        key = Key("ConfigMap", pod.metadata.namespace, source.name)
        yield from _keys(key, source.items, source.default_mode, source.optional, lookup)
    elif volume.secret:
        secret = volume.secret
        key = Key("Secret", pod.metadata.namespace, secret.secret_name)
        yield from _keys(key, secret.items, secret.default_mode, secret.optional, lookup)
    elif volume.empty_dir is not None:
        yield File("", mode=None)
    elif volume.downward_api is not None:
        yield from _downward(volume.downward_api, pod)
    elif volume.projected is not None:
        for part in volume.projected.get("sources", ()):
            yield from _projected(part, pod, lookup, token)
    else:
        raise LocalError(f"volume {volume.name} is of a kind that a local mesh does not have")


def _keys(key: Key, items: tuple[KeyToPath, ...], mode: int | None, optional: bool, lookup: Lookup) -> Iterator[File]:
    item = lookup(key)
    if item is None:
        if optional:
            return
        raise LocalError(f"volume: {key} does not exist")
    content: dict[str, bytes] = {}
    if isinstance(item, ConfigMap):
        content = {name: text.encode() for name, text in item.data.items()} | dict(item.binary_data)
    elif isinstance(item, Secret):
        content = {name: item.get(name) or b"" for name in {*item.data, *item.string_data}}
    chosen = items or tuple(KeyToPath(key=name, path=name) for name in content)
    for choice in chosen:
        if choice.key in content:
            file_mode = choice.mode if choice.mode is not None else mode if mode is not None else _DEFAULT_MODE
            yield File(choice.path, content[choice.key], file_mode)
        elif not optional:
            raise LocalError(f"volume: {key} has no entry {choice.key}")


def _downward(source: FreeForm, pod: Pod) -> Iterator[File]:
    for item in source.get("items", ()):
        field = item.get("fieldRef") or {}
        if field:
            selector = ObjectFieldSelector(field_path=field.get("fieldPath", ""))
            yield File(item.get("path", ""), field_value(selector, pod).encode())


def _projected(part: FreeForm, pod: Pod, lookup: Lookup, token: Token) -> Iterator[File]:
    if "serviceAccountToken" in part:
        wanted = part["serviceAccountToken"]
        # Readable by the pod's own user only; `Folder` gives the file to it.
        yield File(wanted.get("path", "token"), token(wanted.get("audience", "")).encode(), 0o600)
    for name, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if name in part:
            source = part[name]
            items = tuple(msgspec.convert(item, KeyToPath) for item in source.get("items", ()))
            key = Key(kind, pod.metadata.namespace, source.get("name", ""))
            yield from _keys(key, items, None, source.get("optional", False), lookup)
    if "downwardAPI" in part:
        yield from _downward(part["downwardAPI"], pod)


class Folder:
    """A pod's folder: filled again and again, taken away once, and never by two threads at the same time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._gone = False

    def lay(self, files: Iterable[File], owner: tuple[int, int] | None) -> None:
        """Lays the files; `owner` is the user and group of the pod, None the caller's own."""
        with self._lock:
            if self._gone:
                return
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                if owner:
                    os.chown(self.root, *owner)
                _write(files, self.root, owner)
            except OSError as error:
                raise LocalError(f"volume: {error.filename}: {error.strerror}") from error

    def remove(self) -> None:
        """Takes the folder away; nothing is laid there any more."""
        with self._lock:
            self._gone = True
            shutil.rmtree(self.root, ignore_errors=True)


def _write(files: Iterable[File], root: Path, owner: tuple[int, int] | None) -> None:
    for file in files:
        target = root / file.path
        if file.mode is None:
            _make_directory(target, owner, root)
            target.chmod(0o777 if file.shared else 0o700)
        else:
            _make_directory(target.parent, owner, root)
            _replace(target, file.content, file.mode, owner)


def _make_directory(path: Path, owner: tuple[int, int] | None, root: Path) -> None:
    missing = [path, *path.parents]
    for directory in reversed(missing[: missing.index(root) + 1]):
        if not directory.exists():
            directory.mkdir(mode=0o755)
            if owner:
                os.chown(directory, *owner)


def _replace(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None) -> None:
    partial = path.with_name(f".{path.name}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        if owner:
            os.fchown(stream.fileno(), *owner)
        os.fchmod(stream.fileno(), mode)
    partial.rename(path)
