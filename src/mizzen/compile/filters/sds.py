"""Secrets by name: the SDS configurations that TLS contexts of listeners and clusters refer to.

In: what a secret is (the workload's own certificate, files on the proxy's disk, a credential in the cluster). Out:
`SdsSecretConfig` messages, whose names are Istio's. Which context wants which secret is the business of `tls` and of
the clusters. Golden cases: gateway/tls-credentials, gateway/tls-files-and-versions, networking/dr-tls-modes.
"""

import functools
from typing import Any

import msgspec

from mizzen import protos

_tls_v3 = protos.package("envoy.extensions.transport_sockets.tls.v3")

WORKLOAD = "default"
ROOT = "ROOTCA"
SYSTEM_ROOTS = "file-root:system"

_SCHEMES = ("kubernetes://", "kubernetes-gateway://", "configmap://")
_CA = "-cacert"


class ExternalSds(msgspec.Struct, frozen=True, kw_only=True):
    """How a proxy reaches secrets named `sds://…`; a proxy with neither asks the control plane for them."""

    socket: bool = False
    """The node has the external SDS socket: cluster `sds-external`."""
    cluster: str = ""
    """Otherwise the cluster of the mesh's SDS extension provider."""
    authority: str = ""


def _grpc_source(cluster: str, authority: str = "") -> dict[str, Any]:
    service: dict[str, Any] = {"cluster_name": cluster}
    if authority:
        service["authority"] = authority
    return {
        "api_type": "GRPC",
        "set_node_on_first_message_only": True,
        "transport_api_version": "V3",
        "grpc_services": [{"envoy_grpc": service}],
    }


def _secret(name: str, cluster: str, *, authority: str = "", wait_for_ever: bool = False) -> Any:
    config: dict[str, Any] = {
        "api_config_source": _grpc_source(cluster, authority),
        "resource_api_version": "V3",
    }
    if wait_for_ever:
        config["initial_fetch_timeout"] = {}
    return _tls_v3.SdsSecretConfig(name=name, sds_config=config)


@functools.cache
def build_workload_secret(name: str) -> Any:
    """`default` (certificate and key) or `ROOTCA`, from the agent."""
    return _secret(name, "sds-grpc", wait_for_ever=True)


def build_file_secret(name: str, *, file_credential: bool = False) -> Any:
    """A secret made of files, from the agent; the proxies with `file-credential` metadata have a cluster for these."""
    return _secret(name, "sds-files-grpc" if file_credential else "sds-grpc")


def file_certificate_name(chain: str, key: str) -> str:
    """The name of a certificate and key in files."""
    return f"file-cert:{chain}~{key}"


def file_root_name(root: str) -> str:
    """The name of trusted roots in a file."""
    return f"file-root:{root}"


def credential_name(credential: str, *, ca: bool = False) -> str:
    """The secret's name for a `credentialName`; with `ca` that of its trusted roots."""
    suffix = _CA if ca and not credential.endswith(_CA) else ""
    if credential.startswith("builtin://"):
        return ROOT if ca else WORKLOAD
    if credential.startswith("invalid://"):
        return "invalid://"
    if "://" in credential:
        return credential + suffix
    return f"kubernetes://{credential}{suffix}"


def build_credential_secret(credential: str, external: ExternalSds, *, ca: bool = False) -> Any:
    """The secret that a `credentialName` means, from whoever holds it."""
    name = credential_name(credential, ca=ca)
    if credential.startswith("builtin://"):
        return build_workload_secret(name)
    if credential.startswith("sds://"):
        if external.socket:
            return _secret(name, "sds-external")
        bare = name.removeprefix("sds://")
        if external.cluster:
            return _secret(bare, external.cluster, authority=external.authority)
        name = f"kubernetes://{bare}"
    return _tls_v3.SdsSecretConfig(name=name, sds_config={"ads": {}, "resource_api_version": "V3"})
