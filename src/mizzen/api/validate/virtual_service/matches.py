"""Matches: conditions on HTTP requests, TLS connections and plain connections."""

from collections.abc import Mapping, Sequence

from mizzen.api.networking.virtual_service import (
    HTTPMatchRequest,
    L4MatchAttributes,
    StringMatch,
    TLSMatchAttributes,
)
from mizzen.api.validate.faults import Faults, at, error, quote, warning
from mizzen.api.validate.values.addresses import is_ip, port_fault, subnet_fault
from mizzen.api.validate.values.headers import matched_name_fault
from mizzen.api.validate.values.names import (
    check_gateway_names,
    check_labels,
    covers,
    is_label,
    outbound_name_fault,
    wildcard_fault,
)
from mizzen.api.validate.values.texts import check_match, check_regex


def check_http_match(match: HTTPMatchRequest, path: str) -> Faults:
    """One set of conditions on a request."""
    yield from _check_headers(match.headers, "headers", path)
    for name, value in match.query_params.items():
        yield from check_regex(value, "queryParams", f"{path}.queryParams[{name}]")
    yield from _check_headers(match.without_headers, "withoutHeaders", path)
    yield from check_regex(match.uri, "uri", f"{path}.uri")
    yield from check_match(match.scheme, "scheme", f"{path}.scheme")
    yield from check_match(match.method, "method", f"{path}.method")
    yield from check_match(match.authority, "authority", f"{path}.authority")
    yield from _check_client(match, path)
    if match.source_namespace and not is_label(match.source_namespace):
        yield error(f"{path}.sourceNamespace", f"sourceNamespace match {match.source_namespace} is invalid")


def _check_headers(headers: Mapping[str, StringMatch], where: str, path: str) -> Faults:
    for name, value in headers.items():
        here = f"{path}.{where}[{name}]"
        yield from at(here, matched_name_fault(name))
        # In `withoutHeaders` a lone `*` is no expression: it means that the header is there at all.
        if not (where == "withoutHeaders" and value.regex == "*"):
            yield from check_match(value, where, here)


def _check_client(match: HTTPMatchRequest | TLSMatchAttributes | L4MatchAttributes, path: str) -> Faults:
    if match.port:
        yield from at(f"{path}.port", port_fault(match.port))
    yield from check_labels(match.source_labels, f"{path}.sourceLabels")
    yield from check_gateway_names(match.gateways, f"{path}.gateways")


def check_tls_match(match: TLSMatchAttributes, hosts: Sequence[str], path: str, *, at_gateway: bool) -> Faults:
    """Conditions on a TLS connection; its names must be among the hosts of the VirtualService."""
    if not match.sni_hosts:
        yield error(f"{path}.sniHosts", "TLS match must have at least one SNI host")
    for index, name in enumerate(match.sni_hosts):
        yield from _check_sni(name, hosts, f"{path}.sniHosts[{index}]", at_gateway=at_gateway)
    yield from _check_subnets(match.destination_subnets, path)
    yield from _check_client(match, path)


def _check_sni(name: str, hosts: Sequence[str], path: str, *, at_gateway: bool) -> Faults:
    fault = outbound_name_fault(name) if at_gateway else wildcard_fault(name)
    if fault is not None and is_ip(name):
        advice = "goes against SNI spec and most clients do not support this"
        yield warning(path, f"using an IP address ({quote(name)}) {advice}")
    elif fault is not None:
        yield error(path, fault)
    elif not any(covers(host, name) for host in hosts):
        shown = f"[{', '.join(hosts)}]"
        message = f"SNI host {quote(name)} is not a compatible subset of any of the virtual service hosts: {shown}"
        yield error(path, message)


def check_tcp_match(match: L4MatchAttributes, path: str) -> Faults:
    """Conditions on a connection."""
    yield from _check_subnets(match.destination_subnets, path)
    yield from _check_client(match, path)


def _check_subnets(subnets: Sequence[str], path: str) -> Faults:
    for index, subnet in enumerate(subnets):
        yield from at(f"{path}.destinationSubnets[{index}]", subnet_fault(subnet))
