"""How large the mesh is, under Istio's names: services, VirtualServices, subsets of DestinationRules.

In: every change of an object. Out: gauges, which follow at once. A ServiceEntry is as many services as it has hosts.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mizzen import observe
from mizzen.api.meta import Key, Object

SERVICES = observe.Gauge("pilot_services", "Services that are known.")
VIRTUAL_SERVICES = observe.Gauge("pilot_virt_services", "VirtualServices that are known.")
SUBSETS = observe.Gauge("pilot_destrule_subsets", "Subsets of the DestinationRules that are known.")

_GAUGES = {
    "Service": SERVICES,
    "ServiceEntry": SERVICES,
    "VirtualService": VIRTUAL_SERVICES,
    "DestinationRule": SUBSETS,
}
_WEIGHTS: Mapping[str, Callable[[Any], int]] = {
    "ServiceEntry": lambda entry: len(entry.spec.hosts),
    "DestinationRule": lambda rule: len(rule.spec.subsets),
}


class MeshSize:
    """Keeps the gauges."""

    def __init__(self) -> None:
        self._weights: dict[Key, int] = {}
        for gauge in (SERVICES, VIRTUAL_SERVICES, SUBSETS):
            gauge.set(0)

    def take(self, key: Key, value: Object | None) -> None:
        """An object is as it is now, or gone."""
        gauge = _GAUGES.get(key.kind)
        if gauge is None:
            return
        weigh = _WEIGHTS.get(key.kind)
        weight = 0 if value is None else weigh(value) if weigh is not None else 1
        gauge.inc(weight - self._weights.pop(key, 0))
        if weight:
            self._weights[key] = weight
