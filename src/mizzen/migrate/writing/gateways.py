"""The ways in: the Gateway with its listeners, and Istio Gateways for hosts that VirtualServices serve.

A listener for each host with a certificate; where these are too many for one Gateway, ListenerSets beside the
certificates hold them. Certificates of other namespaces are granted to the Gateway.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.migrate.settings import ClientTLS
from mizzen.migrate.writing.documents import (
    GATEWAY_API,
    ISTIO_NETWORKING,
    Document,
    Target,
    document,
    host_name,
    reference_grant,
    section_name,
)

_MOST_LISTENERS = 64
_FOR_ALL = {"namespaces": {"from": "All"}}
_TERMINATE_MODE = "gateway.istio.io/tls-terminate-mode"


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What a host shows, and whether its clients show something."""

    namespace: str
    secret: str
    client_tls: ClientTLS | None = None

    @property
    def mode(self) -> str:
        """How clients are validated, in Istio's word; empty where they are not."""
        if self.client_tls is None:
            return ""
        return "OPTIONAL_MUTUAL" if self.client_tls.optional else "MUTUAL"


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """All hosts that the Gateway serves itself."""

    target: Target
    https: Mapping[str, Certificate]
    passthrough: Sequence[str] = ()
    opens_https: bool = False
    """Whether port 443 is needed though no listener has it."""

    @property
    def _overflows(self) -> bool:
        return 1 + len(self.https) + len(self.passthrough) > _MOST_LISTENERS

    def parents(self, hosts: Sequence[str], *, http: bool, https: bool) -> list[dict[str, Any]]:
        """What routes of some hosts attach to."""
        gateway = {"name": self.target.name, "namespace": self.target.namespace}
        found = [{**gateway, "sectionName": "http"}] if http else []
        for host in hosts if https else ():
            certificate = self.https.get(host)
            if certificate is not None:
                found.append({**(self._set_of(host) or gateway), "sectionName": section_name(host)})
        return found

    def passthrough_parent(self, host: str) -> dict[str, Any]:
        """What a route of a host whose TLS is let through attaches to."""
        section = f"tls-{host_name(host)}"
        return {"name": self.target.name, "namespace": self.target.namespace, "sectionName": section}

    # -- documents ----------------------------------------------------------------------------------------------------

    def documents(self) -> Iterator[Document]:
        """The Gateway, ListenerSets, grants, and what customises the Service."""
        spec: dict[str, Any] = {"gatewayClassName": "istio", "listeners": list(self._listeners())}
        if self._overflows:
            spec["allowedListeners"] = _FOR_ALL
        if self.opens_https and not self.https and not self.passthrough:
            name = f"{self.target.name}-parameters"
            spec["infrastructure"] = {"parametersRef": {"group": "", "kind": "ConfigMap", "name": name}}
            yield _service_port(name, self.target.namespace)
        yield document(GATEWAY_API, "Gateway", self.target.namespace, self.target.name, spec)
        if self._overflows:
            yield from self._sets()
        else:
            yield from self._grants()

    def _listeners(self) -> Iterator[dict[str, Any]]:
        yield {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": _FOR_ALL}
        for host in self.passthrough:
            yield {
                "name": f"tls-{host_name(host)}",
                "port": 443,
                "protocol": "TLS",
                "hostname": host,
                "tls": {"mode": "Passthrough"},
                "allowedRoutes": _FOR_ALL,
            }
        if not self._overflows:
            yield from (_https(host, own, self.target.namespace) for host, own in self.https.items())

    def _grants(self) -> Iterator[Document]:
        wanted: dict[str, dict[str, None]] = {}
        for own in self.https.values():
            if own.namespace != self.target.namespace:
                wanted.setdefault(own.namespace, {})[own.secret] = None
        for namespace, secrets in sorted(wanted.items()):
            yield reference_grant(
                f"{self.target.name}-certificates",
                of=("Gateway", self.target.namespace),
                to="Secret",
                referents=secrets,
                referents_namespace=namespace,
            )

    def _set_of(self, host: str) -> dict[str, Any] | None:
        if not self._overflows:
            return None
        namespace = self.https[host].namespace
        position = [name for name, own in self.https.items() if own.namespace == namespace].index(host)
        name = f"{self.target.name}-{position // _MOST_LISTENERS + 1}"
        return {"group": GATEWAY_GROUP, "kind": "ListenerSet", "name": name, "namespace": namespace}

    def _sets(self) -> Iterator[Document]:
        parent = {"name": self.target.name, "namespace": self.target.namespace}
        for namespace in sorted({own.namespace for own in self.https.values()}):
            hosts = [host for host, own in self.https.items() if own.namespace == namespace]
            listeners = [_https(host, self.https[host], namespace) for host in hosts]
            for start in range(0, len(listeners), _MOST_LISTENERS):
                spec = {"parentRef": parent, "listeners": listeners[start : start + _MOST_LISTENERS]}
                name = f"{self.target.name}-{start // _MOST_LISTENERS + 1}"
                yield document(GATEWAY_API, "ListenerSet", namespace, name, spec)


def _https(host: str, own: Certificate, namespace: str) -> dict[str, Any]:
    reference = {"name": own.secret}
    if own.namespace != namespace:
        reference["namespace"] = own.namespace
    tls: dict[str, Any] = {"mode": "Terminate", "certificateRefs": [reference]}
    if own.mode:
        tls["options"] = {_TERMINATE_MODE: own.mode}
    listener = {"name": section_name(host), "port": 443, "protocol": "HTTPS", "tls": tls, "allowedRoutes": _FOR_ALL}
    return {**listener, "hostname": host} if host else listener


def _service_port(name: str, namespace: str) -> Document:
    """A Service of a Gateway has its listeners' ports alone; the other one comes by a patch."""
    patch = "spec: {ports: [{name: https, port: 443, protocol: TCP, appProtocol: https}]}\n"
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"service": patch}}


def istio_gateway(
    name: str, target: Target, hosts: Sequence[str], *, http: bool, certificate: Certificate | None, credential: str
) -> Document:
    """An Istio Gateway on the proxies of the target; `credential` is the certificate's Secret beside them."""
    named = [f"./{host}" if host else "*" for host in hosts]
    servers: list[dict[str, Any]] = []
    if http:
        servers.append({"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": named})
    if certificate is not None:
        tls = {"mode": certificate.mode or "SIMPLE", "credentialName": credential}
        servers.append({"port": {"number": 443, "name": "https", "protocol": "HTTPS"}, "hosts": named, "tls": tls})
    spec = {"selector": dict(target.labels), "servers": servers}
    return document(ISTIO_NETWORKING, "Gateway", target.namespace, name, spec)
