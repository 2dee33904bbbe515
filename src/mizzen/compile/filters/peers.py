"""Who the other side of a connection is, beyond its certificate: workload, namespace, revision, for metrics.

Istio's proxies exchange this by the filters named `istio.metadata_exchange`. Upstream Envoy has none, so there the
client's cluster writes one header with all of it (`build_upstream_filters`), the server's mutual TLS chains keep it in
filter state and take it off, and plain chains only take it off: a forged header names nobody. The client reads the same
facts of its peer from endpoint metadata. Own facts come from the environment that the agent sets, so that one listener
serves every workload. TCP peers have no headers; there the record stands in the certificate, where our authority has
put it (`build_record`).
"""

import functools
from typing import Any, NamedTuple

import msgspec

from mizzen import protos
from mizzen.compile.filters.dialect import Dialect, Side
from mizzen.model.workloads import Workload

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_set_filter_state_v3 = protos.package("envoy.extensions.filters.http.set_filter_state.v3")
_header_mutation_v3 = protos.package("envoy.extensions.filters.http.header_mutation.v3")
_header_to_metadata_v3 = protos.package("envoy.extensions.filters.http.header_to_metadata.v3")
_upstream_codec_v3 = protos.package("envoy.extensions.filters.http.upstream_codec.v3")

EXCHANGE = "istio.metadata_exchange"
METADATA = "mizzen"
"""The filter-metadata namespace of clusters and endpoints in dialect `envoy`."""
UNKNOWN_VARIABLE = "MZ_UNKNOWN"
"""An environment variable that holds the word `unknown`, the cheapest constant a format string can end with."""
MESH_VARIABLE = "MZ_MESH"
"""The environment variable that holds the mesh's id."""
RECORD_VARIABLE = "MZ_PEER"
"""The environment variable that holds all own facts as one record: `FACTS` in their order, between semicolons."""
HEADER = "x-mizzen-peer"
"""The request header that carries the record between sidecars."""
STATE = "mizzen.peer"
"""The filter state object that holds the peer's record at the server."""
SPLIT_METADATA = "mizzen.peer"
"""The namespace of dynamic metadata that holds the peer's facts one by one, where a Telemetry changes some."""
LABELS_KEY = "labels"
"""The key of endpoint metadata for what Istio's own record leaves out: application and version."""
_LONGEST_RECORD = 512


class Fact(NamedTuple):
    """One thing to know about a workload: its key in metadata, and our own value's environment variable."""

    key: str
    variable: str

    @property
    def label(self) -> str:
        """What follows `source_` or `destination_` in the label of a metric."""
        return "workload_namespace" if self.key == "namespace" else self.key


FACTS = (
    Fact("workload", "MZ_WORKLOAD"),
    Fact("namespace", "MZ_NAMESPACE"),
    Fact("canonical_service", "MZ_CANONICAL_SERVICE"),
    Fact("canonical_revision", "MZ_CANONICAL_REVISION"),
    Fact("cluster", "MZ_CLUSTER"),
    Fact("app", "MZ_APP"),
    Fact("version", "MZ_VERSION"),
)
"""In the order of records; the first five are those of Istio's own record in endpoint metadata."""


def variable(key: str) -> str:
    """The environment variable that holds a fact about ourselves."""
    return next(fact.variable for fact in FACTS if fact.key == key)


_DISCOVERY: list[dict[str, Any]] = [{"istio_headers": {}}, {"workload_discovery": {}}]
_PEER_METADATA = protos.TYPE_PREFIX + "io.istio.http.peer_metadata.Config"
_TCP_EXCHANGE = protos.TYPE_PREFIX + "envoy.tcp.metadataexchange.config.MetadataExchange"


def first_of(*operators: str | tuple[str, str]) -> str:
    """A format string: the first operator (or command and parameter) that yields something, else `unknown`."""
    listed = [o if isinstance(o, str) else {"command": o[0], "param": o[1]} for o in operators]
    fallback = {"command": "ENVIRONMENT", "param": UNKNOWN_VARIABLE}
    return f"%COALESCE({msgspec.json.encode({'operators': [*listed, fallback]}).decode()})%"


def build_http_filters(
    dialect: Dialect, side: Side, *, mutual_tls: bool, in_mesh: bool, split: bool = False
) -> tuple[Any, ...]:
    """The HTTP filters that learn and tell who the peers are.

    `in_mesh` keeps our own facts from destinations outside the mesh; in dialect `envoy` they never go there. `split`
    asks for the peer's facts one by one.
    """
    if dialect == "istio":
        return (_istio_http_filter(side, in_mesh),)
    if side != "inbound":
        return ()
    if not mutual_tls:
        return (_strip_filter(),)
    return (_remember_filter(), *((_split_filter(),) if split else ()), _strip_filter())


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
    source = {"inline_string": f"%REQ({HEADER}):{_LONGEST_RECORD}%"}
    state = {
        "object_key": STATE,
        "factory_key": "envoy.string",
        "skip_if_empty": True,
        "format_string": {"omit_empty_values": True, "text_format_source": source},
    }
    config = _set_filter_state_v3.Config(on_request_headers=[state])
    return _hcm_v3.HttpFilter(name="mizzen.peer", typed_config=protos.pack(config))


@functools.cache
def _split_filter() -> Any:
    rules = [
        {
            "header": HEADER,
            "on_header_present": {
                "metadata_namespace": SPLIT_METADATA,
                "key": fact.key,
                "regex_value_rewrite": {
                    "pattern": {"regex": f"^(?:[^;]*;){{{place}}}([^;]*).*$"},
                    "substitution": "\\1",
                },
            },
        }
        for place, fact in enumerate(FACTS)
    ]
    config = _header_to_metadata_v3.Config(request_rules=rules)
    return _hcm_v3.HttpFilter(name="mizzen.peer.facts", typed_config=protos.pack(config))


@functools.cache
def _strip_filter() -> Any:
    config = _header_mutation_v3.HeaderMutation(mutations={"request_mutations": [{"remove": HEADER}]})
    return _hcm_v3.HttpFilter(name="mizzen.strip", typed_config=protos.pack(config))


@functools.cache
def build_upstream_filters() -> tuple[Any, ...]:
    """Dialect `envoy`: the filters of a mesh cluster's `HttpProtocolOptions` that tell the server who we are."""
    header = {"key": HEADER, "value": f"%ENVIRONMENT({RECORD_VARIABLE})%"}
    append = {"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
    config = _header_mutation_v3.HeaderMutation(mutations={"request_mutations": [{"append": append}]})
    codec = _upstream_codec_v3.UpstreamCodec()
    return (
        _hcm_v3.HttpFilter(name="mizzen.peer", typed_config=protos.pack(config)),
        _hcm_v3.HttpFilter(name="envoy.filters.http.upstream_codec", typed_config=protos.pack(codec)),
    )


def build_endpoint_metadata(workload: Workload, cluster: str, *, split: bool) -> dict[str, str]:
    """Dialect `envoy`: what clients are told of an endpoint's workload beside Istio's own record.

    That is application and version where they do not follow from the canonical names, or with `split` every fact by
    itself, for clients that change single labels.
    """
    if not split:
        app, version = _own_labels(workload)
        return {LABELS_KEY: f"{app};{version}"} if app or version else {}
    app, version = _labels(workload)
    facts = {
        "workload": workload.name,
        "namespace": workload.namespace,
        "canonical_service": workload.canonical_name,
        "canonical_revision": workload.canonical_revision,
        "cluster": cluster,
        "app": app,
        "version": version,
    }
    return {key: value for key, value in facts.items() if value} | {LABELS_KEY: f"{app};{version}"}


def _labels(workload: Workload) -> tuple[str, str]:
    """Application and version."""
    labels = dict(workload.labels)
    return labels.get("app") or workload.name, labels.get("version") or workload.canonical_revision


def _own_labels(workload: Workload) -> tuple[str, str]:
    """Application and version, empty where they follow from the canonical names."""
    app, version = _labels(workload)
    return (
        "" if app == workload.canonical_name else app,
        "" if version == workload.canonical_revision else version,
    )


def build_record(workload: Workload, cluster: str) -> str:
    """Who a workload is as one record, for its certificate; what follows from the rest is left out."""
    name, revision = workload.canonical_name, workload.canonical_revision
    facts = (workload.name, workload.namespace, name, revision, cluster, *_own_labels(workload))
    return ";".join(map(_part, facts))


def _part(value: str) -> str:
    """A fact as it may stand in a record, which Envoy lists behind others with a comma between."""
    return value.replace(";", "_").replace(",", "_")


@functools.cache
def build_network_filters(dialect: Dialect) -> tuple[Any, ...]:
    """The network filters that exchange peer metadata over TCP; none exist upstream."""
    if dialect == "envoy":
        return ()
    value = {"protocol": "istio-peer-exchange", "enable_discovery": True}
    return (_listener_v3.Filter(name=EXCHANGE, typed_config=protos.typed_struct(_TCP_EXCHANGE, value)),)
