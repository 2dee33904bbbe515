"""Destinations: hosts, subsets, ports and weights; for HTTP, TLS and TCP alike."""

from collections.abc import Sequence

from mizzen.api.networking.destination import Destination
from mizzen.api.networking.virtual_service import HTTPRouteDestination, RouteDestination
from mizzen.api.validate.faults import Faults, at, error
from mizzen.api.validate.values.addresses import port_fault
from mizzen.api.validate.values.names import is_label, wildcard_fault


def check_destination(destination: Destination | None, path: str, missing: str = "destination is required") -> Faults:
    """One destination, which has to be there; its host may be a wildcard, but not all hosts."""
    if destination is None:
        yield error(path, missing)
        return
    host = destination.host
    yield from at(f"{path}.host", f"invalid destination host {host}" if host == "*" else wildcard_fault(host))
    if destination.subset and not is_label(destination.subset):
        yield error(f"{path}.subset", f"subset name is invalid: {destination.subset}")
    if destination.port is not None:
        yield from at(f"{path}.port.number", port_fault(destination.port.number))


def check_weights(routes: Sequence[HTTPRouteDestination | RouteDestination], path: str) -> Faults:
    """Destinations with their shares; shares need not add up to 100, but to something."""
    for index, route in enumerate(routes):
        yield from check_destination(route.destination, f"{path}[{index}].destination")
        if route.weight < 0:
            yield error(f"{path}[{index}].weight", f"weight {route.weight} < 0")
    if len(routes) > 1 and sum(route.weight for route in routes) == 0:
        yield error(path, "total destination weight = 0")
