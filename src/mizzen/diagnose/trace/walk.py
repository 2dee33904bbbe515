"""The walk: from the source, over names and capture, through one proxy after the other, to the verdict.

In: a world and a request. Out: a `Trace`. `trace` never raises for what a request may meet; it raises MizzenError only
for a source that does not exist.
"""

import msgspec

from mizzen.api.kube.services import Service
from mizzen.api.meta import Key
from mizzen.diagnose.trace import branches, certificates, connection, listeners, names, tls
from mizzen.diagnose.trace.capture import LOOPBACK, is_loopback
from mizzen.diagnose.trace.causes import find
from mizzen.diagnose.trace.hop import Hop
from mizzen.diagnose.trace.journal import Journal
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import NO_FLAG, Answer, Link, Passage, Trace
from mizzen.diagnose.trace.wire import SOMEBODY, Certificate, Hello, Wire
from mizzen.diagnose.trace.world import Workload, World
from mizzen.errors import MizzenError
from mizzen.model.names import is_ip

OUTSIDE = "outside"
GATEWAY = "gateway/"
_HOPS = 12
_NETWORK = "network"


def trace(world: World, request: Request) -> Trace:
    """What the request will meet."""
    walk = _Walk(world, request)
    answer = walk.leave(walk.start())
    journal = walk.journal
    found = find.find(world, request, answer, journal.steps)
    return Trace(
        steps=tuple(journal.steps),
        outcome=answer.outcome,
        status=answer.status,
        flag=answer.flag,
        details=answer.details,
        certain=not journal.depends_on,
        depends_on=tuple(journal.depends_on),
        link=answer.link,
        cause=found.cause,
        fix=found.fix,
        side=answer.side,
        reason=found.reason or answer.reason,
        destination=answer.destination,
        seen_by_client=journal.first_log or (answer.status, answer.flag, answer.details),
        shares=journal.shares,
        message=journal.message,
        policy=journal.policy,
        divides=journal.divides,
        visits=tuple(journal.visits),
        response=tuple(journal.response.items()),
        ways=journal.ways,
    )


class _Walk:
    """One walk."""

    def __init__(self, world: World, request: Request) -> None:
        self.world = world
        self.request = request
        self.journal = Journal()

    def leave(self, answer: Answer) -> Answer:
        """The answer, unless the source has gone before it comes."""
        patience = self.request.gives_up
        if not patience or answer.after <= patience or answer.kind != "response":
            return answer
        reason = f"the source goes after {patience:g}s, and the answer takes {answer.after:g}s"
        first = next((p.reference for s in self.journal.steps for p in self.world.pods if p.reference == s.side), "")
        self.journal.note(first, "application", "the source has gone", ("why", reason), state="fails")
        if self.journal.first_log is None:
            return Answer(kind="closed", side=first, link="application", reason=reason)
        self.journal.first_log = (0, "DC", "downstream_remote_disconnect")
        return Answer(flag="DC", details="downstream_remote_disconnect", side=first, link="application", reason=reason)

    # -- the source ---------------------------------------------------------------------------------------------------

    def start(self) -> Answer:
        """From where the request says."""
        source = self.request.source
        if source == OUTSIDE:
            return self._from_outside()
        if source.startswith(GATEWAY):
            pod = self._gateway(source.removeprefix(GATEWAY))
            return self._into_gateway(pod, self._listening(pod), self.journal)
        return self._from_pod(self.world.find(source))

    def _gateway(self, reference: str) -> Workload:
        try:
            return self.world.find(reference)
        except MizzenError:
            name, _, namespace = reference.partition(".")
            for pod in self.world.gateways():
                labels = pod.labels.values()
                if name in labels and namespace in ("", pod.namespace):
                    return pod
            raise

    def _from_pod(self, pod: Workload) -> Answer:
        resolved = names.resolve(self.world, pod, self.request.host)
        address = self.request.address or (resolved.addresses[0] if resolved.addresses else "")
        self.journal.note(
            pod.reference,
            "name",
            f"{self.request.host} is {address or 'somewhere outside'}",
            ("by", "as asked" if self.request.address else resolved.how),
            ("addresses", ", ".join(resolved.addresses) if len(resolved.addresses) > 1 else ""),
            state="ok" if resolved.exists or self.request.address else "fails",
        )
        if not address and resolved.doubt:
            self.journal.hang_on(resolved.doubt)
        if not address and not resolved.exists:
            reason = f"{self.request.host} does not exist: {resolved.how}"
            return Answer(kind="refused", side=pod.reference, link="name", reason=reason, about=("name",))
        if not address and resolved.service is not None and "headless" in resolved.how:
            reason = f"{self.request.host} has no address: the headless Service has no ready pod"
            return Answer(kind="refused", side=pod.reference, link="name", reason=reason, about=("no pods",))
        wire = self._wire(pod, address)
        if pod.proxy == "router":
            return self._past(pod, wire, "a gateway's own program is not captured")
        if pod.proxy != "sidecar":
            return self._past(pod, wire, "the pod has no sidecar")
        past = pod.capture.past_outbound(address, self.request.port, pod.addresses)
        if past:
            return self._past(pod, wire, past)
        self.journal.note(pod.reference, "capture", "captured by the sidecar", ("mode", pod.capture.mode))
        held = self.world.holdings(pod)
        chosen = listeners.outbound(held, address, self.request.port)
        if chosen is None:
            reason = f"{pod.reference} has no listener for what leaves it"
            return Answer(kind="refused", side=pod.reference, link="listener", reason=reason)
        return connection.serve(self._hop(pod, wire, self.journal), chosen)

    def _past(self, pod: Workload, wire: Wire, why: str) -> Answer:
        self.journal.note(pod.reference, "capture", "not captured", ("why", why))
        if wire.address in pod.addresses or is_loopback(wire.address):
            return self._within(pod, wire, self.journal)
        return self._arrive(wire, self.journal)

    def _wire(self, pod: Workload | None, address: str) -> Wire:
        hello = None
        if self.request.is_tls:
            protocols = ("h2", "http/1.1") if self.request.http2 else ("http/1.1",) if self.request.is_http else ()
            own = certificates.parse(self.request.certificate, self.world.now)
            if own is None and self.request.principal:
                own = Certificate(identity=self.request.principal, root="")
            hello = Hello(server_name=self._server_name(), protocols=protocols, certificate=own)
        return Wire(
            source=pod.addresses[0] if pod is not None and pod.addresses else self.request.client or SOMEBODY,
            address=address,
            port=self.request.port,
            hello=hello,
            message=self.request.message() if self.request.is_http else None,
        )

    def _server_name(self) -> str:
        return "" if is_ip(self.request.host) else self.request.host

    def _hop(self, pod: Workload, wire: Wire, journal: Journal, *, is_inbound: bool = False) -> Hop:
        def arrive(onward: Wire, notes: Journal) -> Answer:
            is_own = onward.address in pod.addresses
            if is_inbound and (is_own or onward.address in LOOPBACK):
                return self._program(pod, onward, notes)
            if onward.address in LOOPBACK:
                return self._within(pod, onward, notes)
            return self._arrive(self._posing(pod, onward), notes, by_own_proxy=is_own)

        return Hop(
            world=self.world,
            request=self.request,
            pod=pod,
            held=self.world.holdings(pod),
            journal=journal,
            wire=wire,
            arrive=arrive,
            is_inbound=is_inbound,
        )

    def _posing(self, pod: Workload, wire: Wire) -> Wire:
        """The certificate that the request is said to come with, in place of the source's own."""
        hello = wire.hello
        stated = self.request.principal
        if not stated or hello is None or hello.certificate is None:
            return wire
        if hello.certificate.identity != tls.identity(self.world, pod) or wire.depth > 1:
            return wire
        certificate = msgspec.structs.replace(hello.certificate, identity=stated)
        return msgspec.structs.replace(wire, hello=msgspec.structs.replace(hello, certificate=certificate))

    # -- gateways -----------------------------------------------------------------------------------------------------

    def _from_outside(self) -> Answer:
        """Through the gateways that publish the port; the one that knows the host, if any does."""
        doors = self._doors()
        if not doors:
            reason = f"no gateway listens for port {self.request.port} from outside"
            self.journal.note(_NETWORK, "listener", reason, state="fails")
            return Answer(kind="refused", side=_NETWORK, link="listener", reason=reason, about=("no gateway",))
        best: branches.Way | None = None
        for pod, port in doors:
            journal = self.journal.branch()
            answer = self._into_gateway(pod, port, journal)
            way = branches.Way(label=pod.reference, weight=1, answer=answer, journal=journal)
            if best is None or (best.answer.flag == "NR" and answer.flag != "NR"):
                best = way
        assert best is not None
        self.journal.adopt(best.journal)
        return best.answer

    def _doors(self) -> list[tuple[Workload, int]]:
        """Gateways with the port that they listen on for the request."""
        wanted = self.request.address or self.request.host
        found = []
        for pod in self.world.gateways():
            if wanted in pod.addresses:
                return [(pod, self._listening(pod))]
            target = self._listening(pod)
            if listeners.bound(self.world.holdings(pod), "", target) is not None:
                found.append((pod, target))
        own = names.resolve(self.world, None, self.request.host).service
        if own is not None:
            return [(pod, port) for pod, port in found if self._is_behind(pod, own)] or found
        return found

    def _is_behind(self, pod: Workload, key: Key) -> bool:
        service: Service | None = self.world.object(key)
        return service is not None and service.spec.selector.items() <= pod.labels.items()

    def _listening(self, pod: Workload) -> int:
        """The port of the gateway's pod behind the request's port of its Service."""
        for key, service in names.services(self.world):
            selector = service.spec.selector
            if key.namespace != pod.namespace or not selector or not selector.items() <= pod.labels.items():
                continue
            targets = names.behind(self.world, key, service, self.request.port) or ()
            for target in targets:
                if target.address in pod.addresses:
                    return target.port
        return self.request.port

    def _into_gateway(self, pod: Workload, port: int, journal: Journal) -> Answer:
        address = pod.addresses[0] if pod.addresses else ""
        wire = msgspec.structs.replace(self._wire(None, address), port=port)
        return self._arrive(wire, journal)

    # -- the network --------------------------------------------------------------------------------------------------

    def _arrive(self, wire: Wire, journal: Journal, *, by_own_proxy: bool = False) -> Answer:
        """What meets a connection at its destination."""
        if wire.depth > _HOPS:
            reason = "the request goes round in a circle"
            journal.note(_NETWORK, "connection", reason, state="fails")
            return Answer(kind="timeout", side=_NETWORK, link="connection", reason=reason, connected=False)
        pod = self.world.at(wire.address)
        if pod is None:
            return self._elsewhere(wire, journal)
        if pod.proxy == "router":
            return self._at_gateway(pod, wire, journal)
        if pod.proxy != "sidecar":
            journal.note(pod.reference, "capture", f"{wire.address}:{wire.port} has no sidecar")
            return self._program(pod, wire, journal)
        past = pod.capture.past_inbound(wire.port, by_own_proxy=by_own_proxy)
        held = self.world.holdings(pod)
        chosen = listeners.bound(held, wire.address, wire.port) if past else listeners.inbound(held)
        if chosen is None:
            journal.note(pod.reference, "capture", "goes past the sidecar", ("why", past))
            return self._program(pod, wire, journal)
        return connection.serve(self._hop(pod, wire, journal, is_inbound=True), chosen)

    def _within(self, pod: Workload, wire: Wire, journal: Journal) -> Answer:
        """What stays on the pod's loopback: no rule leads it to the inbound listener, only to what is bound there."""
        if pod.proxy == "router":
            return self._at_gateway(pod, wire, journal)
        chosen = listeners.bound(self.world.holdings(pod), wire.address, wire.port) if pod.proxy == "sidecar" else None
        if chosen is None:
            return self._program(pod, wire, journal)
        return connection.serve(self._hop(pod, wire, journal, is_inbound=True), chosen)

    def _at_gateway(self, pod: Workload, wire: Wire, journal: Journal) -> Answer:
        chosen = listeners.bound(self.world.holdings(pod), wire.address, wire.port)
        if chosen is not None:
            return connection.serve(self._hop(pod, wire, journal), chosen)
        reason = f"the gateway {pod.reference} does not listen on port {wire.port}"
        journal.note(pod.reference, "listener", reason, state="fails")
        return self._refused(pod.reference, reason, "listener", ("gateway port", pod.reference))

    def _refused(self, side: str, reason: str, link: Link, about: tuple[str, ...]) -> Answer:
        return Answer(
            kind="refused",
            side=_NETWORK,
            link=link,
            reason=reason,
            transport="delayed_connect_error:_Connection_refused",
            about=about,
            connected=False,
            destination=side,
        )

    def _elsewhere(self, wire: Wire, journal: Journal) -> Answer:
        """A Service's address, for which kube-proxy chooses a pod, or something outside."""
        known = names.service_at(self.world, wire.address) if wire.address else None
        if known is not None:
            return self._by_kube_proxy(known, wire, journal)
        if wire.address and not is_ip(wire.address):
            own = names.resolve(self.world, None, wire.address)
            if own.addresses:
                return self._arrive(msgspec.structs.replace(wire, address=own.addresses[0]), journal)
        where = f"{wire.address or self.request.host}:{wire.port}"
        journal.note(_NETWORK, "connection", f"{where} is outside the mesh", state="unsure")
        journal.hang_on(f"what {where} answers")
        journal.message = wire.message
        return self._delivered(where, where)

    def _by_kube_proxy(self, known: tuple[Key, Service], wire: Wire, journal: Journal) -> Answer:
        key, service = known
        targets = names.behind(self.world, key, service, wire.port)
        if not targets:
            lacks = f"has no port {wire.port}" if targets is None else "has no ready endpoint"
            reason = f"Service {key.namespace}/{key.name} {lacks}"
            journal.note(_NETWORK, "endpoint", reason, state="fails")
            about = ("service", key.namespace, key.name, str(wire.port))
            journal.hang_on(f"how the network answers for {wire.address}:{wire.port}, where nobody is")
            refused = self._refused(_NETWORK, reason, "endpoint", about)
            return msgspec.structs.replace(refused, transport="delayed_connect_error:_No_route_to_host")
        listed = ", ".join(f"{target.address}:{target.port}" for target in targets[:6])
        journal.note(_NETWORK, "endpoint", f"kube-proxy chooses among {listed}")
        ways = []
        for target in targets[:6]:
            notes = journal.branch()
            onward = msgspec.structs.replace(wire, address=target.address, port=target.port, depth=wire.depth + 1)
            answer = self._arrive(onward, notes)
            label = f"{target.address}:{target.port}"
            ways.append(branches.Way(label=label, weight=1, answer=answer, journal=notes))
        return branches.settle(journal, "which endpoint kube-proxy chooses", ways)

    # -- the program --------------------------------------------------------------------------------------------------

    def _program(self, pod: Workload, wire: Wire, journal: Journal) -> Answer:
        """The end: a program in the pod."""
        where = f"{pod.reference}:{wire.port}"
        doubt = f"whether the program of {pod.reference} listens on port {wire.port}"
        known = {*pod.ports, *(pod.probed if pod.ready else ())}
        if pod.ports and wire.port not in known:
            declared = ", ".join(map(str, sorted(set(pod.ports))))
            reason = f"{pod.reference} declares ports {declared}, and {wire.port} is none of them"
            journal.note(pod.reference, "application", f"{where} most likely does not listen", ("why", reason))
            journal.hang_on(doubt)
            return self._refused(pod.reference, reason, "application", ("port", pod.reference, str(wire.port)))
        if wire.port not in known:
            journal.hang_on(doubt)
        if wire.hello is not None and wire.hello.checks is not None:
            refused = self._tls_to_program(pod, wire, journal)
            if refused is not None:
                journal.hang_on(f"what the program of {pod.reference} does with TLS that it does not speak")
                return refused
        journal.message = wire.message
        journal.passages.append(Passage(side=pod.reference))
        journal.note(pod.reference, "application", f"the program at {where} answers")
        return self._delivered(pod.reference, pod.reference)

    def _tls_to_program(self, pod: Workload, wire: Wire, journal: Journal) -> Answer | None:
        """TLS that a proxy speaks to a program without a proxy of its own."""
        hello = wire.hello
        roots = hello.checks.roots if hello is not None and hello.checks is not None else None
        if roots is not None and roots.kind == "mesh":
            reason = f"the client speaks the mesh's mutual TLS, and {pod.reference} has no sidecar"
            journal.note(pod.reference, "tls", "mutual TLS to a pod without a sidecar", state="fails")
            return Answer(
                kind="tls",
                side=_NETWORK,
                link="tls",
                reason=reason,
                transport=tls.WRONG_VERSION,
                about=("tls", pod.reference, str(wire.port)),
                connected=False,
            )
        journal.hang_on(f"whether the program of {pod.reference} speaks TLS on port {wire.port}, and its certificate")
        return None

    def _delivered(self, side: str, destination: str) -> Answer:
        if self.request.is_http and not self.request.answers:
            reason = f"the program at {side} closes the connection without an answer"
            return Answer(kind="closed", side=side, link="application", reason=reason, destination=destination)
        return Answer(
            outcome="delivered",
            status=self.request.answers if self.request.is_http else 0,
            flag=NO_FLAG,
            details="via_upstream" if self.request.is_http else "",
            side=side,
            destination=destination,
            after=self.request.takes,
        )
