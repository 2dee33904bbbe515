"""Secrets by name, and the TLS contexts of servers that refer to them."""

import pytest

from mizzen import protos
from mizzen.compile.filters import alpn, sds
from mizzen.compile.filters.sds import ExternalSds
from mizzen.compile.filters.tls import Files, ServerTls, WorkloadTls, build_server_socket, build_workload_socket

NOBODY = ExternalSds()


def context(socket):
    return protos.to_json(socket)["typedConfig"]


@pytest.mark.parametrize(
    ("written", "name", "ca"),
    [
        ("shop-cert", "kubernetes://shop-cert", "kubernetes://shop-cert-cacert"),
        ("kubernetes-gateway://ns/c", "kubernetes-gateway://ns/c", "kubernetes-gateway://ns/c-cacert"),
        ("configmap://ns/c", "configmap://ns/c", "configmap://ns/c-cacert"),
        ("builtin://", "default", "ROOTCA"),
        ("invalid://whatever", "invalid://", "invalid://"),
    ],
)
def test_credentials_are_named_by_scheme(written, name, ca):
    assert sds.credential_name(written) == name
    assert sds.credential_name(written, ca=True) == ca


def test_external_secrets_come_from_the_socket_else_the_provider_else_the_control_plane():
    def source(external):
        found = protos.to_json(sds.build_credential_secret("sds://x", external))
        grpc = found["sdsConfig"].get("apiConfigSource", {}).get("grpcServices", [{}])[0].get("envoyGrpc", {})
        return found["name"], grpc.get("clusterName", "ads"), grpc.get("authority", "")

    assert source(ExternalSds(socket=True, cluster="c")) == ("sds://x", "sds-external", "")
    assert source(ExternalSds(cluster="outbound|1||s", authority="s")) == ("x", "outbound|1||s", "s")
    assert source(NOBODY) == ("kubernetes://x", "ads", "")


def test_only_the_workloads_own_secrets_are_waited_for():
    assert "initialFetchTimeout" in protos.to_json(sds.build_workload_secret("default"))["sdsConfig"]
    assert "initialFetchTimeout" not in protos.to_json(sds.build_file_secret("file-root:/a"))["sdsConfig"]


def test_a_sidecar_lets_in_only_its_trust_domains():
    tls = WorkloadTls(dialect="istio", trust_domains=("a.example", "b.example"))
    found = context(build_workload_socket(tls, alpn.TERMINATED_HTTP))
    assert found["requireClientCertificate"] is True
    names = found["commonTlsContext"]["combinedValidationContext"]["defaultValidationContext"]
    assert names == {"matchSubjectAltNames": [{"prefix": "spiffe://a.example/"}, {"prefix": "spiffe://b.example/"}]}


def test_upstream_envoy_is_told_the_kind_of_name():
    tls = WorkloadTls(dialect="envoy", trust_domains=("a.example",))
    validation = context(build_workload_socket(tls, ("h2",)))["commonTlsContext"]["combinedValidationContext"]
    assert validation["defaultValidationContext"] == {
        "matchTypedSubjectAltNames": [{"sanType": "URI", "matcher": {"prefix": "spiffe://a.example/"}}]
    }


def test_files_stand_in_for_secrets():
    tls = WorkloadTls(
        dialect="istio", trust_domains=("a",), files=Files(chain="/c", key="/k"), root_file="/r", file_credential=True
    )
    common = context(build_workload_socket(tls, ("h2",)))["commonTlsContext"]
    (certificate,) = common["tlsCertificateSdsSecretConfigs"]
    root = common["combinedValidationContext"]["validationContextSdsSecretConfig"]
    assert (certificate["name"], root["name"]) == ("file-cert:/c~/k", "file-root:/r")
    cluster = certificate["sdsConfig"]["apiConfigSource"]["grpcServices"][0]["envoyGrpc"]["clusterName"]
    assert cluster == "sds-files-grpc"


@pytest.mark.parametrize(
    ("mode", "required", "validated"),
    [("SIMPLE", False, False), ("OPTIONAL_MUTUAL", False, True), ("MUTUAL", True, True), ("ISTIO_MUTUAL", True, True)],
)
def test_modes_of_a_gateway(mode, required, validated):
    found = context(build_server_socket(ServerTls(dialect="istio", mode=mode, credentials=("c",)), ("h2",)))
    assert found["requireClientCertificate"] is required
    assert ("combinedValidationContext" in found["commonTlsContext"]) is validated


def test_the_first_of_several_credentials_brings_the_roots():
    tls = ServerTls(dialect="istio", mode="MUTUAL", credentials=("a", "b"))
    common = context(build_server_socket(tls, ("h2",)))["commonTlsContext"]
    assert [c["name"] for c in common["tlsCertificateSdsSecretConfigs"]] == ["kubernetes://a", "kubernetes://b"]
    root = common["combinedValidationContext"]["validationContextSdsSecretConfig"]["name"]
    assert root == "kubernetes://a-cacert"


def test_a_credential_of_its_own_brings_the_roots():
    tls = ServerTls(dialect="istio", mode="MUTUAL", credentials=("a",), ca_credential="roots")
    validation = context(build_server_socket(tls, ("h2",)))["commonTlsContext"]["combinedValidationContext"]
    assert validation["validationContextSdsSecretConfig"]["name"] == "kubernetes://roots"


def test_hashes_and_revocation_reach_the_context():
    by_secret = ServerTls(
        dialect="istio", mode="MUTUAL", credentials=("a",), certificate_hashes=("h",), spki_hashes=("s",)
    )
    default = context(build_server_socket(by_secret, ("h2",)))["commonTlsContext"]["combinedValidationContext"][
        "defaultValidationContext"
    ]
    assert (default["verifyCertificateHash"], default["verifyCertificateSpki"]) == (["h"], ["s"])
    by_file = ServerTls(
        dialect="istio", mode="MUTUAL", files=(Files(chain="/c", key="/k"),), root_file="/r", crl_file="/crl"
    )
    default = context(build_server_socket(by_file, ("h2",)))["commonTlsContext"]["combinedValidationContext"][
        "defaultValidationContext"
    ]
    assert default["crl"] == {"filename": "/crl"}
