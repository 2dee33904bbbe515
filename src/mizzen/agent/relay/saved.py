"""A delta ADS server over saved resources: what the relay answers while the control plane is away.

In: Envoy's requests and the resources that it last accepted. Out: responses. A state machine without input and output
of its own. Resources never change here, so each subscription is answered once: a wildcard with all resources of its
type, names with theirs. A name that was never saved is answered as removed, since Envoy would wait for it for ever.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mizzen import protos

CLUSTER = protos.TYPE_PREFIX + "envoy.config.cluster.v3.Cluster"
LISTENER = protos.TYPE_PREFIX + "envoy.config.listener.v3.Listener"

_VIRTUAL_HOST = protos.TYPE_PREFIX + "envoy.config.route.v3.VirtualHost"

_WILDCARD_TYPES = frozenset({CLUSTER, LISTENER, _VIRTUAL_HOST})

_discovery = protos.package("envoy.service.discovery.v3")


class SavedResources:
    """One stream that is answered from saved resources; `load` gives those of a type by name."""

    def __init__(self, load: Callable[[str], Mapping[str, bytes]]) -> None:
        self._load = load
        self._seen: set[str] = set()
        self._nonce = 0

    def answer(self, request: Any) -> bytes | None:
        """The encoded response to a DeltaDiscoveryRequest; None where it asks for nothing."""
        type_url = request.type_url
        names = set(request.resource_names_subscribe)
        first = type_url not in self._seen
        self._seen.add(type_url)
        everything = "*" in names or (first and not names and type_url in _WILDCARD_TYPES)
        names.discard("*")
        if not everything and not names:
            return None
        saved = self._load(type_url)
        wanted = sorted(names | set(saved) if everything else names)
        self._nonce += 1
        response = _discovery.DeltaDiscoveryResponse(
            type_url=type_url,
            nonce=f"saved-{self._nonce}",
            removed_resources=[name for name in wanted if name not in saved],
        )
        for name in wanted:
            if name in saved:
                response.resources.add().ParseFromString(saved[name])
        return protos.encode(response)
