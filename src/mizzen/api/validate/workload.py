"""Workloads outside Kubernetes: WorkloadEntry, the endpoints of a ServiceEntry, WorkloadGroup and its probe."""

import re
from collections.abc import Collection

from mizzen.api.networking.workload_entry import WorkloadEntry, WorkloadEntrySpec
from mizzen.api.networking.workload_group import HTTPHealthCheckConfig, ReadinessProbe, WorkloadGroup
from mizzen.api.validate.faults import Faults, at, error, quote, warning
from mizzen.api.validate.values.addresses import UNIX, is_ip, port_fault, unix_fault
from mizzen.api.validate.values.names import check_labels, fqdn_fault, port_name_fault

_PROBE_HEADER = re.compile(r"[-A-Za-z0-9]+")
_UNKNOWN_METHOD = "unknown health check method"


def check_workload_entry(entry: WorkloadEntry, path: str) -> Faults:
    """All rules of a WorkloadEntry."""
    yield from check_endpoint(entry.spec, path)


def check_endpoint(entry: WorkloadEntrySpec, path: str, ports: Collection[str] | None = None) -> Faults:
    """One workload; `ports` are the names of the ports of the ServiceEntry it is an endpoint of by IP address."""
    yield from _check_address(entry, f"{path}.address", by_name=ports is None)
    yield from check_endpoint_ports(entry, path, ports)
    yield from check_labels(entry.labels, f"{path}.labels")
    if entry.address.startswith(UNIX) and ports is not None and len(ports) != 1:
        yield error(f"{path}.address", "exactly 1 service port required for unix endpoints")


def _check_address(entry: WorkloadEntrySpec, path: str, *, by_name: bool) -> Faults:
    address = entry.address
    if not address:
        if entry.network:
            yield warning(path, f"address is unset with network {quote(entry.network)}")
        else:
            yield error(path, "address is required")
    elif address.startswith(UNIX):
        yield from at(path, unix_fault(address.removeprefix(UNIX)))
        if entry.ports:
            yield error(path, f"unix endpoint {address} must not include ports")
    elif by_name:
        yield from at(path, endpoint_name_fault(address))
    elif not is_ip(address):
        yield error(path, f"endpoint address {quote(address)} is not a valid IP address")


def endpoint_name_fault(address: str) -> str | None:
    """What is wrong with an address that may be a name."""
    if is_ip(address) or fqdn_fault(address) is None:
        return None
    return f"endpoint address {quote(address)} is not a valid FQDN or an IP address"


def check_endpoint_ports(entry: WorkloadEntrySpec, path: str, ports: Collection[str] | None) -> Faults:
    """The ports of an endpoint, whose names must be among those of the service, if there is one."""
    for name, number in entry.ports.items():
        here = f"{path}.ports[{name}]"
        if ports is not None and name not in ports:
            yield error(here, f"endpoint port {number} is not defined by the service entry")
        yield from at(here, port_name_fault(name))
        yield from at(here, port_fault(number))


def check_workload_group(group: WorkloadGroup, path: str) -> Faults:
    """All rules of a WorkloadGroup; what its template lacks is filled in when a workload registers."""
    spec = group.spec
    if spec.template is None:
        yield error(f"{path}.template", "template is required")
    if spec.metadata is not None:
        for fault in check_labels(spec.metadata.labels, f"{path}.metadata.labels"):
            yield error(fault.path, f"invalid labels: {fault.message}")
    if spec.probe is not None:
        yield from check_probe(spec.probe, f"{path}.probe")


def check_probe(probe: ReadinessProbe, path: str) -> Faults:
    """How health is probed, which has to be one way."""
    times = (
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    )
    for field, number in times:
        if number < 0:
            yield error(f"{path}.{field}", f"{field} must be non-negative")
    if probe.http_get is not None:
        yield from _check_http_get(probe.http_get, f"{path}.httpGet")
    elif probe.tcp_socket is not None:
        yield from at(f"{path}.tcpSocket.port", port_fault(probe.tcp_socket.port))
    elif probe.exec is not None:
        if not probe.exec.command:
            yield error(f"{path}.exec.command", "exec.command is required")
    elif probe.grpc is not None:
        yield error(f"{path}.grpc", f"{_UNKNOWN_METHOD} *v1alpha3.ReadinessProbe_Grpc")
    else:
        yield error(path, f"{_UNKNOWN_METHOD} <nil>")


def _check_http_get(probe: HTTPHealthCheckConfig, path: str) -> Faults:
    yield from at(f"{path}.port", port_fault(probe.port))
    if probe.scheme not in ("", "HTTP", "HTTPS"):
        yield error(f"{path}.scheme", 'httpGet.scheme must be one of "HTTPS", "HTTP"')
    for index, header in enumerate(probe.http_headers):
        if not _PROBE_HEADER.fullmatch(header.name):
            message = f"header name {header.name} is not a valid header name"
            yield error(f"{path}.httpHeaders[{index}].name", message)
