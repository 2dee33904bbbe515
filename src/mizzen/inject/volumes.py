"""Volumes of the proxy and where it mounts them.

In: the installation, the pod's overrides and its service account. Out: the two lists, in Istio's order, as raw
manifests.
"""

from typing import Any

from mizzen.inject.overrides import Overrides
from mizzen.inject.values import InjectionConfig

TOKEN_SECONDS = 43200

_FROM_ISTIOD = "istiod"


def build_volumes(config: InjectionConfig, overrides: Overrides, *, service_account: str) -> list[dict[str, Any]]:
    """All volumes that an injected pod gets."""
    volumes: list[dict[str, Any]] = []
    if overrides.bootstrap_override:
        volumes.append({"name": "custom-bootstrap-volume", "configMap": {"name": overrides.bootstrap_override}})
    volumes += [{"name": name, "emptyDir": {}} for name in ("workload-socket", "credential-socket", "workload-certs")]
    volumes.append({"name": "istio-envoy", "emptyDir": {"medium": "Memory"}})
    volumes.append({"name": "istio-data", "emptyDir": {}})
    volumes.append(
        {"name": "istio-podinfo", "downwardAPI": {"items": [_pod_field("labels"), _pod_field("annotations")]}}
    )
    volumes.append({"name": "istio-token", "projected": {"sources": [{"serviceAccountToken": _token(config)}]}})
    if config.cert_provider == _FROM_ISTIOD:
        volumes.append({"name": "istiod-ca-cert", "configMap": {"name": "istio-ca-root-cert"}})
        volumes.append({"name": "istio-ca-crl", "configMap": {"name": "istio-ca-crl", "optional": True}})
    if config.mount_mtls_certs:
        secret = f"istio.{service_account or 'default'}"
        volumes.append({"name": "istio-certs", "secret": {"optional": True, "secretName": secret}})
    volumes += [{"name": name, **source} for name, source in sorted(overrides.user_volumes.items())]
    return volumes


def build_mounts(config: InjectionConfig, overrides: Overrides) -> list[dict[str, Any]]:
    """Where istio-proxy finds them."""
    mounts = [
        ("workload-socket", "/var/run/secrets/workload-spiffe-uds"),
        ("credential-socket", "/var/run/secrets/credential-uds"),
        ("workload-certs", "/var/run/secrets/workload-spiffe-credentials"),
    ]
    if config.cert_provider == _FROM_ISTIOD:
        mounts += [("istiod-ca-cert", "/var/run/secrets/istio"), ("istio-ca-crl", "/var/run/secrets/istio/crl")]
    mounts.append(("istio-data", "/var/lib/istio/data"))
    if overrides.bootstrap_override:
        mounts.append(("custom-bootstrap-volume", "/etc/istio/custom-bootstrap"))
    mounts += [
        ("istio-envoy", "/etc/istio/proxy"),
        ("istio-token", "/var/run/secrets/tokens"),
        ("istio-podinfo", "/etc/istio/pod"),
    ]
    listed: list[dict[str, Any]] = [{"name": name, "mountPath": path} for name, path in mounts]
    if config.mount_mtls_certs:
        listed.append({"name": "istio-certs", "mountPath": "/etc/certs/", "readOnly": True})
    listed += [{"name": name, **mount} for name, mount in sorted(overrides.user_volume_mounts.items())]
    return listed


def _pod_field(name: str) -> dict[str, Any]:
    return {"path": name, "fieldRef": {"fieldPath": f"metadata.{name}"}}


def _token(config: InjectionConfig) -> dict[str, Any]:
    return {"path": "istio-token", "expirationSeconds": TOKEN_SECONDS, "audience": config.token_audience}
