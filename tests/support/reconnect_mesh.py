"""A small mesh in three states, for tests of what is told after a reconnect, and what requests meet in each.

From `BEFORE` to `AFTER`: endpoints move, a route changes, a cluster changes whose endpoints do not, a service with its
route goes, another one comes; of the gateway's certificates one is rotated, one goes with its server, one comes. From
there to `LATER` everything that is left changes again: whoever has lost a subscription shows it then.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import traffic_certificates
import yaml

GATEWAY = {
    "kind": "router",
    "name": "edge-0",
    "namespace": "edge",
    "ip": "10.7.0.99",
    "labels": {"istio": "edge", "app": "edge"},
    "metadata": {"MIZZEN_DIALECT": "envoy"},
}
SIDECAR = {
    "kind": "sidecar",
    "name": "cart-0",
    "namespace": "shop",
    "ip": "10.7.0.2",
    "labels": {"app": "cart"},
    "metadata": {"MIZZEN_DIALECT": "envoy"},
}
ON_DEMAND = {**SIDECAR, "metadata": {**SIDECAR["metadata"], "MIZZEN_ON_DEMAND": "true"}}
"""A sidecar that is told of a host when it has a request to it."""
HTTP, HTTPS, APP = 8080, 8443, 8000
"""Ports of the gateway and of applications."""
STABLE = "stable.example"
"""The host to which every request succeeds in every state, and in between."""

AUTHORITY = traffic_certificates.Authority("reconnects")


@functools.cache
def certificate(name: str, number: int) -> tuple[str, str]:
    """Chain and key for a name; another number is another certificate."""
    return AUTHORITY.issue(name, organization=f"number {number}")


_NAMES = ("edge", "stable", "cart", "front", "gone", "fresh")


def _service(name: str, namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "targetPort": APP}]
    spec = {"clusterIP": f"10.8.0.{_NAMES.index(name) + 1}", "selector": {"app": name}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _slice(name: str, *addresses: str, namespace: str = "shop", port: int = APP) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
    }


def _routes(name: str, service: str, **more: Any) -> dict[str, Any]:
    http = [{"route": [{"destination": {"host": f"{service}.shop.svc.cluster.local"}}], **more}]
    spec = {"hosts": [f"{name}.example"], "gateways": ["edge/edge", "mesh"], "http": http}
    return _networking("VirtualService", name, "shop", spec)


def _networking(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _gateway(*names: str) -> dict[str, Any]:
    servers: list[dict[str, Any]] = [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}]
    for name in names:
        port = {"number": 443, "name": f"https-{name}", "protocol": "HTTPS"}
        tls = {"mode": "SIMPLE", "credentialName": name}
        servers.append({"port": port, "hosts": [f"{name}.example"], "tls": tls})
    return _networking("Gateway", "edge", "edge", {"selector": {"istio": "edge"}, "servers": servers})


def _secret(name: str, number: int) -> dict[str, Any]:
    chain, key = certificate(f"{name}.example", number)
    metadata = {"name": name, "namespace": "edge"}
    data = {"tls.crt": chain, "tls.key": key}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "stringData": data}


def _pool(connections: int) -> dict[str, Any]:
    spec = {
        "host": "stable.shop.svc.cluster.local",
        "trafficPolicy": {"connectionPool": {"http": {"http1MaxPendingRequests": connections}}},
    }
    return _networking("DestinationRule", "stable", "shop", spec)


_EDGE = _service("edge", "edge", selector={"istio": "edge"}, ports=[
    {"name": "http", "port": 80, "targetPort": HTTP},
    {"name": "https", "port": 443, "targetPort": HTTPS},
])  # fmt: skip
_MARK = {"headers": {"response": {"set": {"x-mark": "2"}}}}


class State(NamedTuple):
    """The mesh at one time."""

    objects: Sequence[dict[str, Any]]
    answers: Mapping[str, tuple[str, ...]]
    """First label of a host → addresses of the applications that may answer; other hosts are not found."""
    certificates: Mapping[str, int]
    """First label of a name → number of the certificate that is shown; for other names there is none."""

    @property
    def manifests(self) -> str:
        """The objects as YAML."""
        return yaml.safe_dump_all(self.objects, sort_keys=False)


_ALWAYS = (_EDGE, _slice("edge", "10.7.0.99", namespace="edge", port=HTTP))

BEFORE = State(
    objects=(
        *_ALWAYS,
        *map(_service, ("stable", "cart", "front", "gone")),
        _slice("stable", "10.7.0.1"),
        _slice("cart", "10.7.0.2"),
        _slice("front", "10.7.0.3"),
        _slice("gone", "10.7.0.4"),
        _pool(10),
        *(_routes(name, name) for name in ("stable", "cart", "front", "gone")),
        _gateway("kept", "old"),
        _secret("kept", 1),
        _secret("old", 1),
    ),
    answers={"stable": ("10.7.0.1",), "cart": ("10.7.0.2",), "front": ("10.7.0.3",), "gone": ("10.7.0.4",)},
    certificates={"kept": 1, "old": 1},
)
AFTER = State(
    objects=(
        *_ALWAYS,
        *map(_service, ("stable", "cart", "front", "fresh")),
        _slice("stable", "10.7.0.1"),
        _slice("cart", "10.7.0.12"),
        _slice("front", "10.7.0.3"),
        _slice("fresh", "10.7.0.5"),
        _pool(20),
        _routes("stable", "stable"),
        _routes("cart", "cart"),
        _routes("front", "cart", **_MARK),
        _routes("fresh", "fresh"),
        _gateway("kept", "new"),
        _secret("kept", 2),
        _secret("new", 1),
    ),
    answers={"stable": ("10.7.0.1",), "cart": ("10.7.0.12",), "front": ("10.7.0.12",), "fresh": ("10.7.0.5",)},
    certificates={"kept": 2, "new": 1},
)
LATER = State(
    objects=(
        *_ALWAYS,
        *map(_service, ("stable", "cart", "front", "fresh")),
        _slice("stable", "10.7.0.1", "10.7.0.21"),
        _slice("cart", "10.7.0.22"),
        _slice("front", "10.7.0.23"),
        _slice("fresh", "10.7.0.25"),
        _pool(30),
        _routes("stable", "stable", timeout="9s"),
        _routes("cart", "cart", **_MARK),
        _routes("front", "front"),
        _routes("fresh", "fresh", **_MARK),
        _gateway("kept", "new"),
        _secret("kept", 3),
        _secret("new", 2),
    ),
    answers={
        "stable": ("10.7.0.1", "10.7.0.21"),
        "cart": ("10.7.0.22",),
        "front": ("10.7.0.23",),
        "fresh": ("10.7.0.25",),
    },
    certificates={"kept": 3, "new": 2},
)


def _name(document: Mapping[str, Any]) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def _only(*changed: tuple[str, str]) -> State:
    """The state before, but for these objects, which are as after; front goes where cart is then."""
    objects = {_name(one): one for one in BEFORE.objects if _name(one) not in changed}
    objects |= {_name(one): one for one in AFTER.objects if _name(one) in changed}
    answers: dict[str, tuple[str, ...]] = {}
    for kind, name in objects:
        if kind == "VirtualService":
            moved = name == "front" and (kind, name) in changed
            service = "cart" if moved else name
            after = ("EndpointSlice", service) in changed
            answers[name] = (AFTER if after else BEFORE).answers[service]
    certificates = {
        name: (AFTER if ("Secret", name) in changed else BEFORE).certificates[name]
        for kind, name in objects
        if kind == "Secret"
    }
    return State(tuple(objects.values()), answers, certificates)


ALONE = {
    "nothing": BEFORE,
    "endpoint moved": _only(("EndpointSlice", "cart")),
    "cluster changed": _only(("DestinationRule", "stable")),
    "route changed": _only(("VirtualService", "front")),
    "service removed": _only(*((kind, "gone") for kind in ("Service", "EndpointSlice", "VirtualService"))),
    "endpoints removed": _only(("EndpointSlice", "gone"), ("VirtualService", "gone")),
    "new service": _only(*((kind, "fresh") for kind in ("Service", "EndpointSlice", "VirtualService"))),
    "secret rotated": _only(("Secret", "kept")),
    "server with another secret": _only(("Gateway", "edge"), ("Secret", "old"), ("Secret", "new")),
}
"""States in which one thing has changed since `BEFORE`."""
