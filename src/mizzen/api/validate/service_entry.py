"""ServiceEntry: hosts, addresses, ports and endpoints, by how the endpoints are found."""

from mizzen.api.message import names
from mizzen.api.meta import ObjectMeta
from mizzen.api.networking.service_entry import ServiceEntry, ServiceEntrySpec
from mizzen.api.validate.faults import Faults, at, error, quote, warning
from mizzen.api.validate.values.addresses import port_fault, subnet_fault
from mizzen.api.validate.values.names import (
    HTTP_PROTOCOLS,
    TLS_PROTOCOLS,
    check_export_to,
    check_labels,
    fqdn_fault,
    partial_wildcard_fault,
    port_name_fault,
    protocol_fault,
    protocol_of,
    wildcard_fault,
)
from mizzen.api.validate.values.selectors import check_workload_selector
from mizzen.api.validate.workload import check_endpoint, check_endpoint_ports, endpoint_name_fault

_AUTO_ALLOCATION = "networking.istio.io/enable-autoallocate-ip"
_WAYPOINT = "istio.io/use-waypoint"
_TCP_LIKE = names("tcp https tls mongo redis mysql")
_DYNAMIC = names("http tls grpc http2")
_NO_ADDRESSES = "addresses are required for ports serving TCP (or unset) protocol when IP Autoallocation is not enabled"


def check_service_entry(entry: ServiceEntry, path: str) -> Faults:
    """All rules of a ServiceEntry."""
    spec = entry.spec
    yield from check_workload_selector(spec.workload_selector, f"{path}.workloadSelector", "service entry")
    if spec.workload_selector is not None and spec.endpoints:
        yield error(path, "only one of WorkloadSelector or Endpoints is allowed in Service Entry")
    yield from _check_hosts(spec, f"{path}.hosts")
    for index, address in enumerate(spec.addresses):
        yield from at(f"{path}.addresses[{index}]", subnet_fault(address))
    if any("/" in address for address in spec.addresses) and spec.resolution not in ("NONE", "STATIC"):
        message = "CIDR addresses are allowed only for NONE/STATIC resolution types"
        yield error(f"{path}.addresses", message)
    yield from _check_ports(entry, f"{path}.ports")
    yield from _check_resolution(entry, path)
    if len(spec.hosts) > 1 and spec.resolution != "NONE":
        told_apart = HTTP_PROTOCOLS | TLS_PROTOCOLS
        if any(protocol_of(port.protocol) not in told_apart for port in spec.ports):
            yield error(path, "multiple hosts provided with non-HTTP, non-TLS ports")
    yield from check_export_to(spec.export_to, entry.metadata.namespace, f"{path}.exportTo", service_entry=True)


def _check_hosts(spec: ServiceEntrySpec, path: str) -> Faults:
    if not spec.hosts:
        yield error(path, "service entry must have at least one host")
    for index, host in enumerate(spec.hosts):
        here = f"{path}[{index}]"
        yield from at(here, f"invalid host {host}" if host == "*" else wildcard_fault(host))
        partial = partial_wildcard_fault(host)
        if partial is not None and spec.resolution != "DYNAMIC_DNS":
            yield warning(here, partial)


def _check_ports(entry: ServiceEntry, path: str) -> Faults:
    needs_address = not entry.spec.addresses and not _gets_address(entry.spec, entry.metadata)
    known: set[str] = set()
    numbers: set[int] = set()
    for index, port in enumerate(entry.spec.ports):
        here = f"{path}[{index}]"
        if port.name in known:
            yield error(f"{here}.name", f"service entry port name {quote(port.name)} already defined")
        if port.number in numbers:
            yield error(f"{here}.number", f"service entry port {port.number} already defined")
        known.add(port.name)
        numbers.add(port.number)
        if port.target_port:
            yield from at(f"{here}.targetPort", port_fault(port.target_port))
        if needs_address and port.protocol in ("", "TCP"):
            yield warning(here, _NO_ADDRESSES)
        yield from at(f"{here}.name", port_name_fault(port.name))
        yield from at(f"{here}.protocol", protocol_fault(port.protocol))
        yield from at(f"{here}.number", port_fault(port.number))


def _gets_address(spec: ServiceEntrySpec, metadata: ObjectMeta) -> bool:
    """Whether the control plane gives the hosts an address of their own; it cannot where calls go where they please."""
    return spec.resolution != "NONE" and metadata.labels.get(_AUTO_ALLOCATION, "").lower() != "false"


def _check_resolution(entry: ServiceEntry, path: str) -> Faults:
    spec = entry.spec
    if spec.resolution == "NONE":
        if spec.endpoints:
            yield error(f"{path}.endpoints", "no endpoints should be provided for resolution type none")
        if spec.workload_selector is not None:
            message = "workloadSelector should not be set when resolution mode is NONE"
            yield warning(f"{path}.workloadSelector", message)
    elif spec.resolution == "STATIC":
        ports = {port.name for port in spec.ports}
        for index, endpoint in enumerate(spec.endpoints):
            yield from check_endpoint(endpoint, f"{path}.endpoints[{index}]", ports)
    elif spec.resolution == "DYNAMIC_DNS":
        yield from _check_dynamic(entry, path)
    else:
        yield from _check_dns(spec, path)


def _check_dns(spec: ServiceEntrySpec, path: str) -> Faults:
    if not spec.endpoints:
        reasons = ((index, fqdn_fault(host)) for index, host in enumerate(spec.hosts))
        for index, reason in [found for found in reasons if found[1]][:1]:
            rule = "hosts must be FQDN or contain only prefix wildcards if no endpoints are provided"
            yield error(f"{path}.hosts[{index}]", f"{rule} for resolution mode {spec.resolution}, {reason}")
    if spec.resolution == "DNS_ROUND_ROBIN" and len(spec.endpoints) > 1:
        message = "there must only be 0 or 1 endpoint for resolution mode DNS_ROUND_ROBIN"
        yield error(f"{path}.endpoints", message)
    ports = {port.name for port in spec.ports}
    for index, endpoint in enumerate(spec.endpoints):
        here = f"{path}.endpoints[{index}]"
        yield from at(f"{here}.address", endpoint_name_fault(endpoint.address))
        yield from check_labels(endpoint.labels, f"{here}.labels")
        yield from check_endpoint_ports(endpoint, here, ports)
    if spec.addresses and len(spec.hosts) > 1 and any(protocol_of(port.protocol) in _TCP_LIKE for port in spec.ports):
        message = "service entry can not have more than one host specified simultaneously with address and tcp port"
        yield warning(path, message)


def _check_dynamic(entry: ServiceEntry, path: str) -> Faults:
    """Hosts that are resolved as they are called, so that only a protocol that names the host will do."""
    spec = entry.spec
    for index, host in enumerate(spec.hosts):
        if not host.startswith("*"):
            message = "host must be wildcarded for resolution mode DYNAMIC_DNS"
            yield error(f"{path}.hosts[{index}]", message)
    for field, values in (("addresses", spec.addresses), ("endpoints", spec.endpoints)):
        if values:
            reason = "destinations are resolved from the host that is called"
            yield error(f"{path}.{field}", f"{field} cannot be set for resolution type DYNAMIC_DNS. {reason}")
    for index, port in enumerate(spec.ports):
        if protocol_of(port.protocol) not in _DYNAMIC:
            message = "only HTTP, TLS, GRPC, and HTTP2 protocols are supported for resolution type DYNAMIC_DNS"
            yield error(f"{path}.ports[{index}].protocol", message)
    if spec.location == "MESH_INTERNAL" and _WAYPOINT in entry.metadata.labels:
        what = "location MESH_INTERNAL with resolution type DYNAMIC_DNS"
        yield error(f"{path}.location", f"{what} is not supported when using waypoints")
