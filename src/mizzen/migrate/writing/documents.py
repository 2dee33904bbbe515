"""Names, metadata and references that all documents share."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mizzen.model import names

GATEWAY_API = "gateway.networking.k8s.io/v1"
ISTIO_NETWORKING = "networking.istio.io/v1"
ISTIO_SECURITY = "security.istio.io/v1"
GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"

Document = dict[str, Any]

_UNFIT = re.compile(r"[^a-z0-9.-]+")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The Gateway that takes the place of nginx."""

    name: str
    namespace: str
    domain: str = "cluster.local"

    @property
    def labels(self) -> Mapping[str, str]:
        """Those by which its proxies are selected."""
        return {GATEWAY_NAME: self.name}


def document(version: str, kind: str, namespace: str, name: str, spec: Mapping[str, Any]) -> Document:
    """An object."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def host_name(host: str) -> str:
    """A host as a part of objects' names."""
    if not host:
        return "any-host"
    return _UNFIT.sub("-", host.lower().replace("*.", "wildcard.")).strip("-.")


def istio_name(target: Target, host: str) -> str:
    """The Istio Gateway and VirtualService of a host: names of Istio Gateways have no dots."""
    return names.label_value(f"{target.name}-{host_name(host).replace('-', '--').replace('.', '-')}")


def section_name(host: str) -> str:
    """The listener that terminates TLS for a host."""
    return f"https-{host_name(host)}"
