"""Names, metadata and references that all documents share."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.model import names

GATEWAY_API = f"{GATEWAY_GROUP}/v1"
ISTIO_NETWORKING = "networking.istio.io/v1"
ISTIO_SECURITY = "security.istio.io/v1"
GATEWAY_NAME = f"{GATEWAY_GROUP}/gateway-name"

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


def reference_grant(
    name: str, *, of: tuple[str, str], to: str, referents: Iterable[str], referents_namespace: str
) -> Document:
    """Leave for objects of one kind and namespace (`of`) to name core objects of the kind `to` in another namespace."""
    kind, namespace = of
    spec = {
        "from": [{"group": GATEWAY_GROUP, "kind": kind, "namespace": namespace}],
        "to": [{"group": "", "kind": to, "name": referent} for referent in referents],
    }
    return document(GATEWAY_API, "ReferenceGrant", referents_namespace, name, spec)


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
