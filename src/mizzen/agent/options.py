"""Everything that one agent is told, in one frozen value.

In: the environment and the arguments under pilot-agent's names, the downward API's files below `etc/istio/pod`, and
the machine's addresses. Out: `Options`. Variables of our own: `ENVOY_PATH`, `MIZZEN_PROXY_UID` (Envoy's user and
group, where the agent is root), `MIZZEN_BIND_ADDRESS` (one address instead of loopback and wildcard, for pods that
share a network namespace) and `MIZZEN_SOCKET_MARK` (how capture rules tell Envoy's traffic where there is one user).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mizzen import settings
from mizzen.agent import control_plane
from mizzen.agent.bootstrap import node, proxy_config
from mizzen.agent.bootstrap.node import Pod
from mizzen.agent.bootstrap.proxy_config import ProxyConfig
from mizzen.agent.files import read_file
from mizzen.errors import DecodeError, UsageError

_POD_INFO = Path("./etc/istio/pod")
_MESH_CONFIG = Path("./etc/istio/config/mesh")
_TOKENS = {
    "first-party-jwt": Path("./var/run/secrets/kubernetes.io/serviceaccount/token"),
    "none": None,
}
_MOUNTED = Path("./etc/certs")
_CREDENTIALS = Path("./var/run/secrets/workload-spiffe-credentials")
_IDENTITY = "identity"
_PROJECTED_TOKEN = Path("./var/run/secrets/tokens/istio-token")


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments, as pilot-agent takes them."""

    role: str = "sidecar"
    domain: str = ""
    log_level: str = "warning"
    component_log_level: str = "misc:error"
    log_as_json: bool = False
    concurrency: int | None = None
    service_cluster: str = ""
    outlier_log_path: str = ""
    sts_port: int = 0
    mesh_config: str = ""
    envoy_path: str = ""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's settings."""

    flags: Flags
    agent: settings.Agent
    pod: Pod
    config: ProxyConfig
    metadata: Mapping[str, Any]
    discovery: control_plane.Endpoint
    authority: control_plane.Endpoint
    trust_domain: str
    environ: Mapping[str, str]
    """The whole environment, proxyMetadata included; Envoy gets it too."""
    mounted_certificate: Path | None = None
    """Folder of a certificate that the pod brings along."""
    proxy_uid: int | None = None
    bind_address: str = ""
    socket_mark: int = 0

    @property
    def spiffe_id(self) -> str:
        """The identity that certificates are asked for."""
        return f"spiffe://{self.trust_domain}/ns/{self.pod.namespace}/sa/{self.pod.service_account}"

    @property
    def captures_dns(self) -> bool:
        """Whether the pod's queries come to the agent."""
        return self.metadata.get("DNS_CAPTURE") == "true" or "DNS_PROXY_ADDR" in self.environ

    @property
    def loopback(self) -> str:
        """Where the agent and its Envoy talk to each other."""
        return self.bind_address or ("::1" if self.pod.ipv6_only else "127.0.0.1")

    @property
    def probed_address(self) -> str:
        """Where the application is probed."""
        local = self.environ.get("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION") == "true"
        return self.loopback if local else self.pod.addresses[0]

    @property
    def folder(self) -> Path:
        """Where bootstrap, socket and what must outlive a restart lie."""
        return Path(self.config.config_path)

    @property
    def identity_folder(self) -> Path:
        """Where key, certificate and roots are kept over restarts."""
        return self.folder / _IDENTITY

    @property
    def xds_socket(self) -> Path:
        """Where Envoy finds the relay."""
        return self.folder / "XDS"


def read_options(flags: Flags, environ: Mapping[str, str], agent: settings.Agent, found: tuple[str, ...]) -> Options:
    """Options out of everything given; `found` are the machine's addresses, the most trusted first."""
    if flags.role not in ("sidecar", "router"):
        raise UsageError(f"unknown kind of proxy {flags.role!r}; known are sidecar and router")
    annotations = _read_pairs(_POD_INFO / "annotations")
    config = _read_config(flags, environ, annotations)
    environ = {**config.proxy_metadata, **environ}
    agent = _apply_proxy_metadata(agent, config)
    pod = _read_pod(flags, environ, annotations, found)
    extra = _agent_metadata(flags, environ, agent)
    return Options(
        flags=flags,
        agent=agent,
        pod=pod,
        config=config,
        metadata=node.build_metadata(pod, config, environ, extra),
        discovery=_endpoint(config.discovery_address, agent.xds_root_ca, "XDS_HEADER_", config, environ, agent),
        authority=_endpoint(
            agent.ca_address or config.discovery_address, agent.ca_root_ca, "CA_HEADER_", config, environ, agent
        ),
        trust_domain=environ.get("TRUST_DOMAIN") or "cluster.local",
        environ=environ,
        mounted_certificate=_find_mounted_certificate(agent),
        proxy_uid=_number(environ, "MIZZEN_PROXY_UID"),
        bind_address=environ.get("MIZZEN_BIND_ADDRESS", ""),
        socket_mark=_number(environ, "MIZZEN_SOCKET_MARK") or 0,
    )


def _read_config(flags: Flags, environ: Mapping[str, str], annotations: Mapping[str, str]) -> ProxyConfig:
    """ProxyConfig in Istio's order: mesh config, variable, annotation, and last what the command line says."""
    text = read_file(Path(flags.mesh_config) if flags.mesh_config else _MESH_CONFIG) or b""
    try:
        mesh = yaml.safe_load(text) or {}
        default = json.dumps(mesh.get("defaultConfig") or {})
    except (yaml.YAMLError, AttributeError, TypeError) as bad:
        raise DecodeError(" ".join(str(bad).split()), "mesh config") from bad
    told = json.dumps({"serviceCluster": flags.service_cluster}) if flags.service_cluster else ""
    return proxy_config.parse_proxy_config(
        default, environ.get("PROXY_CONFIG", ""), annotations.get(proxy_config.ANNOTATION, ""), told
    )


def _apply_proxy_metadata(agent: settings.Agent, config: ProxyConfig) -> settings.Agent:
    """proxyMetadata is environment too, weaker than the process' own."""
    given, _ = settings.load(config.proxy_metadata)
    default = settings.Agent()
    changed = {
        field: value
        for field in settings.Agent.__struct_fields__
        if (value := getattr(given.agent, field)) != getattr(default, field)
        and getattr(agent, field) == getattr(default, field)
    }
    return msgspec.structs.replace(agent, **changed)


def _read_pod(flags: Flags, environ: Mapping[str, str], annotations: Mapping[str, str], found: tuple[str, ...]) -> Pod:
    namespace = environ.get("POD_NAMESPACE") or "default"
    labels = _read_pairs(_POD_INFO / "labels")
    for label, variable in (("name", "CANONICAL_SERVICE"), ("revision", "CANONICAL_REVISION")):
        if environ.get(variable):
            labels.setdefault(f"service.istio.io/canonical-{label}", environ[variable])
    if not found:
        raise UsageError("this machine has no address but loopback; set INSTANCE_IP")
    return Pod(
        kind=flags.role,
        name=environ.get("POD_NAME") or environ.get("HOSTNAME") or "proxy",
        namespace=namespace,
        domain=flags.domain or f"{namespace}.svc.cluster.local",
        service_account=environ.get("SERVICE_ACCOUNT") or "default",
        addresses=found,
        labels=labels,
        annotations=annotations,
    )


def _agent_metadata(flags: Flags, environ: Mapping[str, str], agent: settings.Agent) -> dict[str, Any]:
    """Metadata that follows from how the agent was started; variables `ISTIO_META_*` win over it."""
    metadata: dict[str, Any] = {"MIZZEN_DIALECT": "envoy", "CLUSTER_ID": "Kubernetes"}
    if flags.sts_port:
        metadata["STS_PORT"] = str(flags.sts_port)
    if flags.outlier_log_path:
        metadata["OUTLIER_LOG_PATH"] = flags.outlier_log_path
    if agent.control_plane_san:
        metadata["PILOT_SAN"] = [agent.control_plane_san]
    if agent.exit_on_zero_connections:
        metadata["EXIT_ON_ZERO_ACTIVE_CONNECTIONS"] = "true"
    if "DNS_PROXY_ADDR" in environ:
        metadata["DNS_PROXY_ADDR"] = environ["DNS_PROXY_ADDR"]
    return metadata


def _endpoint(
    address: str,
    roots: str,
    header_prefix: str,
    config: ProxyConfig,
    environ: Mapping[str, str],
    agent: settings.Agent,
) -> control_plane.Endpoint:
    headers = {"clusterid": environ.get("ISTIO_META_CLUSTER_ID") or "Kubernetes"}
    provisioned = Path(agent.provisioned_certificates) if agent.provisioned_certificates else None
    return control_plane.Endpoint(
        address=address,
        roots=control_plane.find_roots(roots, agent.provisioned_certificates),
        # Whoever names the roots for a connection means these and no others.
        pushed_roots=None if roots else Path(config.config_path) / _IDENTITY / control_plane.PUSHED_ROOTS,
        tls=config.control_plane_auth_policy != "NONE",
        server_name=agent.control_plane_san,
        token=_TOKENS.get(environ.get("JWT_POLICY", ""), _PROJECTED_TOKEN),
        certificate=provisioned,
        headers=headers | control_plane.select_headers(header_prefix, environ),
    )


def _find_mounted_certificate(agent: settings.Agent) -> Path | None:
    """Where Istio's agents look: in the folder of `FILE_MOUNTED_CERTS`, or in that of workload credentials if whole."""
    if agent.file_mounted_certificates:
        return _MOUNTED
    whole = all((_CREDENTIALS / name).exists() for name in ("cert-chain.pem", "key.pem", "root-cert.pem"))
    return _CREDENTIALS if whole else None


def _read_pairs(path: Path) -> dict[str, str]:
    """Labels or annotations in the downward API's form: `key="escaped value"` lines."""
    pairs: dict[str, str] = {}
    for line in (read_file(path) or b"").decode(errors="replace").splitlines():
        key, separator, value = line.partition("=")
        if not separator:
            continue
        try:
            pairs[key] = json.loads(value)
        except ValueError:
            pairs[key] = value.strip('"')
    return pairs


def _number(environ: Mapping[str, str], variable: str) -> int | None:
    text = environ.get(variable, "")
    if not text:
        return None
    if not text.isdigit():
        raise UsageError(f"{variable}: {text!r} is not a number")
    return int(text)
