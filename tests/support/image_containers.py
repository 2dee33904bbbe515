"""Containers without a container runtime: an image's program, run as a pod says.

In: an image, a container of a manifest and its pod. Out: a process with what Kubernetes would give it and no more: the
arguments and variables of the manifest, its user, its capabilities, its volumes, a read-only root if it asks for one;
in process and mount namespaces of its own, and in the network namespace of its pod.
"""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from eventually import eventually_blocking
from image_build import Image
from pod_net import Pod as Namespace
from pod_net import Process

from mizzen.api.kube.pods import Container, Pod, SecurityContext
from mizzen.api.meta import Key, Object
from mizzen.local.pods import containers, volumes

_INSIDE = pathlib.Path(__file__).with_name("image_inside.py")
_MACHINE = containers.Machine(cpus=2, memory_bytes=2**30)
_numbers = itertools.count()

Lookup = Callable[[Key], Object | None]


class Mounted(msgspec.Struct, frozen=True):
    """A folder or file of this machine that a container sees."""

    source: pathlib.Path
    path: str
    read_only: bool = False


class Running:
    """A container whose program has been started."""

    def __init__(self, image: Image, process: Process, scratch: pathlib.Path, user: str) -> None:
        self._image, self._process, self._scratch, self._user = image, process, scratch, user

    @property
    def log(self) -> str:
        return self._process.log

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def wait(self, seconds: float = 60.0) -> int:
        """Its exit code, once it has ended by itself."""
        eventually_blocking(lambda: not self.is_running, seconds=seconds)
        return self._process.end()

    def stop(self, seconds: float = 60.0) -> int:
        """Ask its first process to end; its exit code."""
        os.kill(self._first(), signal.SIGTERM)
        return self.wait(seconds)

    def execute(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """A further program in the container, as lifecycle hooks are."""
        entered = ["nsenter", "-t", str(self._first()), "--mount", "--pid", "--net", "--root", "--wd"]
        user, _, group = self._user.partition(":")
        become = ["/usr/bin/setpriv", "--reuid", user, "--regid", group or user, "--clear-groups"]
        become += ["--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs", "--"]
        return subprocess.run(
            [*entered, *become, *command], env=self._image.environ, capture_output=True, text=True, timeout=120
        )

    def written(self) -> list[str]:
        """Files of the image's own file system that are new or other than in the image."""
        command = [
            "nsenter",
            "-t",
            str(self._first()),
            "--mount",
            "find",
            f"{self._scratch}/upper",
            "-type",
            "f",
            "-size",
            "+0",
        ]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return [path.removeprefix(f"{self._scratch}/upper") for path in found]

    def _first(self) -> int:
        """Of its processes, the one whose end is the container's."""
        parent = self._process.pid

        def find() -> int:
            assert self.is_running, self.log
            children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            return int(children[0]) if children else 0

        return eventually_blocking(find)


class Kubelet:
    """Runs the containers of pods; `folder` is for volumes and logs."""

    def __init__(self, folder: pathlib.Path, lookup: Lookup, token: Callable[[str, str, str, str], str]) -> None:
        self._folder, self._lookup, self._token = folder, lookup, token

    def start(self, image: Image, pod: Pod, container: Container, namespace: Namespace) -> Running:
        """Start one container of a pod."""
        program = containers.build_program(container, pod, image.environ, self._lookup, _MACHINE)
        entry = image.entrypoint if not container.command else ()
        rest = program.argv or image.command
        context = self._context(image, container)
        mounted = self._mount(pod, container, context["user"])
        return self.start_program(
            image, (*entry, *rest), namespace, environ=program.environ, mounted=mounted, name=container.name, **context
        )

    def start_program(
        self,
        image: Image,
        command: Iterable[str],
        namespace: Namespace,
        *,
        name: str,
        environ: Mapping[str, str] | None = None,
        mounted: Iterable[Mounted] = (),
        user: str = "",
        capabilities: tuple[str, ...] = (),
        read_only: bool = True,
        escalation: bool = False,
    ) -> Running:
        """Start a program of an image, by default with as few rights as there are."""
        folder = self._folder / f"container-{next(_numbers)}"
        scratch = folder / "scratch"
        scratch.mkdir(parents=True)
        user, _, group = (user or image.user).partition(":")
        hosts = [Mounted(pathlib.Path("/etc") / file, f"/etc/{file}") for file in ("hosts", "resolv.conf")]
        spec = {
            "image": str(image.root),
            "scratch": str(scratch),
            "folder": image.folder,
            "command": list(command),
            "environ": {**image.environ, **(environ or {})},
            "user": user,
            "group": group or user,
            "capabilities": ",".join(("-all", *(f"+{each.lower()}" for each in capabilities))),
            "no_new_privileges": not escalation,
            "read_only": read_only,
            "volumes": [
                {
                    "source": str(one.source),
                    "path": one.path,
                    "read_only": one.read_only,
                    "folder": one.source.is_dir(),
                }
                for one in (*hosts, *mounted)
            ],
        }
        (folder / "spec.json").write_text(json.dumps(spec))
        isolated = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        process = namespace.start(
            *isolated, sys.executable, "-I", "-S", _INSIDE, folder / "spec.json", log=f"{name}-{folder.name}"
        )
        return Running(image, process, scratch, f"{user}:{group or user}")

    def _context(self, image: Image, container: Container) -> dict[str, Any]:
        """What the container's securityContext asks for."""
        own = container.security_context or SecurityContext()
        user, _, group = image.user.partition(":")
        user = user if own.run_as_user is None else str(own.run_as_user)
        group = group if own.run_as_group is None else str(own.run_as_group)
        assert not own.run_as_non_root or user != "0", f"{container.name}: not to be run as root"
        return {
            "user": f"{user}:{group}",
            "capabilities": tuple((own.capabilities or {}).get("add", ())),
            "read_only": bool(own.read_only_root_filesystem),
            "escalation": own.allow_privilege_escalation is not False,
        }

    def _mount(self, pod: Pod, container: Container, user: str) -> list[Mounted]:
        """The container's volumes, laid out as the kubelet does: scratch space for everybody, tokens for the user."""
        metadata = pod.metadata
        account = pod.spec.service_account_name or "default"
        files = volumes.build_files(
            pod, self._lookup, lambda audience: self._token(metadata.namespace, account, metadata.name, audience)
        )
        folder = self._folder / f"pod-{metadata.namespace}-{metadata.name}"
        folder.mkdir(exist_ok=True)
        volumes.Folder(folder).lay(files, None)
        for file in files:
            if file.mode is None:
                (folder / file.path).chmod(0o777)
            elif file.mode == 0o600:
                os.chown(folder / file.path, int(user.partition(":")[0]), -1)
        kinds = {volume.name: volume for volume in pod.spec.volumes}
        mounted = []
        for mount in sorted(container.volume_mounts, key=lambda mount: mount.mount_path):
            source = folder / mount.mount_path.strip("/")
            source.mkdir(parents=True, exist_ok=True)
            read_only = kinds[mount.name].empty_dir is None or mount.read_only
            mounted.append(Mounted(source, mount.mount_path, read_only))
        return mounted
