"""MeshNetworks: where the endpoints of each network are, and through which gateways others reach them."""

from mizzen.api.mesh.networks import IstioNetworkGateway, MeshNetworks, Network, NetworkEndpoints
from mizzen.api.validate.faults import Faults, at, error
from mizzen.api.validate.values.addresses import is_ip, port_fault, subnet_fault
from mizzen.api.validate.values.names import fqdn_fault, is_label


def check_mesh_networks(networks: MeshNetworks) -> Faults:
    """All rules of the networks."""
    for name, network in networks.networks.items():
        for fault in _check_network(network, f"networks[{name}]"):
            yield error(fault.path, f"invalid network {name}: {fault.message}")


def _check_network(network: Network, path: str) -> Faults:
    for index, endpoints in enumerate(network.endpoints):
        yield from at(f"{path}.endpoints[{index}]", _endpoints_fault(endpoints))
    for index, gateway in enumerate(network.gateways):
        yield from _check_gateway(gateway, f"{path}.gateways[{index}]")


def _endpoints_fault(endpoints: NetworkEndpoints) -> str | None:
    if endpoints.from_cidr is not None:
        return subnet_fault(endpoints.from_cidr)
    if endpoints.from_registry is not None and not is_label(endpoints.from_registry):
        return f"invalid registry name: {endpoints.from_registry}"
    return None


def _check_gateway(gateway: IstioNetworkGateway, path: str) -> Faults:
    """A gateway by its Service or its address; names are resolved, as in the reference by default."""
    if gateway.registry_service_name is not None:
        yield from at(f"{path}.registryServiceName", fqdn_fault(gateway.registry_service_name))
    elif gateway.address is not None:
        yield from at(f"{path}.address", None if is_ip(gateway.address) else fqdn_fault(gateway.address))
    yield from at(f"{path}.port", port_fault(gateway.port))
