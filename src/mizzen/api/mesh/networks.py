"""MeshNetworks: which endpoints are in which network, and through which gateways the others reach them."""

from collections.abc import Mapping

from mizzen.api.message import ProtoMessage
from mizzen.api.scalars import UInt32


class NetworkEndpoints(ProtoMessage, frozen=True, kw_only=True):
    """Endpoints of a network: those of an address range, or those of a cluster's registry."""

    from_cidr: str | None = None
    from_registry: str | None = None


class IstioNetworkGateway(ProtoMessage, frozen=True, kw_only=True):
    """A way into a network: a gateway's Service, or an address."""

    registry_service_name: str | None = None
    address: str | None = None
    port: UInt32 = 0
    locality: str = ""


class Network(ProtoMessage, frozen=True, kw_only=True):
    """One network."""

    endpoints: tuple[NetworkEndpoints, ...] = ()
    gateways: tuple[IstioNetworkGateway, ...] = ()


class MeshNetworks(ProtoMessage, frozen=True, kw_only=True):
    """The networks by their names."""

    networks: Mapping[str, Network] = {}
