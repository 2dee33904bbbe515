"""The check of the acceptance tests fails where it should: one bad resource among a case's good ones is found."""

from collections.abc import Sequence
from typing import Any

import acceptance_control
import acceptance_envoy
import acceptance_verdict
import golden
import pytest

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.resource import Resource

pytestmark = pytest.mark.envoy

_cluster_v3 = protos.package("envoy.config.cluster.v3")
_core_v3 = protos.package("envoy.config.core.v3")
_endpoint_v3 = protos.package("envoy.config.endpoint.v3")
_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_route_v3 = protos.package("envoy.config.route.v3")
_router_v3 = protos.package("envoy.extensions.filters.http.router.v3")
_tls_v3 = protos.package("envoy.extensions.transport_sockets.tls.v3")

BAD = "a-bad-one"
FRONT = "outbound|80||front.web.svc.cluster.local"
ROUTER_TYPE = protos.TYPE_PREFIX + "envoy.extensions.filters.http.router.v3.Router"


async def faults_with(
    *spoiled: tuple[str, Any], case_name: str = "base", proxy: str = "front", seconds: float = 15.0
) -> str:
    """What is found wrong when these messages, with their type URLs, stand among a case's resources."""
    case = golden.load_case(case_name)
    db = golden.engine_of(case)
    by_type: dict[str, list[Resource]] = {}
    for type_url, message in spoiled:
        name = message.cluster_name if type_url == resource.ENDPOINT else message.name
        by_type.setdefault(type_url, []).append(resource.encode_resource(name, message))
    for type_url, resources in by_type.items():
        for key, value in acceptance_control.spoiling(type_url, *resources).items():
            db.set(key, value)
    return "\n".join((await acceptance_verdict.judge(db, case, proxy, seconds)).faults)


def build_listener(*filters: Any) -> Any:
    address = {"socket_address": {"address": "10.1.1.10", "port_value": 4000}}
    return _listener_v3.Listener(name=BAD, address=address, filter_chains=[{"filters": filters}])


def build_fetching_listener() -> Any:
    """A listener one of whose HTTP filters is configured over ADS."""
    source = {"config_source": {"ads": {}, "initial_fetch_timeout": {}, "resource_api_version": "V3"}}
    filters = [
        {"name": BAD, "config_discovery": {**source, "type_urls": [ROUTER_TYPE]}},
        {"name": "router", "typed_config": protos.pack(_router_v3.Router())},
    ]
    manager = _hcm_v3.HttpConnectionManager(stat_prefix="x", http_filters=filters, route_config={"name": "x"})
    return build_listener({"name": "manager", "typed_config": protos.pack(manager)})


def build_routes(**match: Any) -> Any:
    hosts = [{"name": "all", "domains": ["*"], "routes": [{"match": match, "direct_response": {"status": 200}}]}]
    return _route_v3.RouteConfiguration(name="80", virtual_hosts=hosts)


async def test_a_case_has_no_faults_as_it_is() -> None:
    assert await faults_with() == ""


async def test_a_cluster_that_envoy_refuses() -> None:
    faults = await faults_with((resource.CLUSTER, _cluster_v3.Cluster(name=BAD, type="EDS")))
    assert f"CDS rejected: Internal:Error adding/updating cluster(s) {BAD}" in faults
    assert "cluster_manager.cds.update_rejected is 1" in faults
    assert f"CDS: {BAD} does not stand in Envoy's configuration" in faults


async def test_endpoints_that_envoy_refuses() -> None:
    weightless: Sequence[Any] = [{"lb_endpoints": [{"load_balancing_weight": {}}]}]
    assignment = _endpoint_v3.ClusterLoadAssignment(cluster_name=FRONT, endpoints=weightless)
    faults = await faults_with((resource.ENDPOINT, assignment))
    assert "EDS rejected" in faults
    assert f"cluster.{FRONT};.update_rejected is 1" in faults


async def test_a_listener_with_a_filter_that_only_istios_proxy_has() -> None:
    exchange = protos.typed_struct("type.googleapis.com/envoy.tcp.metadataexchange.config.MetadataExchange", {})
    listener = build_listener({"name": "istio.metadata_exchange", "typed_config": exchange})
    faults = await faults_with((resource.LISTENER, listener))
    assert "LDS rejected" in faults
    assert "Didn't find a registered implementation for 'istio.metadata_exchange'" in faults
    assert "listener_manager.lds.update_rejected is 1" in faults
    assert f"LDS: {BAD} does not stand in Envoy's configuration" in faults


async def test_a_route_whose_expression_does_not_compile() -> None:
    faults = await faults_with((resource.ROUTE, build_routes(safe_regex={"regex": "("})))
    assert "RDS rejected" in faults
    assert "rds.80.update_rejected is 1" in faults


async def test_a_secret_whose_key_does_not_fit() -> None:
    name = "kubernetes://shop-cert"
    chain, key = (b"-----BEGIN CERTIFICATE-----\n", b"nothing")
    certificate = {"certificate_chain": {"inline_bytes": chain}, "private_key": {"inline_bytes": key}}
    secret = _tls_v3.Secret(name=name, tls_certificate=certificate)
    faults = await faults_with(
        (resource.SECRET, secret), case_name="gateway/tls-credentials", proxy="ingress", seconds=5.0
    )
    assert "SDS rejected" in faults
    assert "sds.kubernetes_shop-cert.update_rejected is 1" in faults


async def test_an_extension_of_a_type_that_envoy_lacks() -> None:
    config = protos.typed_struct("type.googleapis.com/istio.nothing.Config", {})
    extension = _core_v3.TypedExtensionConfig(name=BAD, typed_config=config)
    faults = await faults_with(
        (resource.LISTENER, build_fetching_listener()), (resource.EXTENSION, extension), seconds=5.0
    )
    assert "ECDS rejected" in faults
    assert f"extension_config_discovery.http_filter.{BAD}.update_rejected is 1" in faults


async def test_a_listener_that_never_becomes_active() -> None:
    faults = await faults_with((resource.LISTENER, build_fetching_listener()), seconds=5.0)
    assert f"ECDS not sent: {BAD}" in faults
    assert "not settled within 5 s" in faults
    assert f"LDS: {BAD} does not stand in Envoy's configuration" in faults


async def test_a_deprecated_field() -> None:
    cluster = _cluster_v3.Cluster(name=BAD, type="STRICT_DNS", dns_refresh_rate={"seconds": 5})
    faults = await faults_with((resource.CLUSTER, cluster))
    assert "Using deprecated option 'envoy.config.cluster.v3.Cluster.dns_refresh_rate'" in faults
    assert "runtime.deprecated_feature_use is 1" in faults


async def test_a_field_that_envoy_does_not_know() -> None:
    cluster = _cluster_v3.Cluster(name=BAD, type="STATIC")
    cluster.MergeFromString(b"\xba\x3e\x01x")  # field 999, a string
    assert "CDS rejected" in await faults_with((resource.CLUSTER, cluster))


async def test_a_change_that_envoy_refuses_and_the_next_that_it_takes() -> None:
    case = golden.load_case("base")
    db = golden.engine_of(case)
    identity = golden.node_of(case.proxies["front"])
    identity["metadata"]["MIZZEN_DIALECT"] = "envoy"
    bad = resource.encode_resource(BAD, _cluster_v3.Cluster(name=BAD, type="EDS"))
    with acceptance_envoy.room() as root:
        async with (
            acceptance_control.serve(db, root / acceptance_envoy.XDS, root / acceptance_envoy.SDS) as control,
            acceptance_envoy.running(root, identity, ()) as envoy,
        ):
            assert await acceptance_verdict.faults_now(envoy, control) == []
            await control.change(acceptance_control.spoiling(resource.CLUSTER, bad))
            faults = await acceptance_verdict.faults_now(envoy, control)
            assert any(f"CDS rejected: Internal:Error adding/updating cluster(s) {BAD}" in fault for fault in faults)
            assert f"CDS: {BAD} does not stand in Envoy's configuration" in faults
            said = len(envoy.log)
            await control.change(acceptance_control.spoiling(resource.CLUSTER))
            assert await acceptance_verdict.faults_now(envoy, control, said=said) == []
