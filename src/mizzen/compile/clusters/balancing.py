"""Load balancing: the policy and its settings, and which locality setting is in force.

Golden cases: networking/dr-load-balancers, networking/dr-consistent-hash, networking/dr-zone-aware,
networking/dr-locality-distribute, networking/dr-locality-failover.
"""

from typing import Any

from mizzen.api.networking.traffic_policy import ConsistentHashLB, LoadBalancerSettings, OutlierDetection
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.values import duration, percent, wrapped
from mizzen.model.localities import LocalitySetting

_DEFAULT_RING = 1024
_RUNTIME_KEY = "("
"""Envoy wants a runtime key beside the aggression's default; the reference sends this one."""


def apply_load_balancer(draft: Draft, settings: LoadBalancerSettings | None) -> None:
    """The policy; a cluster without settings of its own balances by least requests."""
    settings = settings or LoadBalancerSettings()
    if settings.consistent_hash is not None:
        _apply_consistent_hash(draft, settings.consistent_hash)
        return
    match settings.simple:
        case "ROUND_ROBIN":
            draft.fields["lb_policy"] = "ROUND_ROBIN"
        case "RANDOM":
            draft.fields["lb_policy"] = "RANDOM"
        case "PASSTHROUGH":
            draft.fields.update(type="ORIGINAL_DST", lb_policy="CLUSTER_PROVIDED")
            draft.fields.pop("load_assignment", None)
            draft.fields.pop("eds_cluster_config", None)
        case _:
            draft.fields["lb_policy"] = "LEAST_REQUEST"
    _apply_warmup(draft, settings)


def _apply_consistent_hash(draft: Draft, settings: ConsistentHashLB) -> None:
    if settings.maglev is not None:
        draft.fields["lb_policy"] = "MAGLEV"
        if settings.maglev.table_size:
            draft.fields["maglev_lb_config"] = {"table_size": wrapped(settings.maglev.table_size)}
        return
    draft.fields["lb_policy"] = "RING_HASH"
    if settings.ring_hash is not None:
        if settings.ring_hash.minimum_ring_size:
            draft.fields["ring_hash_lb_config"] = {"minimum_ring_size": wrapped(settings.ring_hash.minimum_ring_size)}
        return
    draft.fields["ring_hash_lb_config"] = {"minimum_ring_size": wrapped(settings.minimum_ring_size or _DEFAULT_RING)}


def _apply_warmup(draft: Draft, settings: LoadBalancerSettings) -> None:
    name = {"LEAST_REQUEST": "least_request_lb_config", "ROUND_ROBIN": "round_robin_lb_config"}.get(
        draft.fields["lb_policy"]
    )
    if name is None:
        return
    warmup = settings.warmup
    slow_start: dict[str, Any]
    if warmup is not None and warmup.duration is not None:
        aggression = warmup.aggression if warmup.aggression is not None else 1.0
        minimum = warmup.minimum_percent if warmup.minimum_percent is not None else 10.0
        slow_start = {
            "slow_start_window": duration(warmup.duration),
            "aggression": {"default_value": aggression, "runtime_key": _RUNTIME_KEY},
            "min_weight_percent": percent(minimum),
        }
    elif settings.warmup_duration_secs is not None:
        slow_start = {"slow_start_window": duration(settings.warmup_duration_secs)}
    else:
        return
    draft.fields[name] = {"slow_start_config": slow_start}


def apply_locality(draft: Draft, setting: LocalitySetting | None, detection: OutlierDetection | None) -> None:
    """Locality weights or zone awareness in `common_lb_config`, as the setting in force asks for."""
    common = draft.fields.get("common_lb_config")
    if setting is None or common is None:
        return
    if setting.zone_aware is not None:
        zone_aware: dict[str, Any] = {}
        if setting.zone_aware.enabled is False:
            zone_aware["routing_enabled"] = {}
        if setting.zone_aware.min_cluster_size is not None:
            zone_aware["min_cluster_size"] = wrapped(setting.zone_aware.min_cluster_size)
        common["zone_aware_lb_config"] = zone_aware
        return
    fails_over = (detection is not None or setting.forced) and (setting.failover or setting.failover_priority)
    if fails_over or setting.distribute:
        common["locality_weighted_lb_config"] = {}
