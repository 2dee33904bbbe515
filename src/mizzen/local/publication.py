"""Makes known what runs: to the control plane, to the resolver, to the hub's Service rules, to the host.

In: the manifests' objects and the pods as they are now. Out: files that the control plane watches, the zone that the
resolver answers from, rules in the hub, listening ports on the host. Each is touched only where it differs from what
was published before.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping

from mizzen.api.meta import Key, Object
from mizzen.local import addresses, directory, inventory, publish, publishing, uncaptured
from mizzen.local.net import dns, vips
from mizzen.local.net.broker import Client
from mizzen.local.surroundings import Surroundings

_PROPAGATION_SECONDS = 1.0
_CONTROL_PLANE = Key("Service", publish.SYSTEM_NAMESPACE, "istiod")


class Publication:
    """What is known of the mesh outside it."""

    def __init__(self, surroundings: Surroundings, known: inventory.Inventory, broker: Client) -> None:
        self._surroundings = surroundings
        self._known = known
        self._cluster_ips: Mapping[Key, str] = {_CONTROL_PLANE: str(surroundings.subnets.control_plane)}
        self._entry_addresses: Mapping[addresses.EntryHost, str] = {}
        self._directory = directory.Directory(services={}, slices={})
        self._rules: tuple[vips.VirtualPort, ...] = ()
        self._changed = time.monotonic()
        self.zone: dns.Zone = {}
        self.ports = publishing.HostPorts(broker, self._targets, forward=surroundings.isolation.namespaces)

    @property
    def settled(self) -> bool:
        """Whether what was published last has had the time to reach every proxy."""
        return time.monotonic() - self._changed > _PROPAGATION_SECONDS

    async def publish(self, pods: Iterable[publish.PresentPod]) -> None:
        """Everything, as of now."""
        surroundings, present = self._surroundings, tuple(pods)
        services, entries = self._known.services(), self._known.entries()
        given = addresses.assign_cluster_ips(services, self._cluster_ips, surroundings.subnets.services)
        self._cluster_ips = {**self._cluster_ips, **given}
        self._entry_addresses = addresses.assign_entry_addresses(entries, self._entry_addresses)
        objects: tuple[Object, ...] = (
            *inventory.build_additions(self._known, surroundings.additions),
            *publish.build(services, present, given),
            *publish.build_entries(entries, self._entry_addresses),
        )
        self._directory = directory.Directory.of([*self._known.named_hosts(), *objects])
        self.zone = directory.build_zone(self._directory)
        if not surroundings.isolation.namespaces:
            objects += uncaptured.build(services, [*self._known.objects.values(), *objects], present, self.zone)
        if await asyncio.to_thread(publish.write, objects, surroundings.layout.config):
            self._changed = time.monotonic()
        await self._apply_rules()
        await self.ports.apply(publishing.select_wishes(services, surroundings.options.ports))

    async def _apply_rules(self) -> None:
        rules = directory.build_virtual_ports(self._directory)
        if self._surroundings.isolation.namespaces and rules != self._rules:
            await asyncio.to_thread(vips.apply, rules)
            self._rules = rules

    def _targets(self, service: Key, port: str) -> list[publishing.Address]:
        found = directory.ready_targets(self._directory, service, port)
        return [(str(target.address), target.port) for target in found]
