"""Forms: what EnvoyFilters find and leave behind in messages for upstream Envoy.

They are written for Istio's proxies. Some of what those are told upstream Envoy is told in other fields, because it
warns of the old ones: DNS discovery, timeouts of gRPC. While patches are applied a message has Istio's form, so that
they find what they change; afterwards it has upstream Envoy's. Options of HTTP that a patch wrote into the old fields
of a cluster move as well, where Istio's proxies would heed them: where the cluster has no newer ones.
"""

from typing import Any

from mizzen import protos
from mizzen.compile import dns_discovery
from mizzen.compile.filters import timeouts

_http_v3 = protos.package("envoy.extensions.upstreams.http.v3")

HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

_CLUSTER = "envoy.config.cluster.v3.Cluster"
_ROUTES = "envoy.config.route.v3.RouteConfiguration"
_OLD_COMMON = ("common_http_protocol_options", "upstream_http_protocol_options")
_OLD = ("http_protocol_options", "http2_protocol_options", *_OLD_COMMON)
_DOWNSTREAM = "USE_DOWNSTREAM_PROTOCOL"


def to_istio(message: Any) -> None:
    """Give a message for upstream Envoy the form that EnvoyFilters are written for."""
    name = message.DESCRIPTOR.full_name
    if name == _CLUSTER:
        dns_discovery.to_fields(message)
    elif name == _ROUTES:
        for action in _actions(message):
            timeouts.to_istio(action)


def to_upstream(message: Any) -> None:
    """Give a patched message upstream Envoy's form."""
    name = message.DESCRIPTOR.full_name
    if name == _CLUSTER:
        dns_discovery.to_extension(message)
        _move_http_options(message)
    elif name == _ROUTES:
        for action in _actions(message):
            timeouts.to_upstream(action)


def _actions(configuration: Any) -> list[Any]:
    routes = (route for host in configuration.virtual_hosts for route in host.routes)
    return [route.route for route in routes if route.HasField("route")]


def _move_http_options(cluster: Any) -> None:
    old = [name for name in _OLD if cluster.HasField(name)]
    selection = type(cluster).ClusterProtocolSelection.Name(cluster.protocol_selection)
    if not old and selection != _DOWNSTREAM:
        return
    options: Any = _http_v3.HttpProtocolOptions()
    if HTTP_OPTIONS in cluster.typed_extension_protocol_options:
        options = protos.unpack(cluster.typed_extension_protocol_options[HTTP_OPTIONS])
    if _says_nothing(options):
        options.ClearField("explicit_http_config")
        _write_http_options(options, cluster, selection)
        cluster.typed_extension_protocol_options[HTTP_OPTIONS].CopyFrom(protos.pack(options))
    for name in (*old, "protocol_selection"):
        cluster.ClearField(name)


def _says_nothing(options: Any) -> bool:
    """Whether the options are only there for the filters with which requests say who sends them."""
    own = type(options)()
    own.CopyFrom(options)
    own.ClearField("http_filters")
    return own in (type(options)(), type(options)(explicit_http_config={"http_protocol_options": {}}))


def _write_http_options(options: Any, cluster: Any, selection: str) -> None:
    for name in _OLD_COMMON:
        if cluster.HasField(name):
            getattr(options, name).CopyFrom(getattr(cluster, name))
    if selection == _DOWNSTREAM:
        spoken = options.use_downstream_protocol_config
        spoken.http_protocol_options.CopyFrom(cluster.http_protocol_options)
        if cluster.HasField("http2_protocol_options"):
            spoken.http2_protocol_options.CopyFrom(cluster.http2_protocol_options)
    elif cluster.HasField("http2_protocol_options"):
        options.explicit_http_config.http2_protocol_options.CopyFrom(cluster.http2_protocol_options)
    else:
        options.explicit_http_config.http_protocol_options.CopyFrom(cluster.http_protocol_options)
