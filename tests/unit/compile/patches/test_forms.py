"""EnvoyFilters find Istio's fields, and upstream Envoy gets its own."""

import pytest

from mizzen import protos
from mizzen.compile.patches import forms
from mizzen.compile.patches.forms import HTTP_OPTIONS

_cluster_v3 = protos.package("envoy.config.cluster.v3")
_http_v3 = protos.package("envoy.extensions.upstreams.http.v3")
_route_v3 = protos.package("envoy.config.route.v3")

UNLIMITED = {"timeout": {}, "max_stream_duration": {"grpc_timeout_header_max": {}}}
PEER_FILTER = {"name": "mizzen.peer"}


def patched(pristine, **changes):
    """The message after a patch that sets these fields."""
    message = type(pristine)()
    message.CopyFrom(pristine)
    forms.to_istio(message)
    message.MergeFrom(type(pristine)(**changes))
    forms.to_upstream(message)
    return message


def routes(**action):
    return _route_v3.RouteConfiguration(
        name="80", virtual_hosts=[{"name": "x", "routes": [{"match": {"prefix": "/"}, "route": action}]}]
    )


def action_of(configuration):
    return protos.to_json(configuration.virtual_hosts[0].routes[0].route)


def with_action(pristine, **changes):
    """The action of a route after a patch that sets these fields."""
    message = type(pristine)()
    message.CopyFrom(pristine)
    forms.to_istio(message)
    message.virtual_hosts[0].routes[0].route.MergeFrom(_route_v3.RouteAction(**changes))
    forms.to_upstream(message)
    return action_of(message)


def test_a_patch_of_dns_settings_reaches_the_extension() -> None:
    pristine = _cluster_v3.Cluster(name="x", type="STRICT_DNS", respect_dns_ttl=True, dns_refresh_rate={"seconds": 60})
    forms.to_upstream(pristine)
    found = protos.to_json(patched(pristine, dns_refresh_rate={"seconds": 5}, dns_lookup_family="V6_ONLY"))
    config = found["clusterType"]["typedConfig"]
    assert (config["dnsRefreshRate"], config["dnsLookupFamily"], config["respectDnsTtl"]) == ("5s", "V6_ONLY", True)
    assert "dnsRefreshRate" not in found


def test_a_route_stays_as_it_is_unless_its_timeouts_are_patched() -> None:
    assert with_action(routes(cluster="a", **UNLIMITED), prefix_rewrite="/b") == {
        "cluster": "a",
        "timeout": "0s",
        "maxStreamDuration": {"grpcTimeoutHeaderMax": "0s"},
        "prefixRewrite": "/b",
    }


def test_a_patched_timeout_is_kept_by_every_request() -> None:
    """With the field for deadlines beside it, upstream Envoy would not look at the timeout."""
    found = with_action(routes(cluster="a", **UNLIMITED), timeout={"seconds": 5})
    assert found == {"cluster": "a", "timeout": "5s"}


def test_a_patched_limit_of_deadlines_moves() -> None:
    found = with_action(routes(cluster="a", **UNLIMITED), max_grpc_timeout={"seconds": 5})
    assert found == {"cluster": "a", "timeout": "0s", "maxStreamDuration": {"grpcTimeoutHeaderMax": "5s"}}


def test_a_patchs_own_duration_stays() -> None:
    found = with_action(routes(cluster="a", **UNLIMITED), max_stream_duration={"max_stream_duration": {"seconds": 9}})
    assert found == {"cluster": "a", "timeout": "0s", "maxStreamDuration": {"maxStreamDuration": "9s"}}


def test_an_added_route_keeps_envoys_own_timeout() -> None:
    added = with_action(routes(cluster="a"), max_grpc_timeout={"seconds": 5})
    assert added == {"cluster": "a"}


def options_of(cluster):
    return protos.to_json(protos.unpack(cluster.typed_extension_protocol_options[HTTP_OPTIONS]))


def build_cluster(**options):
    packed = {HTTP_OPTIONS: protos.pack(_http_v3.HttpProtocolOptions(**options))} if options else {}
    return _cluster_v3.Cluster(name="x", type="EDS", typed_extension_protocol_options=packed)


@pytest.mark.parametrize(
    "pristine",
    [
        build_cluster(),
        build_cluster(explicit_http_config={"http_protocol_options": {}}, http_filters=[PEER_FILTER]),
    ],
)
def test_http_2_in_the_old_field_counts_where_there_are_no_options(pristine) -> None:
    found = patched(pristine, http2_protocol_options={"max_concurrent_streams": {"value": 7}})
    options = options_of(found)
    assert options["explicitHttpConfig"] == {"http2ProtocolOptions": {"maxConcurrentStreams": 7}}
    assert not found.HasField("http2_protocol_options")
    had = pristine.typed_extension_protocol_options
    assert ("httpFilters" in options) == (HTTP_OPTIONS in had)


def test_old_fields_count_for_nothing_beside_options() -> None:
    pristine = build_cluster(use_downstream_protocol_config={"http_protocol_options": {}}, http_filters=[PEER_FILTER])
    found = patched(pristine, http2_protocol_options={})
    assert found == pristine


def test_the_clients_version_by_the_old_fields() -> None:
    found = patched(
        build_cluster(),
        protocol_selection="USE_DOWNSTREAM_PROTOCOL",
        http2_protocol_options={},
        common_http_protocol_options={"idle_timeout": {"seconds": 3}},
    )
    assert options_of(found) == {
        "commonHttpProtocolOptions": {"idleTimeout": "3s"},
        "useDownstreamProtocolConfig": {"httpProtocolOptions": {}, "http2ProtocolOptions": {}},
    }
    assert protos.to_json(found).keys() == {"name", "type", "typedExtensionProtocolOptions"}


def test_http_1_by_the_old_field() -> None:
    found = patched(build_cluster(), http_protocol_options={"accept_http_10": True})
    assert options_of(found)["explicitHttpConfig"] == {"httpProtocolOptions": {"acceptHttp10": True}}
