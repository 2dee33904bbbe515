"""The proxy that asks: an xDS Node, read once into a frozen value.

In: the Node as protobuf JSON. Out: `Proxy`, hashable, equal for equal nodes. A query must never take a whole Proxy
further than it needs: select what matters, then call the next query with the selection.
Rules: the node id and metadata keys of the reference's proxy node. Golden cases: networking/node-settings,
networking/ip-families.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from mizzen.errors import SessionError

Kind = Literal["sidecar", "router", "waypoint"]
Dialect = Literal["istio", "envoy"]
Labels = tuple[tuple[str, str], ...]
"""Labels sorted by name; hashable, unlike a dict."""

ON_DEMAND = "MIZZEN_ON_DEMAND"
"""The metadata by which a proxy asks for virtual hosts on demand."""

_FIRST_ON_DEMAND = (1, 40)
"""Envoy before this answers the first request to a host with 404 when its body is not complete, or crashes."""
_NEWEST = (1_000_000, 0, 65535)
_VERSION_NUMBERS = (("majorNumber", "major_number"), ("minorNumber", "minor_number"))
_NUMBER = re.compile(r"\d{1,9}")
_VERSION = re.compile(r"^(?:release-)?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?")


class Locality(msgspec.Struct, frozen=True, order=True):
    """Region, zone and sub-zone; empty parts are unknown."""

    region: str = ""
    zone: str = ""
    subzone: str = ""

    def __str__(self) -> str:
        return "/".join(p for p in (self.region, self.zone, self.subzone) if p)

    def __bool__(self) -> bool:
        return bool(self.region or self.zone or self.subzone)


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Certificate files that the proxy has in place of secrets over SDS; empty means SDS."""

    server_chain: str = ""
    server_key: str = ""
    server_root: str = ""
    client_chain: str = ""
    client_key: str = ""
    client_root: str = ""


class Proxy(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """One Envoy, as its node describes it."""

    id: str
    kind: Kind
    ip_addresses: tuple[str, ...]
    name: str
    """The pod's name."""
    namespace: str
    """The namespace whose configuration it gets."""
    dns_domain: str = ""
    service_cluster: str = ""
    """The node's `cluster`: the service that its spans name."""
    cluster_id: str = ""
    network: str = ""
    service_account: str = ""
    is_verified: bool = True
    """Whether its connection has proved who it is; where it has not, nothing confidential is for it."""
    labels: Labels = ()
    static_labels: Labels = ()
    locality: Locality = Locality()
    istio_version: tuple[int, int, int] = _NEWEST
    dialect: Dialect = "istio"
    on_demand: bool = False
    """Whether it asks for virtual hosts as requests name them, and holds nothing that they do not use."""
    interception: Literal["REDIRECT", "TPROXY", "NONE"] = "REDIRECT"
    node_name: str = ""
    workload_name: str = ""
    dns_capture: bool = False
    http10: bool = False
    http_proxy_port: int | None = None
    idle_timeout: str = ""
    unprivileged: bool = False
    reserved_ports: tuple[int, ...] = ()
    inbound_exact_balance: bool = False
    outbound_exact_balance: bool = False
    requested_networks: tuple[str, ...] = ()
    tls_files: TlsFiles = TlsFiles()
    credential_socket: bool = False
    file_credential: bool = False
    pod_ports: Labels = ()
    """Named container ports, name → number as text, where no pod is known."""
    proxy_config: str | None = None
    """The effective ProxyConfig of the agent as JSON; None where the node sent none."""
    metadata: str = "{}"
    """All node metadata as JSON with sorted keys, for what only EnvoyFilter and telemetry read."""

    @property
    def has_ipv4(self) -> bool:
        """Whether it has an IPv4 address."""
        return any(":" not in ip for ip in self.ip_addresses)

    @property
    def has_ipv6(self) -> bool:
        """Whether it has an IPv6 address."""
        return any(":" in ip for ip in self.ip_addresses)


def parse_node(node: Mapping[str, Any]) -> Proxy:
    """The proxy that an xDS Node (protobuf JSON) describes; raises SessionError for one that is not a mesh proxy's."""
    node_id = str(node.get("id", ""))
    parts = node_id.split("~")
    if len(parts) != 4:
        raise SessionError(f"node id {node_id!r} is not type~ip~name.namespace~domain")
    kind, ip, unique, dns_domain = parts
    if kind not in ("sidecar", "router", "waypoint"):
        raise SessionError(f"node id {node_id!r}: no proxy of type {kind!r} is served")
    metadata = node.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise SessionError(f"node {node_id!r}: metadata is not an object")
    text = _Texts(metadata)
    name, _, id_namespace = unique.rpartition(".")
    return Proxy(
        id=node_id,
        kind=kind,  # type: ignore[arg-type]  # checked above
        ip_addresses=_addresses(node_id, text("INSTANCE_IPS"), ip),
        name=text("NAME") or name or id_namespace,
        namespace=text("NAMESPACE") or _first_label(dns_domain),
        dns_domain=dns_domain,
        service_cluster=str(node.get("cluster", "")),
        cluster_id=text("CLUSTER_ID"),
        network=text("NETWORK"),
        service_account=text("SERVICE_ACCOUNT"),
        labels=_labels(metadata.get("LABELS")),
        static_labels=_labels(metadata.get("STATIC_LABELS")),
        locality=_locality(node.get("locality")),
        istio_version=_version(text("ISTIO_VERSION")),
        dialect="envoy" if text("MIZZEN_DIALECT") == "envoy" else "istio",
        on_demand=kind == "sidecar" and text.flag(ON_DEMAND) and _takes_virtual_hosts(node, text),
        interception=_interception(text("INTERCEPTION_MODE")),
        node_name=text("NODE_NAME"),
        workload_name=text("WORKLOAD_NAME"),
        dns_capture=text.flag("DNS_CAPTURE"),
        http10=text("HTTP10") == "1",
        http_proxy_port=text.number("HTTP_PROXY_PORT"),
        idle_timeout=text("IDLE_TIMEOUT"),
        unprivileged=text.flag("UNPRIVILEGED_POD"),
        reserved_ports=_reserved(text),
        inbound_exact_balance=text.flag("INBOUND_LISTENER_EXACT_BALANCE"),
        outbound_exact_balance=text.flag("OUTBOUND_LISTENER_EXACT_BALANCE"),
        requested_networks=tuple(n for n in text("REQUESTED_NETWORK_VIEW").split(",") if n),
        tls_files=TlsFiles(
            server_chain=text("TLS_SERVER_CERT_CHAIN"),
            server_key=text("TLS_SERVER_KEY"),
            server_root=text("TLS_SERVER_ROOT_CERT"),
            client_chain=text("TLS_CLIENT_CERT_CHAIN"),
            client_key=text("TLS_CLIENT_KEY"),
            client_root=text("TLS_CLIENT_ROOT_CERT"),
        ),
        credential_socket=text.flag("credential"),
        file_credential=text.flag("file-credential"),
        pod_ports=_pod_ports(metadata.get("POD_PORTS")),
        proxy_config=_json(metadata["PROXY_CONFIG"]) if isinstance(metadata.get("PROXY_CONFIG"), Mapping) else None,
        metadata=_json(metadata),
    )


class _Texts:
    """Metadata values as text: Istio's agents send booleans and numbers as strings, others send them plain."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata

    def __call__(self, name: str) -> str:
        value = self._metadata.get(name)
        if value is None or isinstance(value, Mapping | list):
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return str(value)

    def flag(self, name: str) -> bool:
        return self(name).lower() in ("true", "1")

    def number(self, name: str) -> int | None:
        value = self(name)
        return int(value) if _NUMBER.fullmatch(value) else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _takes_virtual_hosts(node: Mapping[str, Any], text: _Texts) -> bool:
    """Whether virtual hosts on demand were tried with Envoys of this dialect and version."""
    build = node.get("userAgentBuildVersion") or node.get("user_agent_build_version") or {}
    version = build.get("version") or {} if isinstance(build, Mapping) else {}
    if text("MIZZEN_DIALECT") != "envoy" or not isinstance(version, Mapping):
        return False
    numbers = [version.get(name, version.get(snake)) for name, snake in _VERSION_NUMBERS]
    return tuple(number if isinstance(number, int) else 0 for number in numbers) >= _FIRST_ON_DEMAND


def _addresses(node_id: str, listed: str, from_id: str) -> tuple[str, ...]:
    for candidates in (listed.split(",") if listed else [], [from_id]):
        try:
            found = tuple(str(ipaddress.ip_address(c.strip())) for c in candidates)
        except ValueError:
            continue
        if found:
            return found
    raise SessionError(f"node {node_id!r}: neither INSTANCE_IPS nor the id holds a valid IP address")


def _first_label(dns_domain: str) -> str:
    first, dot, _ = dns_domain.partition(".")
    return first if dot else ""


def _labels(value: Any) -> Labels:
    if not isinstance(value, Mapping):
        return ()
    return tuple(sorted((str(k), str(v)) for k, v in value.items()))


def _locality(value: Any) -> Locality:
    if not isinstance(value, Mapping):
        return Locality()
    return Locality(
        str(value.get("region", "")), str(value.get("zone", "")), str(value.get("subZone", value.get("sub_zone", "")))
    )


def _version(text: str) -> tuple[int, int, int]:
    found = _VERSION.match(text)
    if found is None:
        return _NEWEST
    return (int(found[1]), int(found[2]), int(found[3]) if found[3] else 65535)


def _interception(text: str) -> Literal["REDIRECT", "TPROXY", "NONE"]:
    return "TPROXY" if text == "TPROXY" else "NONE" if text == "NONE" else "REDIRECT"


def _reserved(text: _Texts) -> tuple[int, ...]:
    names = (
        "ENVOY_STATUS_PORT",
        "ENVOY_PROMETHEUS_PORT",
        "ENVOY_SECURE_METRICS_PORT",
        "ENVOY_SECURE_MERGED_METRICS_PORT",
    )
    return tuple(sorted({port for name in names if (port := text.number(name))}))


def _pod_ports(value: Any) -> Labels:
    """`POD_PORTS` is a JSON list, usually inside a string: `[{"name":"http","containerPort":8080}]`."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return ()
    if not isinstance(value, list):
        return ()
    return tuple(
        sorted(
            (str(p["name"]), str(p["containerPort"]))
            for p in value
            if isinstance(p, Mapping) and p.get("name") and p.get("containerPort")
        )
    )
