"""The mesh under attack: its pods, its policies, and changes to it that are waited for.

In `vault`: `strict`, `deny`, `allow` and `token` are guarded, each in its own way, `broken` by a policy that does not
decode, `typo` by one with a misspelt field; `front` and `other` are clients whose identities policies tell apart. In
`ruins` a policy hides whom it selects. `gateways` and `thieves` have a gateway each, and `outside`, without sidecars,
is where `mallory` sits, and `plane`, a control plane of its own with all its ports. Everybody runs the same program.

A file of manifests carries its revision as the name of a policy of the root namespace, which every Envoy must have.
"""

import json
import pathlib
import shutil
import time
from collections.abc import Iterable, Mapping
from typing import Any

import attack_app
import attack_manifests
import attack_policies
import attack_wire
import traffic_app
import traffic_calls
import whole_files
from attack_material import FETCHED, Keyring, Stamp
from eventually import eventually_blocking
from local_mesh import LocalMesh
from traffic_manifests import render
from traffic_programs import Program

from mizzen.ca import store, tokens
from mizzen.errors import LocalError
from mizzen.local import observer, runtime

_IN_FORCE_SECONDS = 90.0
_DUMP = "/config_dump?resource=dynamic_listeners"
_PROGRAMS = (attack_app, attack_wire, traffic_app, traffic_calls)


class AttackMesh:
    """The running mesh."""

    def __init__(self, local: LocalMesh) -> None:
        self.local = local
        self.normalization = attack_manifests.DEFAULT_NORMALIZATION
        self._revisions = 0
        self._programs: dict[str, Program] = {}
        state = store.load_state(local.layout.control)
        assert state is not None
        self.keyring = Keyring(state.current)
        self.stamp = Stamp(tokens.decode_private_key((local.layout.control / "token-key.pem").read_bytes()))
        self.roots = (local.layout.control / store.BUNDLE).read_text()

    def __getitem__(self, name: str) -> Program:
        """A pod's program."""
        if name not in self._programs:
            pod = self.pod(name)
            self._programs[name] = Program(name, pathlib.Path(pod.directory) / "control" / "app.sock", pod.address)
        return self._programs[name]

    def pod(self, name: str) -> runtime.Pod:
        return self.local.pod(name)

    def address(self, name: str) -> str:
        return self.pod(name).address

    # -- what Envoys say ----------------------------------------------------------------------------------------------

    def count(self, name: str, pattern: str) -> int:
        """The sum of the counters of a pod's Envoy whose names match."""
        return sum(observer.counters(self.pod(name), pattern).values())

    def logged(self, name: str, case: str) -> list[str]:
        """The lines of a pod's access log for a case, once there is one."""
        pod = self.pod(name)
        path = self.local.layout.log(pod.namespace, pod.name, "istio-proxy")
        return eventually_blocking(
            lambda: [line for line in path.read_text(errors="replace").splitlines() if f'"{case}"' in line]
        )

    # -- changes ------------------------------------------------------------------------------------------------------

    def guard(self) -> None:
        """Puts the policies in force, once pods have addresses."""
        self.apply("policies", attack_policies.build_policies())

    def normalize(self, option: str) -> None:
        """Sets the mesh's way with paths."""
        if option != self.normalization:
            self.apply("mesh", attack_manifests.build_mesh_config(option))
            self.normalization = option

    def apply(self, file: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """Makes a file of the watched directory hold these, and waits until every Envoy has them.

        `$(POD)` in them is the address of a pod.
        """
        self._revisions += 1
        marker = f"revision-{self._revisions}"
        text = render([*documents, attack_manifests.build_marker(marker)])
        for pod in self.local.state.pods:
            text = text.replace(f"$({pod.name})", pod.address)
        self.write(file, text)
        self._wait_for(marker)

    def write(self, file: str, text: str) -> None:
        """Replaces a file as a whole, as editors do, and waits for nothing."""
        whole_files.put(self.local.manifests / f"{file}.yaml", text)

    def _wait_for(self, marker: str) -> None:
        end = time.monotonic() + _IN_FORCE_SECONDS
        while behind := [pod.name for pod in self.local.proxies() if not _is_settled(pod, marker)]:
            assert time.monotonic() < end, f"{marker} is not in force at {behind}: {self.local.text[-4000:]}"
            time.sleep(0.2)


def _is_settled(pod: runtime.Pod, marker: str) -> bool:
    """Not while an Envoy says nothing, as when it is started again."""
    try:
        return has_policy(pod, marker)
    except LocalError:
        return False


def has_policy(pod: runtime.Pod, name: str) -> bool:
    """Whether every listener of an Envoy that takes requests is past warming and has that policy."""
    listeners = json.loads(observer.ask_envoy(pod, _DUMP)).get("configs", ())
    guarded = [each for each in listeners if f"policy[{name}]" in json.dumps(each.get("active_state", {}))]
    waits = any("warming_state" in each for each in listeners)
    return bool(guarded) and not waits


def lay_programs(folder: pathlib.Path) -> None:
    """The pods' programs, and what they hand out, beside the manifests, where pods find them."""
    for module in _PROGRAMS:
        shutil.copy(str(module.__file__), folder)
    (folder / "jwks.json").write_text(FETCHED.jwks)


def lay_manifests(folder: pathlib.Path) -> None:
    """What is there from the start; policies come once pods have addresses."""
    folder.mkdir(exist_ok=True)
    lay_programs(folder)
    (folder / "base.yaml").write_text(render(attack_manifests.build_base()))
    config = attack_manifests.build_mesh_config(attack_manifests.DEFAULT_NORMALIZATION)
    (folder / "mesh.yaml").write_text(render([*config, attack_manifests.build_marker("revision-0")]))
