"""Which locality load balancing setting is in force for a service.

In: the DestinationRule's setting, the service's traffic distribution, the mesh's default. Out: one `LocalitySetting`,
or None where localities make no difference. Golden cases: networking/dr-locality-failover, networking/dr-zone-aware,
networking/endpoint-states (traffic distribution), networking/mesh-visibility (mesh setting).
"""

from collections.abc import Mapping

import msgspec

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.networking.traffic_policy import (
    Distribute,
    Failover,
    LoadBalancerSettings,
    LocalityLoadBalancerSetting,
    ZoneAwareLoadBalancerSetting,
)
from mizzen.model.workloads import HOSTNAME, NETWORK, REGION, SUBZONE, ZONE

_ZONE_PRIORITY = (NETWORK, REGION, ZONE)
_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "PreferClose": _ZONE_PRIORITY,
    "PreferSameZone": _ZONE_PRIORITY,
    "PreferSameNode": (*_ZONE_PRIORITY, SUBZONE, HOSTNAME),
}


class LocalitySetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting in force; `zone_aware` excludes the others but lends its failover fields."""

    distribute: tuple[Distribute, ...] = ()
    failover: tuple[Failover, ...] = ()
    failover_priority: tuple[str, ...] = ()
    forced: bool = False
    """In force without outlier detection: the service asks for it itself."""
    zone_aware: ZoneAwareLoadBalancerSetting | None = None


def locality_setting(
    settings: LoadBalancerSettings | None, traffic_distribution: str, mesh: MeshConfig
) -> LocalitySetting | None:
    """The first that says something: the rule's zone awareness or locality setting, the service, the mesh."""
    if settings is not None and settings.zone_aware_lb_setting is not None:
        return _zone_aware(settings.zone_aware_lb_setting)
    if settings is not None and settings.locality_lb_setting is not None:
        return _locality(settings.locality_lb_setting)
    if traffic_distribution in _DISTRIBUTIONS:
        return LocalitySetting(failover_priority=_DISTRIBUTIONS[traffic_distribution], forced=True)
    if mesh.zone_aware_lb_setting is not None:
        return _zone_aware(mesh.zone_aware_lb_setting)
    return _locality(mesh.locality_lb_setting) if mesh.locality_lb_setting is not None else LocalitySetting()


def _zone_aware(setting: ZoneAwareLoadBalancerSetting) -> LocalitySetting:
    return LocalitySetting(
        failover=tuple(setting.failover), failover_priority=tuple(setting.failover_priority), zone_aware=setting
    )


def _locality(setting: LocalityLoadBalancerSetting) -> LocalitySetting | None:
    if setting.enabled is False:
        return None
    return LocalitySetting(
        distribute=tuple(setting.distribute),
        failover=tuple(setting.failover),
        failover_priority=tuple(setting.failover_priority),
    )
