"""Who the other side of a connection is, beyond its certificate: workload, namespace, revision, for metrics.

Istio's proxies exchange this by the filters named `istio.metadata_exchange`. Upstream Envoy has none, so there the
client's cluster writes headers (`upstream_filters`), the server's mutual TLS chains keep them in filter state and take
them off, and plain chains only take them off: a forged header names nobody. The client reads the same facts of its
peer from endpoint metadata. Own facts come from the environment that the agent sets, so that one listener serves every
workload. TCP peers have no headers: only their certificate names them.
"""

import functools
from typing import Any, NamedTuple

import msgspec

from mizzen import protos
from mizzen.compile.filters.dialect import Dialect, Side

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_set_filter_state_v3 = protos.package("envoy.extensions.filters.http.set_filter_state.v3")
_header_mutation_v3 = protos.package("envoy.extensions.filters.http.header_mutation.v3")
_upstream_codec_v3 = protos.package("envoy.extensions.filters.http.upstream_codec.v3")

EXCHANGE = "istio.metadata_exchange"
METADATA = "mizzen"
"""The filter-metadata namespace of clusters and endpoints in dialect `envoy`."""
UNKNOWN_VARIABLE = "MZ_UNKNOWN"
"""An environment variable that holds the word `unknown`, the cheapest constant a format string can end with."""
MESH_VARIABLE = "MZ_MESH"
"""The environment variable that holds the mesh's id."""


class Fact(NamedTuple):
    """One thing to know about a workload: its key in endpoint metadata, and our own value's environment variable."""

    key: str
    variable: str

    @property
    def header(self) -> str:
        """The request header that carries it between sidecars."""
        return f"x-mizzen-{self.key.replace('_', '-')}"

    @property
    def state(self) -> str:
        """The filter state object that holds the peer's value at the server."""
        return f"mizzen.peer.{self.key}"


FACTS = (
    Fact("workload", "MZ_WORKLOAD"),
    Fact("namespace", "MZ_NAMESPACE"),
    Fact("canonical_service", "MZ_CANONICAL_SERVICE"),
    Fact("canonical_revision", "MZ_CANONICAL_REVISION"),
    Fact("app", "MZ_APP"),
    Fact("version", "MZ_VERSION"),
    Fact("cluster", "MZ_CLUSTER"),
)

_DISCOVERY: list[dict[str, Any]] = [{"istio_headers": {}}, {"workload_discovery": {}}]
_PEER_METADATA = protos.TYPE_PREFIX + "io.istio.http.peer_metadata.Config"
_TCP_EXCHANGE = protos.TYPE_PREFIX + "envoy.tcp.metadataexchange.config.MetadataExchange"


def first_of(*operators: str | tuple[str, str]) -> str:
    """A format string: the first operator (or command and parameter) that yields something, else `unknown`."""
    listed = [o if isinstance(o, str) else {"command": o[0], "param": o[1]} for o in operators]
    fallback = {"command": "ENVIRONMENT", "param": UNKNOWN_VARIABLE}
    return f"%COALESCE({msgspec.json.encode({'operators': [*listed, fallback]}).decode()})%"


def build_http_filters(dialect: Dialect, side: Side, *, mutual_tls: bool, in_mesh: bool) -> tuple[Any, ...]:
    """The HTTP filters that learn and tell who the peers are.

    `in_mesh` keeps our own facts from destinations outside the mesh; in dialect `envoy` they never go there.
    """
    if dialect == "istio":
        return (_istio_http_filter(side, in_mesh),)
    if side == "inbound":
        return (_remember_filter(), _strip_filter()) if mutual_tls else (_strip_filter(),)
    return ()


@functools.cache
def _istio_http_filter(side: Side, in_mesh: bool) -> Any:
    if side == "inbound":
        value = {"downstream_discovery": _DISCOVERY, "downstream_propagation": [{"istio_headers": {}}]}
    else:
        propagation = {"istio_headers": {"skip_external_clusters": True} if in_mesh else {}}
        value = {"upstream_discovery": _DISCOVERY, "upstream_propagation": [propagation]}
    return _hcm_v3.HttpFilter(name=EXCHANGE, typed_config=protos.typed_struct(_PEER_METADATA, value))


@functools.cache
def _remember_filter() -> Any:
    states = [
        {
            "object_key": fact.state,
            "factory_key": "envoy.string",
            "format_string": {"text_format_source": {"inline_string": first_of(("REQ", fact.header))}},
        }
        for fact in FACTS
    ]
    config = _set_filter_state_v3.Config(on_request_headers=states)
    return _hcm_v3.HttpFilter(name="mizzen.peer", typed_config=protos.pack(config))


@functools.cache
def _strip_filter() -> Any:
    config = _header_mutation_v3.HeaderMutation(
        mutations={"request_mutations": [{"remove": fact.header} for fact in FACTS]}
    )
    return _hcm_v3.HttpFilter(name="mizzen.strip", typed_config=protos.pack(config))


@functools.cache
def build_upstream_filters() -> tuple[Any, ...]:
    """Dialect `envoy`: the filters of a mesh cluster's `HttpProtocolOptions` that tell the server who we are."""
    config = _header_mutation_v3.HeaderMutation(
        mutations={
            "request_mutations": [
                {
                    "append": {
                        "header": {"key": fact.header, "value": f"%ENVIRONMENT({fact.variable})%"},
                        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                    }
                }
                for fact in FACTS
            ]
        }
    )
    codec = _upstream_codec_v3.UpstreamCodec()
    return (
        _hcm_v3.HttpFilter(name="mizzen.peer", typed_config=protos.pack(config)),
        _hcm_v3.HttpFilter(name="envoy.filters.http.upstream_codec", typed_config=protos.pack(codec)),
    )


@functools.cache
def build_network_filters(dialect: Dialect) -> tuple[Any, ...]:
    """The network filters that exchange peer metadata over TCP; none exist upstream."""
    if dialect == "envoy":
        return ()
    value = {"protocol": "istio-peer-exchange", "enable_discovery": True}
    return (_listener_v3.Filter(name=EXCHANGE, typed_config=protos.typed_struct(_TCP_EXCHANGE, value)),)
