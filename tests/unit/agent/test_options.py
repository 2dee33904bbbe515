"""Options out of environment, arguments and files, under pilot-agent's names."""

import pytest

from mizzen import settings
from mizzen.agent import options
from mizzen.agent.options import Flags
from mizzen.errors import DecodeError, UsageError

INJECTED = {
    "POD_NAME": "front-0",
    "POD_NAMESPACE": "web",
    "SERVICE_ACCOUNT": "front",
    "TRUST_DOMAIN": "example.org",
    "CA_ADDR": "istiod-canary.istio-system.svc:15012",
    "ISTIO_META_CLUSTER_ID": "east",
    "ISTIO_META_WORKLOAD_NAME": "front",
    "PROXY_CONFIG": '{"discoveryAddress": "istiod-canary.istio-system.svc:15012", "proxyMetadata": {"A": "b"}}',
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(environ=(), addresses=("10.1.1.10",), **flags) -> options.Options:
    environ = {**INJECTED, **dict(environ)}
    loaded, _ = settings.load(environ)
    return options.read_options(Flags(**flags), environ, loaded.agent, addresses)


def write(tmp_path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_injected_environment_says_who_the_pod_is() -> None:
    found = read(domain="web.svc.cluster.example")
    assert found.pod.node_id == "sidecar~10.1.1.10~front-0.web~web.svc.cluster.example"
    assert found.spiffe_id == "spiffe://example.org/ns/web/sa/front"
    assert found.metadata["MIZZEN_DIALECT"] == "envoy"
    assert found.metadata["CLUSTER_ID"] == "east"
    assert found.environ["A"] == "b"
    assert str(found.xds_socket) == "etc/istio/proxy/XDS"


def test_control_plane_is_reached_by_tls_with_the_projected_token() -> None:
    found = read({"XDS_HEADER_X_TENANT": "t", "CA_HEADER_X_OTHER": "o"})
    for endpoint in (found.discovery, found.authority):
        assert endpoint.address == "istiod-canary.istio-system.svc:15012"
        assert endpoint.tls
        assert str(endpoint.token) == "var/run/secrets/tokens/istio-token"
        assert [str(path) for path in endpoint.roots] == [
            "etc/certs/root-cert.pem",
            "var/run/secrets/istio/root-cert.pem",
        ]
    assert dict(found.discovery.headers) == {"clusterid": "east", "x-tenant": "t"}
    assert dict(found.authority.headers) == {"clusterid": "east", "x-other": "o"}


def test_operators_choices_for_trust_and_tokens() -> None:
    found = read(
        {
            "XDS_ROOT_CA": "/roots/xds.pem",
            "CA_ROOT_CA": "SYSTEM",
            "ISTIOD_SAN": "istiod.istio-system.svc",
            "JWT_POLICY": "first-party-jwt",
            "PROV_CERT": "/etc/certs",
        }
    )
    assert [str(path) for path in found.discovery.roots] == ["/roots/xds.pem"]
    assert "/etc/ssl/certs/ca-certificates.crt" in [str(path) for path in found.authority.roots]
    assert found.discovery.server_name == "istiod.istio-system.svc"
    assert found.metadata["PILOT_SAN"] == ["istiod.istio-system.svc"]
    assert str(found.discovery.token) == "var/run/secrets/kubernetes.io/serviceaccount/token"
    assert str(found.discovery.certificate) == "/etc/certs"
    assert read({"JWT_POLICY": "none"}).discovery.token is None


def test_plain_control_plane_where_the_policy_says_none() -> None:
    config = '{"discoveryAddress": "unix:///run/mizzen/xds", "controlPlaneAuthPolicy": "NONE"}'
    found = read({"PROXY_CONFIG": config, "CA_ADDR": ""})
    assert not found.discovery.tls
    assert found.authority.address == "unix:///run/mizzen/xds"


def test_downward_api_gives_labels_and_annotations(tmp_path) -> None:
    write(tmp_path, "etc/istio/pod/labels", 'app="front"\npod-template-hash="abc"\nquoted="a \\"b\\""\n')
    write(tmp_path, "etc/istio/pod/annotations", 'proxy.istio.io/config="concurrency: 3\\nstatusPort: 15999\\n"\n')
    found = read({"CANONICAL_SERVICE": "shop"})
    assert found.metadata["LABELS"] == {
        "app": "front",
        "quoted": 'a "b"',
        "service.istio.io/canonical-name": "shop",
    }
    assert (found.config.concurrency, found.config.status_port) == (3, 15999)


def test_proxy_config_of_mesh_then_variable_then_annotation_then_argument(tmp_path) -> None:
    write(tmp_path, "etc/istio/config/mesh", "defaultConfig: {concurrency: 1, statusPort: 1, drainDuration: 1s}")
    write(tmp_path, "etc/istio/pod/annotations", 'proxy.istio.io/config="statusPort: 3"\n')
    config = read({"PROXY_CONFIG": "statusPort: 2\ndrainDuration: 2s"}, service_cluster="mine").config
    assert (config.concurrency, config.drain_duration, config.status_port) == (1, "2s", 3)
    assert config.service_cluster == "mine"


def test_broken_mesh_config_is_named(tmp_path) -> None:
    write(tmp_path, "mesh.yaml", "defaultConfig: [")
    with pytest.raises(DecodeError, match="mesh config"):
        read(mesh_config="mesh.yaml")


def test_proxy_metadata_is_environment_of_the_weaker_kind() -> None:
    config = "proxyMetadata: {SECRET_TTL: 1h, OUTPUT_CERTS: /a, ISTIO_META_DNS_CAPTURE: 'true', TRUST_DOMAIN: weak}"
    found = read({"PROXY_CONFIG": config, "OUTPUT_CERTS": "/b"})
    assert (found.agent.certificate_ttl, found.agent.output_certificates) == (3600, "/b")
    assert found.trust_domain == "example.org"
    assert found.captures_dns


def test_dns_is_served_only_where_it_is_captured_or_an_address_is_given() -> None:
    assert not read().captures_dns
    assert read({"ISTIO_META_DNS_CAPTURE": "true"}).captures_dns
    found = read({"DNS_PROXY_ADDR": "127.0.0.1:53"})
    assert found.captures_dns
    assert found.metadata["DNS_PROXY_ADDR"] == "127.0.0.1:53"


def test_own_variables() -> None:
    found = read({"MIZZEN_PROXY_UID": "1337", "MIZZEN_SOCKET_MARK": "42", "MIZZEN_BIND_ADDRESS": "127.1.0.7"})
    assert (found.proxy_uid, found.socket_mark, found.bind_address, found.loopback) == (
        1337,
        42,
        "127.1.0.7",
        "127.1.0.7",
    )
    assert (read().proxy_uid, read().socket_mark, read().loopback) == (None, 0, "127.0.0.1")
    assert read(addresses=("fd00::1",)).loopback == "::1"
    with pytest.raises(UsageError, match="MIZZEN_PROXY_UID"):
        read({"MIZZEN_PROXY_UID": "nobody"})


def test_istio_dialect_where_told() -> None:
    assert read({"ISTIO_META_MIZZEN_DIALECT": "istio"}).metadata["MIZZEN_DIALECT"] == "istio"


def test_arguments_become_metadata() -> None:
    found = read({"EXIT_ON_ZERO_ACTIVE_CONNECTIONS": "true"}, outlier_log_path="/dev/stdout", sts_port=15463)
    assert found.metadata["OUTLIER_LOG_PATH"] == "/dev/stdout"
    assert found.metadata["STS_PORT"] == "15463"
    assert found.metadata["EXIT_ON_ZERO_ACTIVE_CONNECTIONS"] == "true"


def test_unusable_starts_say_why() -> None:
    with pytest.raises(UsageError, match="waypoint"):
        read(role="waypoint")
    with pytest.raises(UsageError, match="INSTANCE_IP"):
        read(addresses=())


def test_roots_that_the_operator_names_are_trusted_alone() -> None:
    found = read({"XDS_ROOT_CA": "/own.pem"})
    assert found.discovery.pushed_roots is None
    assert str(found.authority.pushed_roots) == "etc/istio/proxy/identity/pushed-roots.pem"


def test_certificates_that_the_pod_brings_along_are_found(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read().mounted_certificate is None
    assert str(read({"FILE_MOUNTED_CERTS": "true"}).mounted_certificate) == "etc/certs"
    folder = "var/run/secrets/workload-spiffe-credentials"
    for name in ("cert-chain.pem", "key.pem"):
        write(tmp_path, f"{folder}/{name}", "x")
    assert read().mounted_certificate is None, "not yet whole"
    write(tmp_path, f"{folder}/root-cert.pem", "x")
    assert str(read().mounted_certificate) == folder
