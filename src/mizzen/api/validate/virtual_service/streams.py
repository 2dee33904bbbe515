"""Streams: the TLS and TCP routes of a VirtualService."""

from mizzen.api.networking.virtual_service import TCPRoute, TLSRoute, VirtualServiceSpec
from mizzen.api.validate.faults import Faults, error
from mizzen.api.validate.virtual_service.destinations import check_weights
from mizzen.api.validate.virtual_service.matches import check_tcp_match, check_tls_match


def check_tls_route(route: TLSRoute, spec: VirtualServiceSpec, path: str, *, at_gateway: bool) -> Faults:
    """A rule for TLS that is passed through."""
    if not route.match:
        yield error(f"{path}.match", "TLS route must have at least one match condition")
    for index, match in enumerate(route.match):
        yield from check_tls_match(match, spec.hosts, f"{path}.match[{index}]", at_gateway=at_gateway)
    if not route.route:
        yield error(f"{path}.route", "TLS route is required")
    yield from check_weights(route.route, f"{path}.route")


def check_tcp_route(route: TCPRoute, path: str) -> Faults:
    """A rule for plain connections."""
    for index, match in enumerate(route.match):
        yield from check_tcp_match(match, f"{path}.match[{index}]")
    if not route.route:
        yield error(f"{path}.route", "TCP route is required")
    yield from check_weights(route.route, f"{path}.route")
