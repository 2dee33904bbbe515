"""Why no route, no listener or no chain takes a request.

In: a proxy and what it was asked. Out: the Gateway or VirtualService at fault: hosts that do not meet, a VirtualService
bound to another gateway or exported elsewhere, a server that is not there, match rules that do not fit.
"""

from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway
from mizzen.diagnose.trace import virtual_hosts
from mizzen.diagnose.trace.causes.found import Case, Found, selects
from mizzen.diagnose.trace.causes.hosts import bound_virtual_services, full_name, unknown_host
from mizzen.diagnose.trace.world import Workload
from mizzen.model import mesh, objects, services
from mizzen.model import names as forms
from mizzen.model.virtual_services import MESH_GATEWAY, VirtualServiceRef


def all_gateways(case: Case) -> list[tuple[Key, Gateway]]:
    """All Gateways that users wrote."""
    return [(key, case.db.input(key)) for key in objects.of_kind(case.db, "Gateway")]


def no_route(case: Case) -> Found:
    """404 NR: no virtual host, or none of its routes."""
    pod = case.pod(case.answer.side)
    authority = virtual_hosts.strip_port(case.answer.about[2]) if len(case.answer.about) > 2 else ""
    if "match" in case.answer.about:
        return _no_match(case, authority)
    if pod is None:
        return Found(reason=case.answer.reason)
    return _unserved(case, pod, authority) if pod.proxy == "router" else unknown_host(case)


def _no_match(case: Case, authority: str) -> Found:
    host = full_name(case, case.first, authority)
    refs = bound_virtual_services(case, host) or bound_virtual_services(case, authority)
    passed = next((s.passed_over for s in reversed(case.steps) if s.link == "route" and s.passed_over), ())
    reason = f"none of the routes of {authority} takes {case.request.path!r}"
    if passed:
        reason += f": {passed[-1]}"
    fix = "add a route that takes it; one without match takes everything"
    maker = case.answer.cause or (case.world.cause(refs[0].key) if refs else None)
    return Found(cause=maker, reason=reason, fix=fix)


# -- gateways --------------------------------------------------------------------------------------------------------


def _served(case: Case, pod: Workload) -> list[tuple[Key, Gateway]]:
    return [(key, gateway) for key, gateway in all_gateways(case) if selects(gateway.spec.selector, pod.labels)]


def _unserved(case: Case, pod: Workload, host: str) -> Found:
    """A gateway that has no virtual host for the host."""
    served = _served(case, pod)
    open_for = [key for key, gateway in served if _takes_host(gateway, host, case.request.port)]
    bound = {f"{key.namespace}/{key.name}" for key, _ in served}
    here = {f"{key.namespace}/{key.name}" for key in open_for}
    refs = [ref for ref in bound_virtual_services(case, host) if _is_meant(ref, host, bound - here)]
    if not refs:
        reason = f"no VirtualService speaks for {host}"
        fix = f"create a VirtualService with host {host} and the gateway"
        return Found(cause=case.world.cause(open_for[0]) if open_for else None, reason=reason, fix=fix)
    ref = refs[0]
    where = case.world.cause(ref.key)
    if not bound & set(ref.gateways):
        return _unbound(case, ref, open_for)
    if not any(f"{key.namespace}/{key.name}" in ref.gateways for key in open_for):
        named = next(key for key, _ in served if f"{key.namespace}/{key.name}" in ref.gateways)
        listed = ", ".join(_hosts(case, named))
        reason = f"{case.world.cause(named)} takes {listed}, and {host} is none of them"
        return case.blame(named, reason, f"add {host} to the hosts of its server")
    narrow = next((key for key in open_for if f"{key.namespace}/{key.name}" in ref.gateways), None)
    if narrow is not None and not _admits(case.db.input(narrow), host, ref.namespace):
        reason = (
            f"{case.world.cause(narrow)} takes {host} from other namespaces only, and {where} is in {ref.namespace}"
        )
        return case.blame(narrow, reason, f"take the namespace before the host away, or set it to {ref.namespace}")
    default = tuple(mesh.mesh_config(case.db).default_virtual_service_export_to)
    if not services.audience(ref.export_to, default, ref.namespace).includes(pod.namespace):
        reason = f"{where} is not exported to {pod.namespace}, where the gateway runs"
        return case.blame(ref.key, reason, f"add {pod.namespace} to its exportTo")
    return case.blame(ref.key, f"{where} gives the gateway no route for {host}", "look at its hosts and matches")


def _is_meant(ref: VirtualServiceRef, host: str, elsewhere: set[str]) -> bool:
    """Whether a VirtualService speaks for the host, rather than for all hosts of another port."""
    by_name = any(h != "*" and forms.matches(h, host) for h in ref.hosts)
    return by_name or not elsewhere & set(ref.gateways)


def _unbound(case: Case, ref: VirtualServiceRef, open_for: list[Key]) -> Found:
    where = case.world.cause(ref.key)
    wanted = f"{open_for[0].namespace}/{open_for[0].name}" if open_for else "the gateway"
    listed = ", ".join(ref.gateways)
    what = "the mesh only, as it names no gateway" if ref.gateways == (MESH_GATEWAY,) else listed
    return case.blame(ref.key, f"{where} is bound to {what}, not to {wanted}", f"add {wanted} to spec.gateways")


def _takes_host(gateway: Gateway, host: str, port: int = 0) -> bool:
    """Whether a server has the host, on that port if one is given."""
    servers = [s for s in gateway.spec.servers if not port or (s.port is not None and s.port.number == port)]
    return any(forms.matches(h.rpartition("/")[2], host) for server in servers for h in server.hosts)


def _admits(gateway: Gateway, host: str, namespace: str) -> bool:
    """Whether a server of the Gateway takes the host from VirtualServices of that namespace."""
    for written in (h for server in gateway.spec.servers for h in server.hosts):
        space, _, name = written.rpartition("/")
        wanted = gateway.metadata.namespace if space == "." else space
        if forms.matches(name, host) and wanted in ("", "*", namespace):
            return True
    return False


def _hosts(case: Case, key: Key) -> list[str]:
    gateway: Gateway = case.db.input(key)
    return [h for server in gateway.spec.servers for h in server.hosts]


def serving(case: Case, pod: Workload) -> Key | None:
    """The Gateway of a proxy that serves the request's host and port, as far as one does."""
    served = [(key, gateway) for key, gateway in _served(case, pod) if case.request.port in _ports(gateway)]
    fitting = [key for key, gateway in served if _takes_host(gateway, case.request.host.lower())]
    return next(iter([*fitting, *(key for key, _ in served)]), None)


def no_listener(case: Case) -> Found:
    """No gateway listens for the port."""
    port = case.request.port
    written = [(key, gateway) for key, gateway in all_gateways(case) if port in _ports(gateway)]
    for key, gateway in written:
        if not any(selects(gateway.spec.selector, pod.labels) for pod in case.world.gateways()):
            wanted = ", ".join(f"{n}={v}" for n, v in sorted(gateway.spec.selector.items()))
            reason = f"{case.world.cause(key)} selects pods with {wanted}, and no gateway has these labels"
            return case.blame(key, reason, "correct the selector of the Gateway")
    if written:
        key = written[0][0]
        return case.blame(key, f"{case.world.cause(key)} has port {port}, and no Service leads there", _SERVICE)
    host = case.request.host.lower()
    fitting = [entry for entry in all_gateways(case) if _takes_host(entry[1], host)]
    any_gateway = max(fitting, key=lambda entry: _closeness(entry[1], host), default=None)
    fix = f"add a server with port {port} to a Gateway"
    if any_gateway is None:
        return Found(reason=case.answer.reason, fix=fix)
    listed = ", ".join(str(p) for p in sorted(_ports(any_gateway[1])))
    reason = f"no Gateway has a server on port {port}; {case.world.cause(any_gateway[0])} has {listed}"
    return case.blame(any_gateway[0], reason, fix)


def _closeness(gateway: Gateway, host: str) -> tuple[bool, int]:
    """How closely a Gateway's hosts name the host."""
    written = [h.rpartition("/")[2] for server in gateway.spec.servers for h in server.hosts]
    return max((forms.specificity(h) for h in written if forms.matches(h, host)), default=(False, 0))


def _meant_for(case: Case, served: list[tuple[Key, Gateway]], sni: str) -> Found | None:
    """By the VirtualService that speaks for a server name: its Gateway without the name, or itself without a match."""
    by_name = {f"{key.namespace}/{key.name}": key for key, _ in served}
    for ref in bound_virtual_services(case, sni):
        bound = [by_name[name] for name in ref.gateways if name in by_name]
        if not bound or sni not in ref.hosts:
            continue
        takes = [key for key in bound if _takes_host(case.db.input(key), sni)]
        where = case.world.cause(ref.key)
        if takes:
            reason = f"{case.world.cause(takes[0])} serves {sni}, and no route of {where} takes it"
            return case.blame(ref.key, reason, "correct the sniHosts that it matches")
        listed = ", ".join(_hosts(case, bound[0]))
        reason = f"{case.world.cause(bound[0])} serves {listed}, and {where} leads {sni} through it"
        return case.blame(bound[0], reason, f"add {sni} to the hosts of a server")
    return None


_SERVICE = "correct the ports of the gateway's Service"


def _ports(gateway: Gateway) -> set[int]:
    return {server.port.number for server in gateway.spec.servers if server.port is not None}


def no_chain(case: Case) -> Found:
    """A listener without a chain for the connection: at a gateway, a server name that no server has."""
    pod = case.pod(case.answer.side) or case.pod(case.steps[-1].side if case.steps else "")
    sni = case.answer.about[1] if len(case.answer.about) > 1 else ""
    served = _served(case, pod) if pod is not None and pod.proxy == "router" else []
    if not served:
        return Found(reason=case.answer.reason)
    there = [entry for entry in served if case.request.port in _ports(entry[1])]
    named = there[0] if there else served[0]
    meant = _meant_for(case, served, sni) if case.request.is_tls and sni else None
    if meant is not None:
        return meant
    listed = ", ".join(_hosts(case, named[0]))
    if not case.request.is_tls:
        reason = f"{case.world.cause(named[0])} expects TLS on this port, and the client speaks plain text"
        return case.blame(named[0], reason, "call with https, or add a server for HTTP")
    if len(there) > 1:
        listed = ", ".join(sorted({host for key, _ in there for host in _hosts(case, key)}))
        reason = f"the Gateways serve {listed}, and the client asks for {sni or 'no name'}"
        return Found(reason=reason, fix=f"add {sni or 'the name'} to the hosts of a server")
    reason = f"{case.world.cause(named[0])} serves {listed}, and the client asks for {sni or 'no name'}"
    return case.blame(named[0], reason, f"add {sni or 'the name'} to the hosts of a server")
