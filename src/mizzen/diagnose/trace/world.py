"""What is there: pods, what each proxy holds, the names that resolve, the objects behind it all.

In: pods, and a function that gives one proxy's resources, each from objects or from dumps. Out: `World`, which keeps
what was decoded, so that many requests over one world cost little. Nothing here knows how Envoy decides.
"""

import copy
import datetime
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from mizzen.api.meta import Key
from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import sockets
from mizzen.diagnose.trace.capture import Capture
from mizzen.diagnose.trace.verdict import Cause
from mizzen.errors import MizzenError
from mizzen.incremental import Engine, Index
from mizzen.model.convert import names as generated

Resources = Mapping[str, Json]
"""Resources of one kind by name, as protobuf JSON in camelCase."""

T = TypeVar("T")

_SHOWN_KINDS = {"KubernetesGateway": "Gateway"}
_CONFIG_KINDS = {
    "virtual-service": "VirtualService",
    "destination-rule": "DestinationRule",
    "gateway": "Gateway",
    "service-entry": "ServiceEntry",
    "sidecar": "Sidecar",
    "envoy-filter": "EnvoyFilter",
}


def _rule_names(key: tuple[str, ...], route: Any) -> tuple[tuple[str, str], ...]:
    return tuple({(key[1], rule.name) for rule in route.spec.rules if rule.name})


_ROUTES = {kind: Index(kind, "traced by the names of its rules", _rule_names) for kind in ("HTTPRoute", "GRPCRoute")}


class Place(Protocol):
    """Where an object stands; `mizzen.sources` has one."""

    @property
    def file(self) -> str:
        """The file's path as it was named."""

    @property
    def line(self) -> int:
        """The first line of the object; 0 where it is not known."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, as far as connections care."""

    name: str
    namespace: str
    addresses: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    account: str = "default"
    proxy: str = ""
    """`sidecar`, `router` or `waypoint`; empty without a proxy."""
    ready: bool = True
    ports: tuple[int, ...] = ()
    """Declared by the program's containers."""
    probed: tuple[int, ...] = ()
    """Those at which a ready pod has answered a probe, so that something listens there."""
    capture: Capture = Capture()
    dns_capture: bool = False

    @property
    def reference(self) -> str:
        """`NAME.NAMESPACE`."""
        return f"{self.name}.{self.namespace}"


class Holdings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All that one proxy holds."""

    clusters: Resources = {}
    listeners: Resources = {}
    routes: Resources = {}
    endpoints: Resources = {}
    secrets: Resources = {}
    extensions: Resources = {}
    names: Mapping[str, tuple[str, ...]] = {}
    """Hosts of the name table with their addresses."""
    on_demand: frozenset[str] | None = None
    """Of a proxy on demand: the virtual hosts that it has asked for, by name; all others it would ask for."""

    def assignment(self, cluster: Json) -> Json:
        """The endpoints of a cluster: its own, or those of its name in EDS."""
        own = dump.message(cluster, "load_assignment")
        if own:
            return own
        name = dump.text(cluster, "eds_cluster_config", "service_name") or dump.text(cluster, "name")
        return self.endpoints.get(name, {}) if dump.text(cluster, "type") == "EDS" else {}

    def listening(self, address: str, port: int) -> list[Json]:
        """The listeners at that address and port."""
        return [self.listeners[name] for name in self.listeners_at((address, port))]

    def listeners_at(self, socket: sockets.Socket) -> list[str]:
        """The names of the listeners there."""
        if isinstance(self.listeners, sockets.Listening):
            return self.listeners.names_at(socket)
        return self._names_by_socket.get(socket, [])

    @functools.cached_property
    def _names_by_socket(self) -> dict[sockets.Socket, list[str]]:
        return sockets.names_by_socket(self.listeners)


class World:
    """Everything that a trace may look at."""

    def __init__(
        self,
        pods: Iterable[Workload],
        hold: Callable[[Workload], Holdings],
        *,
        db: Engine | None = None,
        places: Mapping[Key, Place] | None = None,
        trust_domain: str = "cluster.local",
        domain: str = "cluster.local",
        now: datetime.datetime | None = None,
    ) -> None:
        self._stand(pods)
        self.db = db
        """The objects; None where there are only dumps."""
        self.trust_domain = trust_domain
        self.domain = domain
        self.now = now
        """The time against which tokens and certificates are held; None leaves their expiry out."""
        self._places = places or {}
        self._hold = hold
        self._held: dict[str, Holdings] = {}
        self._made: dict[str, Any] = {}
        self._read: dict[tuple[int, object], tuple[Json, Any]] = {}

    def _stand(self, pods: Iterable[Workload]) -> None:
        self.pods = tuple(pods)
        self._by_name: dict[str, list[Workload]] = {}
        for pod in self.pods:
            self._by_name.setdefault(pod.name, []).append(pod)
        self._by_address = {address: pod for pod in self.pods for address in pod.addresses}

    def holdings(self, pod: Workload) -> Holdings:
        """What a pod's proxy holds; asked for once."""
        found = self._held.get(pod.reference)
        if found is None:
            found = self._held[pod.reference] = self._hold(pod)
        return found

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` reads from objects and pods, never from what proxies hold; it is called once for each name."""
        if name not in self._made:
            self._made[name] = make()
        found: T = self._made[name]
        return found

    def read_from(self, resource: Json, read: Callable[[Json], T]) -> T:
        """What `read` makes of a resource alone; it is called once for each, which nobody changes."""
        place = (id(resource), read)
        if place not in self._read:
            self._read[place] = (resource, read(resource))  # Kept, so that no other has its id.
        found: T = self._read[place][1]
        return found

    def at(self, address: str) -> Workload | None:
        """The pod with that address."""
        return self._by_address.get(address)

    def find(self, reference: str, namespace: str = "") -> Workload:
        """The pod of that name, or the first of the workload of that name; raises MizzenError for none."""
        name, _, own = reference.rpartition("/")[2].partition(".")
        space = own or namespace
        exact = [p for p in self._by_name.get(name, ()) if space in ("", p.namespace)]
        found = exact or [p for p in self.pods if p.name.startswith(f"{name}-") and space in ("", p.namespace)]
        if not found:
            known = ", ".join(sorted(p.reference for p in self.pods)[:8])
            raise MizzenError(f"there is no pod {reference}" + (f"; there are {known}" if known else ""))
        return found[0]

    def gateways(self) -> Iterator[Workload]:
        """The pods that are gateways."""
        return (pod for pod in self.pods if pod.proxy == "router")

    def held_by(self, hold: Callable[[Workload], Holdings], pods: Iterable[Workload] | None = None) -> "World":
        """The same world, where somebody else says what proxies hold, and perhaps what the pods are."""
        world = copy.copy(self)
        world._hold, world._held = hold, {}
        if pods is not None:
            world._stand(pods)
        return world

    # -- objects ------------------------------------------------------------------------------------------------------

    def object(self, key: Key) -> Any:
        """The object of that key, or None."""
        return self.db.input(key) if self.db is not None else None

    def cause(self, key: Key) -> Cause:
        """The object as the cause of something, with its place."""
        place = self._places.get(key)
        return Cause(
            kind=_SHOWN_KINDS.get(key.kind, key.kind),
            namespace=key.namespace,
            name=key.name,
            file=place.file if place is not None else "",
            line=place.line if place is not None else 0,
        )

    def origin(self, resource: Json) -> Cause | None:
        """The object that a resource's metadata names as its maker."""
        path = dump.text(resource, "metadata", "filter_metadata", "istio", "config")
        key = parse_config_path(path)
        if key is None:
            return None
        made_of = generated.parse_virtual_service(key.name) if key.kind == "VirtualService" else None
        return self.cause(self._written(key, made_of, dump.text(resource, "name")) if made_of is not None else key)

    def _written(self, key: Key, made_of: generated.Generated, route: str) -> Key:
        """The route of the Gateway API behind a generated object; Envoy's routes are named by rule, else
        `NAMESPACE.NAME.RULE`."""
        if isinstance(made_of, generated.StreamRoute):
            return Key(made_of.kind, key.namespace, made_of.route)
        namespace, _, rest = route.partition(".")
        name = rest.rpartition(".")[0]
        known = [Key(kind, namespace, name) for kind in _ROUTES if self.object(Key(kind, namespace, name)) is not None]
        known += self._with_rule(key.namespace, route)
        return known[0] if known else Key("HTTPRoute", namespace or key.namespace, name or key.name)

    def _with_rule(self, namespace: str, rule: str) -> list[Key]:
        """The namespace's routes that have a rule of that name."""
        if self.db is None or not rule:
            return []
        return [Key(*found) for index in _ROUTES.values() for found in self.db.lookup(index, (namespace, rule))]


def parse_config_path(path: str) -> Key | None:
    """The object behind `/apis/GROUP/VERSION/namespaces/NAMESPACE/KIND/NAME`; None for anything else."""
    parts = path.split("/")
    if len(parts) != 8 or parts[1] != "apis" or parts[4] != "namespaces":
        return None
    kind = _CONFIG_KINDS.get(parts[6])
    return Key(kind, parts[5], parts[7]) if kind is not None else None
