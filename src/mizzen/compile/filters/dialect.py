"""Words that every filter needs: the dialect of the proxy and the side of the proxy that a filter stands on."""

from typing import Literal

Dialect = Literal["istio", "envoy"]
"""`istio` is Istio's proxy image; `envoy` is upstream Envoy, which lacks every `istio.*` filter."""

Side = Literal["inbound", "outbound", "gateway"]
"""Traffic into a sidecar's workload, traffic out of it, and all traffic of a gateway."""
