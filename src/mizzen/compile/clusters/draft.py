"""A cluster while its parts are being put together, and the message that comes of it.

In: fields written by the modules of this package, each for its own concept. Out: a `Cluster` message with what only
the whole decides: the HTTP protocol options and the thresholds. A draft lives inside one query and never leaves it.
"""

from typing import Any

from mizzen import protos
from mizzen.compile import dns_discovery
from mizzen.compile.filters import peers
from mizzen.compile.upstreams import Upstream
from mizzen.compile.values import MAX_UINT32, wrapped
from mizzen.model.proxy import Dialect

_cluster_v3 = protos.package("envoy.config.cluster.v3")
_http_v3 = protos.package("envoy.extensions.upstreams.http.v3")
_preserve_case_v3 = protos.package("envoy.extensions.http.header_formatters.preserve_case.v3")

HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


class Draft:
    """The parts of a cluster."""

    def __init__(self, name: str, *, stat_name: str | None = None) -> None:
        self.fields: dict[str, Any] = {"name": name, "alt_stat_name": f"{stat_name or name};"}
        self.thresholds: dict[str, Any] | None = None
        self.upstream: Upstream = ""
        self.http2_options: dict[str, Any] = {}
        self.common_http: dict[str, Any] | None = None
        self.upstream_http: dict[str, Any] = {}
        """`auto_sni` and the like."""
        self.outlier_matcher: dict[str, Any] | None = None
        self.preserve_header_case = False
        self.tell_peer = False
        """Dialect `envoy`: requests carry who the client is."""
        self.istio_metadata: dict[str, Any] = {}
        self.peer_metadata: dict[str, Any] = {}

    def set_default_thresholds(self) -> None:
        """No limits of our own: Envoy's are far lower."""
        self.thresholds = {
            name: wrapped(MAX_UINT32)
            for name in ("max_connections", "max_pending_requests", "max_requests", "max_retries")
        }

    def http_common(self) -> dict[str, Any]:
        """`common_http_protocol_options`, made present."""
        if self.common_http is None:
            self.common_http = {}
        return self.common_http

    def message(self, dialect: Dialect) -> Any:
        """The finished cluster."""
        fields = dict(self.fields)
        if self.thresholds is not None:
            fields["circuit_breakers"] = {"thresholds": [self.thresholds]}
        options = self._http_options()
        if options is not None:
            fields["typed_extension_protocol_options"] = {HTTP_OPTIONS: protos.pack(options)}
        metadata = {}
        if self.istio_metadata:
            metadata["istio"] = protos.struct(self.istio_metadata)
        if self.peer_metadata and dialect == "envoy":
            metadata[peers.METADATA] = protos.struct(self.peer_metadata)
        if metadata:
            fields["metadata"] = {"filter_metadata": metadata}
        cluster = _cluster_v3.Cluster(**fields)
        if dialect == "envoy":
            dns_discovery.to_extension(cluster)
        return cluster

    def _http_options(self) -> Any | None:
        options: dict[str, Any] = {}
        http1: dict[str, Any] = {}
        if self.preserve_header_case:
            http1 = {"header_key_format": {"stateful_formatter": _preserve_case()}}
        if self.upstream == "downstream":
            options["use_downstream_protocol_config"] = {
                "http_protocol_options": http1,
                "http2_protocol_options": self.http2_options,
            }
        elif self.upstream == "http2":
            options["explicit_http_config"] = {"http2_protocol_options": self.http2_options}
        if self.common_http is not None:
            options["common_http_protocol_options"] = self.common_http
        if self.upstream_http:
            options["upstream_http_protocol_options"] = self.upstream_http
        if self.outlier_matcher is not None:
            options["outlier_detection"] = {"error_matcher": self.outlier_matcher}
        if self.tell_peer:
            options["http_filters"] = list(peers.build_upstream_filters())
        if not options and not http1:
            return None
        if not self.upstream:
            options["explicit_http_config"] = {"http_protocol_options": http1}
        return _http_v3.HttpProtocolOptions(**options)


def _preserve_case() -> dict[str, Any]:
    return {
        "name": "preserve_case",
        "typed_config": protos.pack(_preserve_case_v3.PreserveCaseFormatterConfig()),
    }
