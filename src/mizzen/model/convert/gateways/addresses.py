"""Addresses: which Services a Gateway is bound to, and which of its ports they reach.

In: a Gateway, its class, the Services of its namespace and their endpoints. Out: `Bound`, the hosts whose endpoints
serve the Gateway, and `Assignment`, what of some ports is reachable there and what is in the way.
Golden cases: gateway-api/invalid-references, gateway-api/managed-gateway.
"""

from collections.abc import Iterable

import msgspec

from mizzen.api.gateway_api.listeners import Gateway
from mizzen.api.kube.services import Service as KubeService
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model import endpoints, mesh, names
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways.classes import Traits
from mizzen.model.services import Service, services_of_host

SERVICE_TYPE = "networking.istio.io/service-type"
NAME_OVERRIDE = "gateway.istio.io/name-override"
SERVICE_ACCOUNT = "gateway.istio.io/service-account"
_MANAGED = "gateway.istio.io/managed"


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The Services of a Gateway."""

    services: tuple[str, ...]
    """Hosts; the Services are in the Gateway's namespace or are none of it."""
    service_account: str = ""
    """Whose proxies serve the Gateway; empty where a user deploys them."""
    fault: Fault | None = None

    @property
    def is_hopeless(self) -> bool:
        """Whether no address could be used at all, so that nothing else of the Gateway is looked at."""
        return not self.services and self.fault is not None


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What of some ports is reachable at a Gateway's Services."""

    services: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    """`host:port` of what has endpoints, sorted as text."""
    internal_ips: tuple[str, ...] = ()
    external: tuple[str, ...] = ()
    """Addresses of load balancers."""
    pending: tuple[str, ...] = ()
    """Hosts whose load balancer has no address yet."""
    warnings: tuple[str, ...] = ()
    is_usable: bool = True
    """Whether everything that was asked for exists, ready or not."""


def is_managed(gateway: Gateway) -> bool:
    """Whether the control plane deploys the Gateway: it asks for no address, or for one by its IP."""
    addresses = gateway.spec.addresses
    return not addresses or (len(addresses) == 1 and addresses[0].type == "IPAddress")


def deployment_name(gateway: Gateway, traits: Traits) -> str:
    """What the Deployment and Service of a managed Gateway are called."""
    override = gateway.metadata.annotations.get(NAME_OVERRIDE)
    return override or _default_name(gateway, traits)


def service_account_name(gateway: Gateway, traits: Traits) -> str:
    """The account that a managed Gateway runs as."""
    override = gateway.metadata.annotations.get(SERVICE_ACCOUNT)
    return override or _default_name(gateway, traits)


def _default_name(gateway: Gateway, traits: Traits) -> str:
    name = gateway.metadata.name
    return f"{name}-{gateway.spec.gateway_class_name}" if traits.has_suffix else name


def bound_services(gateway: Gateway, traits: Traits, domain: str) -> Bound:
    """The Services that a Gateway asks for; a host name without a dot is one of its namespace."""
    namespace = gateway.metadata.namespace
    if is_managed(gateway):
        host = names.service_host(deployment_name(gateway, traits), namespace, domain)
        return Bound(services=(host,), service_account=service_account_name(gateway, traits))
    hosts = tuple(
        names.resolve_host(a.value, namespace, domain) for a in gateway.spec.addresses if a.type == "Hostname"
    )
    ignored = [a.value for a in gateway.spec.addresses if a.type != "Hostname"]
    fault = None
    if ignored:
        fault = Fault("UnsupportedAddress", f"only Hostname is supported, ignoring [{' '.join(ignored)}]")
    elif SERVICE_TYPE in gateway.metadata.annotations:
        fault = Fault("DeprecatedField", f"annotation {SERVICE_TYPE} is deprecated on a Gateway with addresses")
    return Bound(services=hosts, fault=fault)


@query
def assign(db: Engine, namespace: str, services: tuple[str, ...], ports: tuple[int, ...]) -> Assignment:
    """What of these ports the Services of a Gateway in this namespace reach."""
    draft = _Draft(services, ports)
    for host in services:
        alike = services_of_host(db, host)
        own = next((s for s in alike if s.namespace == namespace), None)
        if own is None:
            draft.miss(host, namespace, (s.namespace for s in alike))
        else:
            draft.add(db, host, own)
    return draft.finish()


class _Draft:
    """An Assignment while Services add to it."""

    def __init__(self, services: tuple[str, ...], ports: tuple[int, ...]) -> None:
        self.services, self.ports = services, ports
        self.internal: set[str] = set()
        self.internal_ips: set[str] = set()
        self.external: set[str] = set()
        self.pending: set[str] = set()
        self.warnings: list[str] = []
        self.is_usable = True

    def miss(self, host: str, namespace: str, elsewhere: Iterable[str]) -> None:
        self.is_usable = False
        where = ", ".join(f'"{name}"' for name in sorted(set(elsewhere)))
        found = f' in namespace "{namespace}", but it was found in namespace(s) {where}' if where else ""
        self.warnings.append(f'hostname "{host}" not found{found}')

    def add(self, db: Engine, host: str, own: Service) -> None:
        kube: KubeService | None = db.input(own.id.source) if own.is_kubernetes else None
        for number in self.ports:
            port = own.port(number)
            if port is not None and endpoints.port_endpoints(db, own.id, port.name):
                self.internal.add(f"{host}:{number}")
                self.internal_ips.update(own.addresses)
                self._publish(host, kube)
            else:
                self._refuse(db, host, own, number)

    def _publish(self, host: str, kube: KubeService | None) -> None:
        outside = _outside_addresses(kube)
        self.external.update(outside)
        if not outside and kube is not None and kube.spec.type == "LoadBalancer" and host not in self.pending:
            self.pending.add(host)
            self.warnings.append(f'address pending for hostname "{host}"')

    def _refuse(self, db: Engine, host: str, own: Service, number: int) -> None:
        known = endpoints.service_endpoints(db, own.id)
        if not known:
            self.warnings.append(f'no instances found for hostname "{host}"')
            return
        numbers = {port.name: port.number for port in own.ports}
        meant = sorted({str(numbers[e.port_name]) for e in known if e.port == number and e.port_name in numbers})
        if not meant and (_MANAGED in dict(own.labels) and own.port(number) is not None):
            return  # The endpoints of a Service that the control plane made only follow a little later.
        self.is_usable = False
        hint = (
            " (hint: the service port should be specified, not the workload port. "
            f"Did you mean one of these ports: [{' '.join(meant)}]?)"
            if meant
            else ""
        )
        self.warnings.append(f'port {number} not found for hostname "{host}"{hint}')

    def finish(self) -> Assignment:
        return Assignment(
            services=self.services,
            internal=tuple(sorted(self.internal)),
            internal_ips=tuple(sorted(self.internal_ips)),
            external=tuple(sorted(self.external)),
            pending=tuple(sorted(self.pending)),
            warnings=tuple(sorted(self.warnings)),
            is_usable=self.is_usable,
        )


def _outside_addresses(kube: KubeService | None) -> tuple[str, ...]:
    if kube is None:
        return ()
    given = (i.ip or i.hostname for i in kube.status.load_balancer.ingress)
    return (*given, *kube.spec.external_ips)


@query
def gateway_bound(db: Engine, key: Key, traits: Traits) -> Bound | None:
    """The Services of the Gateway of that key."""
    gateway: Gateway | None = db.input(key)
    return bound_services(gateway, traits, mesh.domain(db)) if gateway is not None else None
