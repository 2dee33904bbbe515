"""What a mesh makes of its machine: addresses, environments, commands, and the factories of its parts.

In: the user's options, the way of isolation, this process's environment. Out: everything that the parts of the mesh are
made with. The differences between the ways of isolation are gathered here: with namespaces pods have addresses of a
private network and call the control plane by the name of its Service; where there is one user only, or no namespace,
agents are told its address; without namespaces addresses are those of the loopback network, and every pod's agent,
Envoy and program keep to the pod's own.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import msgspec

from mizzen import settings
from mizzen.agent.binaries import find_envoy
from mizzen.inject.values import InjectionConfig
from mizzen.local import isolation as ways
from mizzen.local import uncaptured
from mizzen.local.control_plane import SECURE_PORT, Addresses, ControlPlane, Credentials
from mizzen.local.inventory import Additions, Inventory
from mizzen.local.isolation import Isolation
from mizzen.local.net.network import Subnets
from mizzen.local.options import Options
from mizzen.local.pods.containers import Machine
from mizzen.local.pods.world import World
from mizzen.local.processes import MESH_VARIABLE
from mizzen.local.runtime import Layout

CLUSTER_DOMAIN = "cluster.local"
CONTROL_PLANE_NAME = "istiod.istio-system.svc"

_LOOPBACK = Subnets(pods=IPv4Network("127.44.0.0/16"), services=IPv4Network("127.96.0.0/16"))
_RESOLV_CONF = "nameserver {resolver}\nsearch {namespace}.svc.{domain} svc.{domain} {domain}\noptions ndots:5\n"
# What the user's environment gives to the programs of a mesh; the rest stays outside, as it would of a container.
_INHERITED = ("LANG", "LC_ALL", "PATH", "TZ")


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, one user, one mesh."""

    layout: Layout
    isolation: Isolation
    subnets: Subnets
    options: Options
    environ: Mapping[str, str]

    @classmethod
    def of(cls, options: Options, environ: Mapping[str, str]) -> "Surroundings":
        isolation = Isolation(options.isolation)
        return cls(
            layout=Layout(Path(options.root)),
            isolation=isolation,
            subnets=Subnets() if isolation.namespaces else _LOOPBACK,
            options=options,
            environ=environ,
        )

    @property
    def control_plane_address(self) -> IPv4Address:
        """The address at which agents call the control plane, if they do not by name."""
        return self.subnets.control_plane if self.isolation.namespaces else self.subnets.hub

    @property
    def marker(self) -> Mapping[str, str]:
        return {MESH_VARIABLE: str(self.layout.root)}

    @property
    def base_environ(self) -> Mapping[str, str]:
        """The environment that an image would bring; `python3` is the interpreter that runs the mesh."""
        inherited = {name: self.environ[name] for name in _INHERITED if name in self.environ}
        path = [str(Path(sys.executable).parent), inherited.get("PATH", "/usr/local/bin:/usr/bin:/bin")]
        return {"LANG": "C.UTF-8", **inherited, "PATH": os.pathsep.join(path)}

    @property
    def needed(self) -> tuple[Path, ...]:
        """What every process of a pod must be able to read."""
        return (*ways.interpreter_paths(), first_directory(self.options.manifests), self.layout.root)

    def remarks(self) -> Iterator[str]:
        """What the user should know of this way to run."""
        closed = [path for path in self.needed if not ways.is_open_to_others(path)]
        if self.isolation.users and closed:
            yield f"note: {closed[0]} is closed to other users; pods keep the right to read any file"
        if self.isolation is Isolation.NONE:
            yield "note: without capture only HTTP goes through sidecars, and a program must listen at"
            yield f"      ${uncaptured.LISTEN_ADDRESS} and call through $http_proxy"

    @property
    def additions(self) -> Additions:
        hub = str(self.subnets.hub)
        return Additions(hub=hub, control_plane=hub, control_plane_ip=str(self.subnets.control_plane))

    def make_credentials(self) -> Credentials:
        config = settings.load(self.environ)[0].authority
        return Credentials(self.layout.control, config, CLUSTER_DOMAIN, time.time)

    def make_inventory(self, credentials: Credentials) -> Inventory:
        address = f"{self.control_plane_address}:{SECURE_PORT}"
        return Inventory(self.isolation, address, lambda: credentials.roots, lambda: credentials.revocations)

    def make_control_plane(
        self, credentials: Credentials, changed: Callable[[], None], say: Callable[[str], None]
    ) -> ControlPlane:
        hub = str(self.subnets.hub)
        private = "127.0.0.1" if self.isolation.namespaces else hub
        return ControlPlane(
            self.layout,
            Addresses(pods=hub, private=private),
            credentials,
            self.options.manifests,
            {**self.environ, **self.marker, "POD_NAME": f"mizzen-{self.layout.name}"},
            changed,
            say,
            bound_to_parent=not self.isolation.namespaces,
        )

    def make_world(
        self, inventory: Inventory, credentials: Credentials, changed: Callable[[], None], say: Callable[[str], None]
    ) -> World:
        """What all pods share."""
        manifests = first_directory(self.options.manifests)
        cpus = os.cpu_count() or 1
        return World(
            layout=self.layout,
            isolation=self.isolation,
            subnets=self.subnets,
            machine=Machine(cpus=cpus, memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
            base_environ=self.base_environ,
            manifests=manifests,
            injection=self.injection,
            agent=(sys.executable, "-m", "mizzen", "agent"),
            agent_environ=self._agent_environ(),
            marker=self.marker,
            needed=self.needed,
            resolv_conf=self._resolv_conf,
            lookup=inventory.look_up,
            services=inventory.services,
            mesh_config=inventory.mesh_config,
            issue_token=credentials.issue,
            node_of=inventory.node_of,
            control_plane=self.control_plane_address,
            gate=asyncio.Semaphore(cpus + 2),
            changed=changed,
            say=say,
        )

    @property
    def injection(self) -> InjectionConfig:
        """How pods get their proxies here."""
        config = InjectionConfig(dialect="envoy", cluster_domain=CLUSTER_DOMAIN)
        if self.isolation.users:
            return config
        return msgspec.structs.replace(
            config,
            ca_address=f"{self.control_plane_address}:{SECURE_PORT}",
            # The agent would ask the program at the pod's address, where without capture Envoy listens itself.
            rewrite_probes=self.isolation.namespaces,
        )

    def _agent_environ(self) -> Mapping[str, str]:
        environ = {name: value for name, value in self.environ.items() if name.startswith("PYTHON")}
        environ |= {"ENVOY_PATH": str(find_envoy("", "")), "ISTIOD_SAN": CONTROL_PLANE_NAME}
        if self.isolation is Isolation.SINGLE:
            environ["MIZZEN_SOCKET_MARK"] = str(ways.SOCKET_MARK)
        return environ

    def _resolv_conf(self, namespace: str, proxy: bool) -> Path | None:
        """The resolver's settings of a namespace's pods; without mount namespaces there is only the machine's.

        Agents and Envoys ask the same resolver at another address, which no rule captures: where their traffic is not
        told by a user, their questions would come back to them.
        """
        if not self.isolation.namespaces:
            return None
        resolver = self.subnets.hub if proxy else self.subnets.resolver
        path = self.layout.resolv / f"{namespace}.{'proxy' if proxy else 'program'}"
        if not path.exists():
            text = _RESOLV_CONF.format(resolver=resolver, namespace=namespace, domain=CLUSTER_DOMAIN)
            path.write_text(text)
        return path


def first_directory(manifests: tuple[str, ...]) -> Path:
    """Where programs run that name no directory: beside the manifests."""
    first = Path(manifests[0]).resolve()
    return first if first.is_dir() else first.parent
