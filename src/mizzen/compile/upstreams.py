"""In which version of HTTP a destination is spoken to.

In: the destination's port and the connection pool settings that apply to it. Out: an `Upstream`. Clusters are built by
it, and in dialect `envoy` routes choose by it the words of ALPN that a request carries.
"""

from typing import Literal

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.networking.traffic_policy import HTTPSettings
from mizzen.model.protocols import Protocol

Upstream = Literal["", "http2", "downstream"]
"""HTTP/1.1, HTTP/2, or the version that the client speaks."""


def select_upstream(
    http: HTTPSettings | None, protocol: Protocol, mesh: MeshConfig, *, sniffs: bool, upgrades: bool = True
) -> Upstream:
    """As the client spoke, as upgraded, or by the port.

    `sniffs` says that an undeclared port is spoken to as its client speaks, which gateways do not; `upgrades` that
    the rule's or the mesh's upgrade policy counts, which it does not towards the sidecar's own application.
    """
    settings = http or HTTPSettings()
    if settings.use_client_protocol:
        return "downstream"
    if protocol.is_http2:
        return "http2"
    if protocol.is_auto and sniffs:
        return "downstream"
    return "http2" if upgrades and _upgrades(settings, protocol, mesh) else ""


def _upgrades(http: HTTPSettings, protocol: Protocol, mesh: MeshConfig) -> bool:
    if http.h2_upgrade_policy == "UPGRADE":
        return True
    if http.h2_upgrade_policy == "DO_NOT_UPGRADE":
        return False
    return mesh.h2_upgrade_policy == "UPGRADE" and protocol.is_http
