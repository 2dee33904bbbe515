"""All faults of the truth suite, and the manifests under which they are in force together."""

import fault_api
import fault_edge
import fault_more
import fault_routing
import fault_scope
import fault_security
import fault_upstream

FAULTS = (
    *fault_routing.FAULTS,
    *fault_upstream.FAULTS,
    *fault_security.FAULTS,
    *fault_edge.FAULTS,
    *fault_api.FAULTS,
    *fault_more.FAULTS,
    *fault_scope.FAULTS,
)


def manifests() -> list[str]:
    """Each once."""
    shared = (*fault_security.SHARED, *fault_scope.SHARED)
    return list(dict.fromkeys([*shared, *(text for fault in FAULTS for text in fault.manifests)]))
