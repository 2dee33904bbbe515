"""VirtualService: hosts, gateways and routes, and what a delegate (one without hosts) may not have."""

from collections.abc import Iterator, Sequence

from mizzen.api.networking.virtual_service import VirtualService, VirtualServiceSpec
from mizzen.api.validate.faults import Fault, Faults, error, list_of
from mizzen.api.validate.values.addresses import is_ip
from mizzen.api.validate.values.headers import is_claim
from mizzen.api.validate.values.names import (
    check_export_to,
    check_gateway_names,
    outbound_name_fault,
    overlapping_pairs,
    wildcard_fault,
)
from mizzen.api.validate.virtual_service.http import check_http_route
from mizzen.api.validate.virtual_service.reachability import check_reachability
from mizzen.api.validate.virtual_service.streams import check_tcp_route, check_tls_route

_MESH = "mesh"


def check_virtual_service(service: VirtualService, path: str) -> Faults:
    """All rules of a VirtualService."""
    spec = service.spec
    in_mesh = not spec.gateways or _MESH in spec.gateways
    if not spec.hosts:
        yield from _check_delegate(spec, path)
    yield from check_gateway_names(spec.gateways, f"{path}.gateways")
    if in_mesh:
        yield from _check_claims(spec, path)
    yield from _check_hosts(spec, path, in_mesh=in_mesh)
    if not (spec.http or spec.tls or spec.tcp):
        yield error(path, "http, tcp or tls must be provided in virtual service")
    for index, http in enumerate(spec.http):
        yield from check_http_route(http, f"{path}.http[{index}]", in_delegate=not spec.hosts)
    for index, tls in enumerate(spec.tls):
        yield from check_tls_route(tls, spec, f"{path}.tls[{index}]", at_gateway=not in_mesh)
    for index, tcp in enumerate(spec.tcp):
        yield from check_tcp_route(tcp, f"{path}.tcp[{index}]")
    yield from check_export_to(spec.export_to, service.metadata.namespace, f"{path}.exportTo")
    yield from check_reachability(spec, path)


def _check_delegate(spec: VirtualServiceSpec, path: str) -> Faults:
    if spec.gateways:
        yield error(f"{path}.gateways", "delegate virtual service must have no gateways specified")
    for field, routes in (("tls", spec.tls), ("tcp", spec.tcp)):
        if routes:
            yield error(f"{path}.{field}", f"delegate virtual service must have no {field} route specified")


def _check_claims(spec: VirtualServiceSpec, path: str) -> Faults:
    """Claims of tokens are known to gateways only."""
    for number, route in enumerate(spec.http):
        for index, match in enumerate(route.match):
            for field, headers in (("headers", match.headers), ("withoutHeaders", match.without_headers)):
                for name in filter(is_claim, headers):
                    here = f"{path}.http[{number}].match[{index}].{field}[{name}]"
                    rule = f"JWT claim based routing (key: {name}) is only supported for gateway"
                    yield error(here, f"{rule}, found no gateways: {list_of(spec.gateways)}")


def _check_hosts(spec: VirtualServiceSpec, path: str, *, in_mesh: bool) -> Faults:
    faults = list(_check_each_host(spec, path, in_mesh=in_mesh))
    yield from faults
    if not faults:
        yield from _check_overlaps(spec.hosts, f"{path}.hosts")


def _check_each_host(spec: VirtualServiceSpec, path: str, *, in_mesh: bool) -> Iterator[Fault]:
    for index, host in enumerate(spec.hosts):
        here = f"{path}.hosts[{index}]"
        fault = outbound_name_fault(host) if spec.tls and not in_mesh else wildcard_fault(host)
        if fault is not None and not is_ip(host):
            yield error(here, fault)
        elif host == "*" and in_mesh:
            yield error(here, "wildcard host * is not allowed for virtual services bound to the mesh gateway")


def _check_overlaps(hosts: Sequence[str], path: str) -> Faults:
    for first, other in sorted(overlapping_pairs(hosts)):
        yield error(f"{path}[{other}]", f"duplicate hosts in virtual service: {hosts[first]} & {hosts[other]}")
