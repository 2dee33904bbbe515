"""What all pods of a mesh share: the machine, the way of isolation, and the mesh's answers to their questions."""

import asyncio
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import msgspec

from mizzen.api.kube.services import Service
from mizzen.inject.values import InjectionConfig
from mizzen.local import runtime
from mizzen.local.isolation import Isolation
from mizzen.local.net.network import Subnets
from mizzen.local.pods.containers import Lookup, Machine

IssueToken = Callable[[str, str, str, str], str]
"""A token for (namespace, service account, pod, audience)."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Handed to every pod; holds no state of one."""

    layout: runtime.Layout
    isolation: Isolation
    subnets: Subnets
    machine: Machine
    base_environ: Mapping[str, str]
    """What an image would bring: the path, the language."""
    manifests: Path
    """Where programs run that name no working directory."""
    injection: InjectionConfig
    agent: tuple[str, ...]
    """The command that starts an agent; the arguments of the injected container follow."""
    agent_environ: Mapping[str, str]
    marker: Mapping[str, str]
    """What every process of the mesh carries, see `processes.MESH_VARIABLE`."""
    needed: tuple[Path, ...]
    """What every process must be able to read: the interpreter, the manifests' programs."""
    resolv_conf: Callable[[str, bool], Path | None]
    """The resolver's settings for a namespace's proxies (True) or programs; None keeps the machine's."""
    lookup: Lookup
    services: Callable[[], tuple[Service, ...]]
    """The manifests' Services now."""
    mesh_config: Callable[[], Mapping[str, Any]]
    issue_token: IssueToken
    node_of: Callable[[Mapping[str, str], str], str]
    """The node for a pod's nodeSelector and nodeName."""
    control_plane: IPv4Address
    """The address that agents call, as they see it."""
    gate: asyncio.Semaphore
    """Held while a sidecar starts, so that a small machine is not asked for everything at once."""
    changed: Callable[[], None]
    """Something that the world sees of a pod is different now."""
    say: Callable[[str], None]
    """A line of the timeline."""
