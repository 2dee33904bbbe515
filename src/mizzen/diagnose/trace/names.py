"""Where a name leads, and what stands behind an address.

In: a host and the pod that asks. Out: addresses with the way they were found: the agent's name table where it answers
the pod's DNS, else the cluster's DNS (Services, headless ones by their pods), else the outside, of which nothing is
known. `behind` is what kube-proxy does for those without a sidecar.
"""

from collections.abc import Iterator

import msgspec

from mizzen.api.kube.services import EndpointSlice, Service
from mizzen.api.meta import Key
from mizzen.diagnose.trace.world import Workload, World
from mizzen.incremental import Index
from mizzen.model import objects
from mizzen.model.names import is_ip, service_host

_slices = Index(
    "EndpointSlice", "service traced", lambda key, item: ((key[1], item.metadata.labels.get(SERVICE_NAME, "")),)
)
SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "None"
_ALIASES = 8
_LOCALHOST = "localhost"
_NEVER = ".invalid"
"""The top-level domain that nobody will ever have."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a resolver."""

    addresses: tuple[str, ...] = ()
    how: str = ""
    exists: bool = True
    """False where the name does not exist."""
    doubt: str = ""
    """Why a name might exist nevertheless."""
    service: Key | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One ready endpoint of a Service's port."""

    address: str
    port: int


def resolve(world: World, pod: Workload | None, host: str) -> Resolved:
    """What the host means to a program in the pod, or outside."""
    if is_ip(host):
        return Resolved(addresses=(host,), how="is an address")
    name = host.lower().rstrip(".")
    if pod is not None and name == _LOCALHOST:
        return Resolved(addresses=("127.0.0.1",), how="the pod's own hosts file")
    spellings = _spellings(world, pod, name)
    if pod is not None and pod.proxy == "sidecar" and pod.dns_capture:
        table = world.holdings(pod).names
        for spelling in spellings:
            if spelling in table:
                return Resolved(addresses=table[spelling], how="the sidecar's name table", service=None)
    if world.db is None:
        return Resolved(how="not known: dumps hold no names")
    for spelling in spellings if pod is not None else (name,):
        found = _service(world, spelling)
        if found is not None:
            return _addresses(world, *found)
    return _nobodys(world, pod, name)


def _nobodys(world: World, pod: Workload | None, name: str) -> Resolved:
    """A name that no Service has: of the cluster's own domain it is nobody's, and else perhaps somebody's outside."""
    if name.endswith((f".svc.{world.domain}", _NEVER)) or (pod is not None and "." not in name):
        return Resolved(exists=False, how="no Service has that name")
    label, _, space = name.partition(".")
    if pod is not None and space in _namespaces(world):
        doubt = f"whether somebody outside has the name {name}"
        return Resolved(exists=False, how=f"namespace {space} has no Service {label}", doubt=doubt)
    return Resolved(how="outside the mesh")


def _namespaces(world: World) -> frozenset[str]:
    def read() -> frozenset[str]:
        return frozenset({pod.namespace for pod in world.pods} | {key.namespace for key, _ in services(world)})

    return world.once("namespaces", read)


def _spellings(world: World, pod: Workload | None, name: str) -> tuple[str, ...]:
    """The names that a resolver tries, as Kubernetes sets a pod's search path."""
    if pod is None:
        return (name,)
    searched = tuple(f"{name}.{suffix}" for suffix in (f"{pod.namespace}.svc.{world.domain}", f"svc.{world.domain}"))
    return (*searched, f"{name}.{world.domain}", name)


def services(world: World) -> Iterator[tuple[Key, Service]]:
    """All Services."""
    if world.db is not None:
        for key in objects.of_kind(world.db, "Service"):
            found: Service | None = world.db.input(key)
            if found is not None:
                yield key, found


def _service(world: World, host: str) -> tuple[Key, Service] | None:
    def read() -> dict[str, tuple[Key, Service]]:
        return {service_host(key.name, key.namespace, world.domain): (key, found) for key, found in services(world)}

    return world.once("services by host", read).get(host)


def _addresses(world: World, key: Key, service: Service, depth: int = 0) -> Resolved:
    spec = service.spec
    if spec.type == "ExternalName":
        onward = _service(world, spec.external_name)
        if onward is not None and depth < _ALIASES:
            return _addresses(world, *onward, depth + 1)
        return Resolved(how=f"an alias of {spec.external_name}", service=key)
    if spec.cluster_ip == HEADLESS or not spec.cluster_ip:
        found = tuple(dict.fromkeys(a for item in slices(world, key) for a in _ready_addresses(item)))
        return Resolved(addresses=found, how="the pods of a headless Service", service=key)
    listed = spec.cluster_ips or (spec.cluster_ip,)
    return Resolved(addresses=tuple(listed), how="the Service's address", service=key)


def slices(world: World, key: Key) -> list[EndpointSlice]:
    """The EndpointSlices of a Service."""
    if world.db is None:
        return []
    return [world.db.input(Key(*found)) for found in world.db.lookup(_slices, (key.namespace, key.name))]


def _ready_addresses(item: EndpointSlice) -> Iterator[str]:
    for endpoint in item.endpoints:
        if endpoint.conditions.ready is not False and endpoint.addresses:
            yield endpoint.addresses[0]


def service_at(world: World, address: str) -> tuple[Key, Service] | None:
    """The Service that has the address."""

    def read() -> dict[str, tuple[Key, Service]]:
        return {
            each: (key, found)
            for key, found in services(world)
            for each in (*found.spec.cluster_ips, found.spec.cluster_ip, *found.spec.external_ips)
            if each and each != HEADLESS
        }

    return world.once("services by address", read).get(address)


def behind(world: World, key: Key, service: Service, port: int) -> tuple[Target, ...] | None:
    """The ready endpoints of a Service's port; None where it has no such port."""
    own = next((p for p in service.spec.ports if p.port == port), None)
    if own is None:
        return None
    found: dict[Target, None] = {}
    for item in slices(world, key):
        number = next((p.port for p in item.ports if p.name == own.name), None)
        if number is not None:
            found.update({Target(address=address, port=number): None for address in _ready_addresses(item)})
    return tuple(found)
