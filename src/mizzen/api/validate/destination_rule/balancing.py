"""Balancing: consistent hashing, localities and zones, warm-up."""

import math
from collections.abc import Iterable, Sequence

from mizzen.api.networking.traffic_policy import (
    ConsistentHashLB,
    Distribute,
    Failover,
    HTTPCookie,
    LoadBalancerSettings,
    LocalityLoadBalancerSetting,
    WarmupConfiguration,
    ZoneAwareLoadBalancerSetting,
)
from mizzen.api.validate.faults import Faults, at, error, warning
from mizzen.api.validate.values.numbers import duration_fault

_LARGEST_TABLE = 5000011
_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone")
_NO_OUTLIER_DETECTION = "outlier detection policy must be provided for failover"


def check_load_balancer(settings: LoadBalancerSettings, path: str, *, ejects: bool) -> Faults:
    """How endpoints are chosen; `ejects` is whether there is outlier detection, which failover needs."""
    if settings.consistent_hash is not None:
        yield from _check_hashing(settings.consistent_hash, f"{path}.consistentHash")
    if settings.locality_lb_setting is not None and settings.zone_aware_lb_setting is not None:
        yield error(path, "only one of localityLbSetting and zoneAwareLbSetting can be set")
    if settings.locality_lb_setting is not None:
        yield from check_localities(settings.locality_lb_setting, f"{path}.localityLbSetting", ejects=ejects)
    if settings.zone_aware_lb_setting is not None:
        yield from check_zones(settings.zone_aware_lb_setting, f"{path}.zoneAwareLbSetting", ejects=ejects)
    yield from at(f"{path}.warmupDurationSecs", duration_fault(settings.warmup_duration_secs))
    if settings.warmup is not None:
        yield from _check_warmup(settings.warmup, f"{path}.warmup")


def _check_hashing(hashing: ConsistentHashLB, path: str) -> Faults:
    if hashing.http_cookie is not None:
        yield from _check_cookie(hashing.http_cookie, f"{path}.httpCookie")
    if hashing.minimum_ring_size:
        instead = "use ConsistentHashLB's RingHash configuration instead"
        yield warning(f"{path}.minimumRingSize", f"consistent hash MinimumRingSize is deprecated, {instead}")
        if hashing.ring_hash is not None or hashing.maglev is not None:
            yield error(path, "only one of MinimumRingSize or Maglev/Ringhash can be specified")
    if hashing.maglev is not None:
        yield from at(f"{path}.maglev.tableSize", _table_fault(hashing.maglev.table_size))


def _table_fault(size: int) -> str | None:
    """Maglev needs a prime number of places."""
    if size == 0:
        return "tableSize must be set for maglev"
    if size >= _LARGEST_TABLE:
        return f"tableSize must be less than {_LARGEST_TABLE} for maglev"
    return None if _is_prime(size) else "tableSize must be a prime number for maglev"


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _check_cookie(cookie: HTTPCookie, path: str) -> Faults:
    if not cookie.name:
        yield error(f"{path}.name", "name required for HttpCookie")
    names: set[str] = set()
    for index, attribute in enumerate(cookie.attributes):
        here = f"{path}.attributes[{index}].name"
        if not attribute.name:
            yield error(here, "cookie attribute name cannot be empty")
        elif attribute.name in names:
            yield error(here, f"duplicate cookie attribute name: {attribute.name}")
        names.add(attribute.name)


def _check_warmup(warmup: WarmupConfiguration, path: str) -> Faults:
    missing = "duration is required" if warmup.duration is None else None
    yield from at(f"{path}.duration", missing or duration_fault(warmup.duration))
    if warmup.minimum_percent is not None and warmup.minimum_percent > 100:
        yield error(f"{path}.minimumPercent", "minimumPercent value should be less than or equal to 100")
    if warmup.aggression is not None and warmup.aggression <= 0:
        yield error(f"{path}.aggression", "aggression should be greater than 0")


def check_localities(setting: LocalityLoadBalancerSetting, path: str, *, ejects: bool) -> Faults:
    """Shares of traffic between localities, or failover; as in the reference a contradiction ends the check."""
    if setting.distribute and setting.failover:
        yield error(path, "can not simultaneously specify 'distribute' and 'failover'")
        return
    topology = next((label for label in setting.failover_priority if label in _TOPOLOGY), None)
    if setting.failover and topology:
        both = f"'failover' and topology label '{topology}' in 'failover_priority'"
        yield error(f"{path}.failoverPriority", f"can not simultaneously set {both}")
        return
    for index, distribute in enumerate(setting.distribute):
        here = f"{path}.distribute[{index}].to"
        fault = _shares_fault(distribute) or _overlap_fault(distribute.to)
        yield from at(here, fault)
    yield from at(f"{path}.distribute", _overlap_fault(each.from_ for each in setting.distribute))
    if (setting.failover or setting.failover_priority) and not ejects:
        yield warning(path, _NO_OUTLIER_DETECTION)
    yield from _check_failover(setting.failover, "locality lb", f"{path}.failover")


def check_zones(setting: ZoneAwareLoadBalancerSetting, path: str, *, ejects: bool) -> Faults:
    """Zone-aware routing, whose failover cannot go by topology: zones have done that already."""
    for index, label in enumerate(setting.failover_priority):
        if label in _TOPOLOGY:
            message = f"zone aware lb does not support topology label '{label}' in 'failover_priority'"
            yield error(f"{path}.failoverPriority[{index}]", message)
    if (setting.failover or setting.failover_priority) and not ejects:
        yield warning(path, _NO_OUTLIER_DETECTION)
    yield from _check_failover(setting.failover, "zone aware lb", f"{path}.failover")


def _check_failover(failovers: Sequence[Failover], subject: str, path: str) -> Faults:
    for index, failover in enumerate(failovers):
        here, ends = f"{path}[{index}]", failover.from_ + failover.to
        if failover.from_ == failover.to:
            yield error(here, f"{subject} failover settings must specify different regions")
        if "/" in ends:
            yield error(here, f"{subject} failover only specify region")
        if "*" in ends:
            yield error(here, f"{subject} failover region should not contain '*' wildcard")


def _shares_fault(distribute: Distribute) -> str | None:
    if any(not 1 <= share <= 100 for share in distribute.to.values()):
        return "locality weight must be in range [1, 100]"
    total = sum(distribute.to.values())
    return None if total == 100 else f"total locality weight {total} != 100"


def _overlap_fault(localities: Iterable[str]) -> str | None:
    """What is wrong with localities `region/zone/subzone`, of which a `*` may stand for the rest, taken together.

    As in the reference one that ends with `*` may stand behind narrower ones, which go before it.
    """
    wholes: set[tuple[str, ...]] = set()
    beginnings: set[tuple[str, ...]] = set()
    for locality in localities:
        if "*" in locality[:-1]:
            return f"locality {locality} wildcard '*' number can not exceed 1 and must be in the end"
        parts = locality.split("/", 2)
        if not all(parts):
            return f"locality {locality} must not contain empty region/zone/subzone info"
        rest = parts[-1] == "*"
        named = tuple(parts[:-1]) if rest else tuple(parts)
        leading = [named[:length] for length in range(len(named) + 1)]
        if any(part in wholes for part in leading) or (not rest and named in beginnings):
            return f"locality {locality} overlap with previous specified ones"
        wholes.add(named)
        beginnings.update(leading)
    return None
