"""Small xDS resources for tests that need a real Envoy to serve something."""

from mizzen import protos

_TYPES = "type.googleapis.com/envoy.extensions."
_SDS = {
    "resource_api_version": "V3",
    "initial_fetch_timeout": {"seconds": 0},
    "api_config_source": {
        "api_type": "GRPC",
        "transport_api_version": "V3",
        "set_node_on_first_message_only": True,
        "grpc_services": [{"envoy_grpc": {"cluster_name": "sds-grpc"}}],
    },
}

_listener_v3 = protos.package("envoy.config.listener.v3")
_cluster_v3 = protos.package("envoy.config.cluster.v3")
_endpoint_v3 = protos.package("envoy.config.endpoint.v3")
_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_tls_v3 = protos.package("envoy.extensions.transport_sockets.tls.v3")


def build_listener(name: str, address: str, port: int, body: str, *, mutual_tls: bool = False, **fields):
    """A listener that answers every request itself with `body`."""
    route = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": body}}}
    manager = _hcm_v3.HttpConnectionManager(
        stat_prefix=f"{name};",
        route_config={"name": name, "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        http_filters=[
            {
                "name": "envoy.filters.http.router",
                "typed_config": protos.pack(protos.package("envoy.extensions.filters.http.router.v3").Router()),
            }
        ],
    )
    chain = {"filters": [{"name": "hcm", "typed_config": protos.pack(manager)}]}
    if mutual_tls:
        chain["transport_socket"] = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": protos.pack(_build_downstream_tls()),
        }
    return _listener_v3.Listener(
        name=name,
        address={"socket_address": {"address": address, "port_value": port}},
        filter_chains=[chain],
        **fields,
    )


def _build_downstream_tls():
    return _tls_v3.DownstreamTlsContext(
        require_client_certificate={"value": True},
        common_tls_context={
            "tls_certificate_sds_secret_configs": [{"name": "default", "sds_config": _SDS}],
            "validation_context_sds_secret_config": {"name": "ROOTCA", "sds_config": _SDS},
        },
    )


def build_cluster(name: str):
    """An EDS cluster over ADS."""
    return _cluster_v3.Cluster(
        name=name,
        alt_stat_name=f"{name};",
        type="EDS",
        eds_cluster_config={"eds_config": {"ads": {}, "resource_api_version": "V3"}},
    )


def build_endpoints(name: str, address: str, port: int):
    """The endpoints of an EDS cluster: one."""
    socket = {"socket_address": {"address": address, "port_value": port}}
    return _endpoint_v3.ClusterLoadAssignment(
        cluster_name=name, endpoints=[{"lb_endpoints": [{"endpoint": {"address": socket}}]}]
    )
