"""The server's side: the mode that PeerAuthentications give a port, and what really listens there takes.

In: a world, a pod's address and port. Out: `Server`. The policies say what should be; the listener that the proxy holds
says what is. Where an EnvoyFilter, a Sidecar's ingress or an old configuration part the two, both are told. Of a
program without a proxy, the ports of Services and containers say whether it speaks TLS.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key
from mizzen.api.policy import PeerAuthentication
from mizzen.diagnose.trace import filter_chains, listeners, tls
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.verdict import Cause
from mizzen.diagnose.trace.wire import Hello, Wire
from mizzen.diagnose.trace.world import Workload, World
from mizzen.model import endpoints, policies, protocols, services, workloads
from mizzen.model.policies import Mode

Takes = Literal["plain text", "mutual TLS", "other TLS"]

_MESH_WORDS = ("istio-peer-exchange", "istio", "istio-http/1.1")
_ELSEWHERE = "192.0.2.1"
"""A source that is not the pod itself."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint of a Service's port."""

    pod: str
    """`NAME.NAMESPACE`, or the address where it is no pod of the mesh."""
    address: str
    port: int
    mode: Mode | Literal["no sidecar", "not captured", "gateway", "outside"]
    """By policy, or why no policy matters."""
    takes: tuple[Takes, ...] = ()
    """What gets in; empty where nobody knows."""
    policy: Cause | None = None
    """The PeerAuthentication that gives the mode; None where the default stands."""

    @property
    def kind(self) -> tuple[object, ...]:
        """What makes two endpoints the same for a client's TLS."""
        return (self.mode, self.takes, self.policy)

    @property
    def speaks_tls(self) -> bool:
        """Whether a program without a proxy is known to speak TLS and nothing else."""
        return self.takes == ("other TLS",)


def find_servers(world: World, service: services.Service, port: services.Port) -> tuple[Server, ...]:
    """The endpoints of a Service's port."""
    assert world.db is not None
    found = endpoints.port_endpoints(world.db, service.id, port.name)
    places = dict.fromkeys((e.address, e.port) for e in found)
    return tuple(find_server(world, address, number) for address, number in places)


def find_server(world: World, address: str, port: int) -> Server:
    """What is at an address and port."""
    pod = world.at(address)
    if pod is None:
        return Server(pod=address, address=address, port=port, mode="outside")
    if pod.proxy == "router":
        bound = listeners.bound(world.holdings(pod), address, port)
        takes = tuple(_by_listener(world, pod, address, port, bound))
        return Server(pod=pod.reference, address=address, port=port, mode="gateway", takes=takes)
    if pod.proxy != "sidecar" or pod.capture.past_inbound(port):
        mode: Literal["no sidecar", "not captured"] = "not captured" if pod.proxy == "sidecar" else "no sidecar"
        return Server(pod=pod.reference, address=address, port=port, mode=mode, takes=_by_program(world, pod, port))
    assert world.db is not None
    labels = workloads.freeze(pod.labels)
    deciding = policies.deciding_peer(world.db, pod.namespace, labels, port)
    return Server(
        pod=pod.reference,
        address=address,
        port=port,
        mode=policies.peer_modes(world.db, pod.namespace, labels).of(port),
        takes=tuple(_by_listener(world, pod, address, port, listeners.inbound(world.holdings(pod)))),
        policy=None if deciding is None else world.cause(_key(deciding)),
    )


def _key(policy: PeerAuthentication) -> Key:
    return Key("PeerAuthentication", policy.metadata.namespace, policy.metadata.name)


# -- what a proxy takes -----------------------------------------------------------------------------------------------


def _by_listener(
    world: World, pod: Workload, address: str, port: int, chosen: listeners.Chosen | None
) -> Iterator[Takes]:
    """What the proxy's listener has a chain for, tried with a connection of each kind."""
    held = world.holdings(pod)
    if chosen is None:
        return

    def chain(hello: Hello | None) -> tuple[bool, bool]:
        """Whether a chain is there, and whether it ends the TLS."""
        wire = Wire(source=_ELSEWHERE, address=address, port=port, hello=hello, message=None if hello else Message())
        found = filter_chains.find(chosen.listener, listeners.inspect(chosen.listener, wire)).chain
        return found is not None, found is not None and tls.server(world, pod, held, found) is not None

    if chain(None) == (True, False):
        yield "plain text"
    if chain(Hello(protocols=_MESH_WORDS)) == (True, True):
        yield "mutual TLS"
    if chain(Hello(server_name="program.example")) == (True, pod.proxy == "router"):
        yield "other TLS"


# -- what a program speaks --------------------------------------------------------------------------------------------


def _by_program(world: World, pod: Workload, port: int) -> tuple[Takes, ...]:
    """Whether anything names the port as one for TLS or for plain text; nothing where names disagree or are silent."""
    named = {protocol.is_tls for protocol in _declared(world, pod).get(port, ())}
    if True in named:
        return ("other TLS",)
    return ("plain text",) if named else ()


def _declared(world: World, pod: Workload) -> dict[int, set[protocols.Protocol]]:
    """The protocols that Services of the pod, and its containers, name for ports."""
    assert world.db is not None
    by_address = world.once("protocols that Services declare", lambda: _by_services(world))
    found: dict[int, set[protocols.Protocol]] = {}
    for address in pod.addresses:
        for number, names in by_address.get(address, {}).items():
            found.setdefault(number, set()).update(names)
    written: Pod | None = world.db.input(Key("Pod", pod.namespace, pod.name))
    for container in written.spec.containers if written is not None else ():
        for port in container.ports:
            protocol = protocols.parse_port(number=0, name=port.name, transport="TCP", app_protocol=None)
            if port.container_port and not protocol.is_auto:
                found.setdefault(port.container_port, set()).add(protocol)
    return found


def _by_services(world: World) -> dict[str, dict[int, set[protocols.Protocol]]]:
    """The protocols that Services name for the ports of each address."""
    assert world.db is not None
    found: dict[str, dict[int, set[protocols.Protocol]]] = {}
    for namespace in services.namespaces(world.db):
        for service in services.namespace_services(world.db, namespace):
            by_name = {p.name: p.protocol for p in service.ports if not p.protocol.is_auto}
            for endpoint in endpoints.service_endpoints(world.db, service.id) if by_name else ():
                if endpoint.port_name in by_name:
                    ports = found.setdefault(endpoint.address, {})
                    ports.setdefault(endpoint.port, set()).add(by_name[endpoint.port_name])
    return found
