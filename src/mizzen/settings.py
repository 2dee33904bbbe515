"""Every setting of Mizzen, in one frozen tree.

In: the process environment, read once by `load`, under the names that an Istio operator would set.
Out: `Settings`, handed down by whoever starts a program; tests build it by hand.
A value that does not parse keeps its default and yields a warning, as Istio does. So does a feature flag
of the reference that Mizzen does not carry, unless it is set to the reference's default.
Command line flags replace single fields afterwards (`msgspec.structs.replace`); no other module reads
the environment.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec

from mizzen import words


class Variable(NamedTuple):
    """The environment variable that sets a field, and how its text is read."""

    name: str
    parse: Callable[[str], Any] = str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group of settings; each field says its unit and its variable."""


class Push(Group, frozen=True, kw_only=True):
    """When and how widely changes are pushed."""

    debounce_after: Annotated[float, Variable("PILOT_DEBOUNCE_AFTER", words.parse_duration)] = 0.1
    """Seconds without a change after which collected changes are pushed."""
    debounce_max: Annotated[float, Variable("PILOT_DEBOUNCE_MAX", words.parse_duration)] = 10.0
    """Seconds that a change waits at most while others keep coming."""
    debounce_endpoints: Annotated[bool, Variable("PILOT_ENABLE_EDS_DEBOUNCE", words.parse_bool)] = True
    """Whether changes of endpoints alone wait too."""
    throttle: Annotated[int, Variable("PILOT_PUSH_THROTTLE", words.parse_count)] = 0
    """Streams that are pushed to at once; 0 chooses by the number of CPUs."""


class Xds(Group, frozen=True, kw_only=True):
    """The discovery servers."""

    max_requests_per_second: Annotated[float, Variable("PILOT_MAX_REQUESTS_PER_SECOND", words.parse_rate)] = 0.0
    """New streams a second; 0 chooses by the number of CPUs."""
    identity_check: Annotated[bool, Variable("PILOT_ENABLE_XDS_IDENTITY_CHECK", words.parse_bool)] = True
    """Whether a node's namespace and service account must agree with its credentials."""
    authenticate: Annotated[bool, Variable("XDS_AUTH", words.parse_bool)] = True
    """Whether streams on the secure ports need credentials."""
    authenticate_plaintext: Annotated[bool, Variable("XDS_AUTH_PLAINTEXT", words.parse_bool)] = False
    """Whether streams on the plain port need a token as well."""
    keepalive_interval: Annotated[float, Variable("GRPC_KEEPALIVE_INTERVAL", words.parse_duration)] = 30.0
    """Seconds of silence after which a peer is pinged."""
    keepalive_timeout: Annotated[float, Variable("GRPC_KEEPALIVE_TIMEOUT", words.parse_duration)] = 10.0
    """Seconds that a peer has to answer a ping."""
    max_streams: Annotated[int, Variable("ISTIO_GPRC_MAXSTREAMS", words.parse_count)] = 100_000
    """Concurrent streams on one connection. The reference spells the variable so."""
    max_receive_bytes: Annotated[int, Variable("ISTIO_GPRC_MAXRECVMSGSIZE", words.parse_count)] = 4 * 1024 * 1024
    """Bytes of the largest request that is read."""
    max_connection_age: float = 1800.0
    """Seconds after which a stream is asked to reconnect, jittered; 0 means never."""
    connection_age_grace: float = 10.0
    """Seconds that a stream past its age has to end by itself."""
    stop_grace: float = 10.0
    """Seconds that open streams have when the server stops."""


class Authority(Group, frozen=True, kw_only=True):
    """The certificate authority and who may ask it."""

    directory: Annotated[str, Variable("ROOT_CA_DIR")] = "./etc/cacerts"
    """Directory of a plugged-in authority: ca-cert.pem, ca-key.pem, root-cert.pem, cert-chain.pem, ca-crl.pem."""
    default_ttl: Annotated[float, Variable("DEFAULT_WORKLOAD_CERT_TTL", words.parse_duration)] = 24 * 3600.0
    """Seconds that a workload certificate lives when none are asked for."""
    max_ttl: Annotated[float, Variable("MAX_WORKLOAD_CERT_TTL", words.parse_duration)] = 90 * 24 * 3600.0
    """Seconds that may be asked for at most."""
    root_ttl: Annotated[float, Variable("CITADEL_SELF_SIGNED_CA_CERT_TTL", words.parse_duration)] = 87_600 * 3600.0
    """Seconds that a self-signed root lives."""
    root_key_bits: Annotated[int, Variable("CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE", words.parse_count)] = 2048
    """Size of a self-signed root's RSA key."""
    root_check_interval: Annotated[
        float, Variable("CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL", words.parse_duration)
    ] = 3600.0
    """Seconds between two looks at the root's remaining life."""
    root_grace_percentile: Annotated[
        float, Variable("CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE", words.parse_percentage)
    ] = 20.0
    """A self-signed root is renewed when this share of its life remains."""
    root_overlap: Annotated[float, Variable("MIZZEN_ROOT_OVERLAP", words.parse_duration)] = 0.0
    """Seconds between announcing a root and signing under it; 0 waits until all earlier certificates expired."""
    audiences: Annotated[tuple[str, ...], Variable("TOKEN_AUDIENCES", words.parse_names)] = ("istio-ca",)
    """Audiences that a bearer token may name."""
    jwt_rule: Annotated[str, Variable("JWT_RULE")] = ""
    """Tokens of an outside issuer that are believed: JSON with issuer, audiences, jwks_uri or jwks."""
    custom_hosts: Annotated[tuple[str, ...], Variable("ISTIOD_CUSTOM_HOST", words.parse_names)] = ()
    """Further DNS names in the control plane's own certificate."""
    root_config_map: Annotated[str, Variable("PILOT_CA_CERT_CONFIGMAP")] = "istio-ca-root-cert"
    """Name of the ConfigMap in every namespace that holds the roots."""
    revocations: Annotated[bool, Variable("PILOT_ENABLE_CA_CRL", words.parse_bool)] = True
    """Whether `ca-crl.pem` of a plugged-in authority is read and distributed."""
    revocation_config_map: Annotated[str, Variable("PILOT_CRL_CONFIGMAP")] = "istio-ca-crl"
    """Name of the ConfigMap in every namespace that holds the revocation lists of a plugged-in authority."""
    self_signed_in_cacerts: Annotated[bool, Variable("USE_CACERTS_FOR_SELF_SIGNED_CA", words.parse_bool)] = False
    """Whether a self-signed root that is made on Kubernetes is kept in the Secret `cacerts`, not `istio-ca-secret`."""
    node_accounts: Annotated[tuple[str, ...], Variable("CA_TRUSTED_NODE_ACCOUNTS", words.parse_names)] = ()
    """Accounts (`namespace/name`) that may ask for certificates of the pods on their own node."""
    external: Annotated[str, Variable("EXTERNAL_CA")] = ""
    """Who signs for workloads in place of this authority: `ISTIOD_RA_KUBERNETES_API`, or nobody."""
    kubernetes_signer: Annotated[str, Variable("K8S_SIGNER")] = ""
    """The signer that Kubernetes is asked for where a request names none."""
    signer_domain: Annotated[str, Variable("CERT_SIGNER_DOMAIN")] = ""
    """The domain of the signers that requests may name."""


class Agent(Group, frozen=True, kw_only=True):
    """The sidecar's agent."""

    certificate_ttl: Annotated[float, Variable("SECRET_TTL", words.parse_duration)] = 24 * 3600.0
    """Seconds of life that the agent asks for."""
    renewal_ratio: Annotated[float, Variable("SECRET_GRACE_PERIOD_RATIO", words.parse_ratio)] = 0.5
    """A certificate is renewed when this part of its life remains."""
    renewal_jitter: Annotated[float, Variable("SECRET_GRACE_PERIOD_RATIO_JITTER", words.parse_ratio)] = 0.01
    """The renewal ratio varies by this much either way."""
    key_algorithm: Annotated[str, Variable("ECC_SIGNATURE_ALGORITHM")] = "ECDSA"
    """`ECDSA`, or empty for RSA. Istio's default is RSA; ECDSA costs a hundredth at start-up."""
    key_curve: Annotated[str, Variable("ECC_CURVE")] = "P256"
    """`P256` or `P384`."""
    rsa_key_bits: Annotated[int, Variable("WORKLOAD_RSA_KEY_SIZE", words.parse_count)] = 2048
    """Size of an RSA key."""
    ca_address: Annotated[str, Variable("CA_ADDR")] = ""
    """host:port of the certificate service; empty means the discovery address."""
    xds_root_ca: Annotated[str, Variable("XDS_ROOT_CA")] = ""
    """Root file for the discovery server, or `SYSTEM`; empty searches the usual places."""
    ca_root_ca: Annotated[str, Variable("CA_ROOT_CA")] = ""
    """Root file for the certificate service, or `SYSTEM`; empty searches the usual places."""
    control_plane_san: Annotated[str, Variable("ISTIOD_SAN")] = ""
    """Name expected in the control plane's certificate; empty means the discovery host."""
    provisioned_certificates: Annotated[str, Variable("PROV_CERT")] = ""
    """Directory of a certificate that the machine already has."""
    file_mounted_certificates: Annotated[bool, Variable("FILE_MOUNTED_CERTS", words.parse_bool)] = False
    """Whether the workload's certificate lies in /etc/certs, so that none is asked for."""
    output_certificates: Annotated[str, Variable("OUTPUT_CERTS")] = ""
    """Directory to which workload certificates are written as files."""
    delta: Annotated[bool, Variable("ISTIO_DELTA_XDS", words.parse_bool)] = True
    """Whether Envoy speaks delta ADS."""
    dns_address: Annotated[str, Variable("DNS_PROXY_ADDR")] = "localhost:15053"
    """Address of the DNS proxy."""
    dns_forward_parallel: Annotated[bool, Variable("DNS_FORWARD_PARALLEL", words.parse_bool)] = False
    """Whether all upstream resolvers are asked at once."""
    drain_duration: Annotated[float, Variable("MINIMUM_DRAIN_DURATION", words.parse_duration)] = 5.0
    """Seconds between the start of draining and the first look at active connections."""
    exit_on_zero_connections: Annotated[bool, Variable("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", words.parse_bool)] = False
    """Whether the agent waits for the last connection instead of a fixed time."""
    wasm_insecure_servers: Annotated[tuple[str, ...], Variable("WASM_INSECURE_REGISTRIES", words.parse_names)] = ()
    """Servers of Wasm modules (host or host:port) that may show any certificate, as registries none."""
    wasm_expiry: Annotated[float, Variable("WASM_MODULE_EXPIRY", words.parse_duration)] = 24 * 3600.0
    """Seconds after which a Wasm module that nobody wanted is removed."""
    wasm_purge_interval: Annotated[float, Variable("WASM_PURGE_INTERVAL", words.parse_duration)] = 3600.0
    """Seconds between two looks for such modules."""
    wasm_timeout: Annotated[float, Variable("WASM_HTTP_REQUEST_TIMEOUT", words.parse_duration)] = 15.0
    """Seconds that a request for a Wasm module may take."""
    wasm_retries: Annotated[int, Variable("WASM_HTTP_REQUEST_MAX_RETRIES", words.parse_count)] = 5
    """Further attempts after one that failed."""


class Http(Group, frozen=True, kw_only=True):
    """The plain HTTP servers."""

    debug_on_http: Annotated[bool, Variable("ENABLE_DEBUG_ON_HTTP", words.parse_bool)] = True
    """Whether the readiness port serves /debug too."""
    debug_authorization: Annotated[bool, Variable("ENABLE_DEBUG_ENDPOINT_AUTH", words.parse_bool)] = True
    """Whether callers outside the system namespace see only their own namespace."""
    debug_namespaces: Annotated[
        tuple[str, ...], Variable("DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES", words.parse_names)
    ] = ()
    """Further namespaces that may see everything."""
    unsafe_administration: Annotated[bool, Variable("UNSAFE_ENABLE_ADMIN_ENDPOINTS", words.parse_bool)] = False
    """Whether debug pages may disturb proxies."""


class Injection(Group, frozen=True, kw_only=True):
    """The injection of sidecars."""

    native_sidecars: Annotated[bool | None, Variable("ENABLE_NATIVE_SIDECARS", words.parse_bool_or_auto)] = None
    """Whether sidecars are init containers that stay; None (`auto`) goes by the nodes' versions."""


class Features(Group, frozen=True, kw_only=True):
    """The reference's feature flags that Mizzen carries."""

    dual_stack: Annotated[bool, Variable("ISTIO_DUAL_STACK", words.parse_bool)] = False
    """Whether listeners and endpoints carry addresses of both families."""
    http10: Annotated[bool, Variable("PILOT_HTTP10", words.parse_bool)] = False
    """Whether HTTP/1.0 is accepted."""
    gateway_statuses: Annotated[bool, Variable("PILOT_ENABLE_GATEWAY_API_STATUS", words.parse_bool)] = True
    """Whether statuses of the Gateway API's objects are written to the API server."""
    analysis: Annotated[bool, Variable("PILOT_ENABLE_ANALYSIS", words.parse_bool)] = False
    """Whether what analysis finds about objects of Istio's kinds is written to their statuses."""
    analysis_interval: Annotated[float, Variable("PILOT_ANALYSIS_INTERVAL", words.parse_duration)] = 1.0
    """Seconds between two looks at what statuses of Istio's kinds are to say; changes within them are analysed once."""
    object_statuses: Annotated[bool, Variable("PILOT_ENABLE_STATUS", words.parse_bool)] = False
    """Whether it is written to their statuses that they are in force, or why not."""
    gateway_deployments: Annotated[
        bool, Variable("PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER", words.parse_bool)
    ] = True
    """Whether managed Gateways are deployed."""
    gateway_classes: Annotated[bool, Variable("PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER", words.parse_bool)] = (
        True
    )
    """Whether the GatewayClasses that every installation has are made where they are missing."""
    allocate_addresses: Annotated[bool, Variable("PILOT_ENABLE_IP_AUTOALLOCATE", words.parse_bool)] = True
    """Whether hosts of ServiceEntries are given virtual addresses."""
    addresses_v4: Annotated[words.Network, Variable("PILOT_IP_AUTOALLOCATE_IPV4_PREFIX", words.parse_network)] = (
        ipaddress.ip_network("240.240.0.0/16")
    )
    """Where their IPv4 addresses are from."""
    addresses_v6: Annotated[words.Network, Variable("PILOT_IP_AUTOALLOCATE_IPV6_PREFIX", words.parse_network)] = (
        ipaddress.ip_network("2001:2::/48")
    )
    """Where their IPv6 addresses are from."""
    trace_sampling: Annotated[float, Variable("PILOT_TRACE_SAMPLING", words.parse_percentage)] = 1.0
    """Per cent of requests that are traced where nothing else says."""


class Machines(Group, frozen=True, kw_only=True):
    """Workloads outside Kubernetes that register themselves."""

    register: Annotated[bool, Variable("PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION", words.parse_bool)] = True
    """Whether a proxy that names a WorkloadGroup gets a WorkloadEntry of it."""
    health: Annotated[bool, Variable("PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS", words.parse_bool)] = True
    """Whether what agents say of their workload's health stands in its WorkloadEntry."""
    validate_identity: Annotated[bool, Variable("ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY", words.parse_bool)] = True
    """Whether a proxy must have proved the namespace and the service account of its WorkloadEntry."""
    grace: Annotated[float, Variable("PILOT_WORKLOAD_ENTRY_GRACE_PERIOD", words.parse_duration)] = 10.0
    """Seconds that a workload has to come back before its WorkloadEntry is removed."""


class KeySets(Group, frozen=True, kw_only=True):
    """The key sets (JWKS) of token issuers, which the control plane fetches from where users say."""

    refresh_interval: Annotated[float, Variable("PILOT_JWT_PUB_KEY_REFRESH_INTERVAL", words.parse_duration)] = 1200.0
    """Seconds after which a fetched key set is fetched again."""
    blocked_networks: Annotated[
        tuple[words.Network, ...], Variable("BLOCKED_CIDRS_IN_JWKS_URIS", words.parse_networks)
    ] = ()
    """Networks that are not called; link-local addresses and those of clouds' metadata never are."""
    refuse_private: Annotated[bool, Variable("MIZZEN_JWKS_REFUSE_PRIVATE", words.parse_bool)] = False
    """Whether private and loopback addresses are refused too."""
    insecure: Annotated[bool, Variable("JWKS_RESOLVER_INSECURE_SKIP_VERIFY", words.parse_bool)] = False
    """Whether any server certificate will do."""
    extra_roots: str = "/cacerts/extra.pem"
    """File of roots that are trusted beside the system's, where it exists."""
    timeout: float = 5.0
    """Seconds of one fetch, redirects included."""
    first_wait: float = 10.0
    """Seconds that a starting control plane waits for key sets before it serves proxies without them."""
    max_bytes: int = 1024 * 1024
    """Bytes of the largest document that is read."""
    tries: int = 7
    """Fetches in a row, `spacing` apart, before a refresh counts as failed; the very first fetch is tried once."""
    spacing: float = 1.0
    """Seconds between them."""
    retry_first: float = 60.0
    """Seconds after a failure until the next try; doubled each time."""
    retry_longest: float = 3600.0
    """Seconds between two tries at most."""


class Instance(Group, frozen=True, kw_only=True):
    """Who this process is."""

    name: Annotated[str, Variable("POD_NAME")] = ""
    """Name of the pod; empty means the host's name."""
    namespace: Annotated[str, Variable("POD_NAMESPACE")] = "istio-system"
    """Namespace of the control plane."""
    revision: Annotated[str, Variable("REVISION")] = "default"
    """Revision that the control plane serves."""
    cluster: Annotated[str, Variable("CLUSTER_ID")] = "Kubernetes"
    """Name of the cluster."""


class Leadership(Group, frozen=True, kw_only=True):
    """How replicas agree on the one that writes; in seconds, as Kubernetes' own components have them."""

    lease: float = 15.0
    """How long others wait after the holder was last seen to renew."""
    renew_deadline: float = 10.0
    """How long the holder goes on without having renewed; less than `lease`."""
    retry: float = 2.0
    """Between two attempts."""

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew_deadline < self.lease:
            raise ValueError("a lease outlasts its renew deadline, and that the time between two attempts")


class Settings(Group, frozen=True, kw_only=True):
    """All settings."""

    push: Push = Push()
    xds: Xds = Xds()
    authority: Authority = Authority()
    agent: Agent = Agent()
    http: Http = Http()
    injection: Injection = Injection()
    features: Features = Features()
    machines: Machines = Machines()
    key_sets: KeySets = KeySets()
    instance: Instance = Instance()
    leadership: Leadership = Leadership()


REFERENCE_DEFAULTS: Mapping[str, str] = {
    "COMPLIANCE_POLICY": "",
    "DISABLE_SHADOW_HOST_SUFFIX": "true",
    "DISABLE_TRACK_REMAINING_CB_METRICS": "true",
    "ENABLE_100_CONTINUE_HEADERS": "true",
    "ENABLE_CLUSTER_TRUST_BUNDLE_API": "false",
    "ENABLE_ENHANCED_DESTINATIONRULE_MERGE": "true",
    "ENABLE_GATEWAY_API_INFERENCE_EXTENSION": "false",
    "ENABLE_GATEWAY_API_MANUAL_DEPLOYMENT": "true",
    "ENABLE_HCM_INTERNAL_NETWORKS": "false",
    "ENABLE_LAYERED_WAYPOINT_AUTHORIZATION_POLICIES": "false",
    "ENABLE_LOCALITY_WEIGHTED_LB_CONFIG": "false",
    "ENABLE_MULTICLUSTER_HEADLESS": "true",
    "ENABLE_SELECTOR_BASED_K8S_GATEWAY_POLICY": "true",
    "ENABLE_TLS_ON_SIDECAR_INGRESS": "false",
    "ENABLE_WILDCARD_HOST_SERVICE_ENTRIES_FOR_TLS": "false",
    "LABEL_CANONICAL_SERVICES_FOR_MESH_EXTERNAL_SERVICE_ENTRIES": "false",
    "MAX_CONNECTIONS_PER_SOCKET_EVENT_LOOP": "1",
    "PILOT_ALLOW_ANY_DYNAMIC_DNS_MAX_HOSTS": "1024",
    "PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE": "false",
    "PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS": "true",
    "PILOT_CERT_PROVIDER": "istiod",
    "PILOT_DISABLE_MX_ALPN": "false",
    "PILOT_DNS_CARES_UDP_MAX_QUERIES": "100",
    "PILOT_DNS_JITTER_DURATION": "100ms",
    "PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN": "true",
    "PILOT_ENABLE_AGENTGATEWAY": "false",
    "PILOT_ENABLE_ALPHA_GATEWAY_API": "false",
    "PILOT_ENABLE_ALPN_FILTER": "true",
    "PILOT_ENABLE_AMBIENT": "false",
    "PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES": "false",
    "PILOT_ENABLE_GATEWAY_API": "true",
    "PILOT_ENABLE_GATEWAY_API_COPY_LABELS_ANNOTATIONS": "true",
    "PILOT_ENABLE_HEADLESS_FILTER_CHAIN_LISTENER": "false",
    "PILOT_ENABLE_METADATA_EXCHANGE": "true",
    "PILOT_ENABLE_MONGO_FILTER": "true",
    "PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS": "false",
    "PILOT_ENABLE_MYSQL_FILTER": "false",
    "PILOT_ENABLE_PERSISTENT_SESSION_FILTER": "false",
    "PILOT_ENABLE_QUIC_LISTENERS": "false",
    "PILOT_ENABLE_REDIS_FILTER": "false",
    "PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION": "true",
    "PILOT_ENABLE_STRICT_GATEWAY_MERGING": "true",
    "PILOT_ENABLE_TELEMETRY_LABEL": "true",
    "PILOT_ENDPOINT_TELEMETRY_LABEL": "true",
    "PILOT_FILTER_GATEWAY_CLUSTER_CONFIG": "false",
    "PILOT_GATEWAY_API_CONTROLLER_NAME": "istio.io/gateway-controller",
    "PILOT_GATEWAY_API_DEFAULT_GATEWAYCLASS_NAME": "istio",
    "PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT": "15s",
    "PILOT_JWT_ENABLE_REMOTE_JWKS": "false",
    "PILOT_MULTI_NETWORK_DISCOVER_GATEWAY_API": "true",
    "PILOT_MX_ADDITIONAL_LABELS": "",
    "PILOT_SCOPE_GATEWAY_TO_NAMESPACE": "false",
    "PILOT_SEND_UNHEALTHY_ENDPOINTS": "false",
    "PILOT_SIDECAR_PICK_BEST_SERVICE_NAMESPACE": "true",
    "PILOT_SIDECAR_USE_REMOTE_ADDRESS": "false",
    "PILOT_SKIP_VALIDATE_TRUST_DOMAIN": "false",
    "PILOT_SPAWN_UPSTREAM_SPAN_FOR_GATEWAY": "true",
    "PILOT_UNIFIED_SIDECAR_SCOPE": "true",
    "PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES": "true",
    "RESOLVE_HOSTNAME_GATEWAYS": "true",
}
"""Flags of the reference of which Mizzen carries only the default, with that default."""

_FLAG = re.compile(r"(?:PILOT|ISTIO)_[A-Z0-9_]+")
# Node metadata and facts that the injector or `cluster.env` sets, and the variables that Kubernetes makes of Services.
_NO_FLAG = re.compile(
    r"ISTIO_META_.*|ISTIO_METAJSON_.*|ISTIO_(?:KUBE_APP_PROBERS|PROMETHEUS_ANNOTATIONS|BOOTSTRAP_OVERRIDE|CPU_LIMIT)"
    r"|ISTIO_(?:INBOUND_PORTS|LOCAL_EXCLUDE_PORTS|NAMESPACE|SERVICE|SERVICE_CIDR|SVC_IP)"
    r"|.*_SERVICE_HOST|.*_SERVICE_PORT(?:_.*)?|.*_PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?"
)


def _variables(group: type[Group]) -> Iterator[tuple[str, Variable]]:
    for field, hint in get_type_hints(group, include_extras=True).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, Variable):
                yield field, extra


def _load_group(group: type[Group], environ: Mapping[str, str], warnings: list[str]) -> Group:
    values: dict[str, Any] = {}
    for field, variable in _variables(group):
        text = environ.get(variable.name, "")
        if not text:
            continue
        try:
            values[field] = variable.parse(text)
        except ValueError as error:
            warnings.append(f"{variable.name}: {error}; the default stays")
    return group(**values)


def _check_flags(environ: Mapping[str, str], known: set[str]) -> Iterator[str]:
    for name in sorted(environ):
        if name in known:
            continue
        default = REFERENCE_DEFAULTS.get(name)
        if default is None and (not _FLAG.fullmatch(name) or _NO_FLAG.fullmatch(name)):
            continue
        if default is None or environ[name].strip().lower() != default:
            yield f"{name} is not supported and has no effect"


def load(environ: Mapping[str, str]) -> tuple[Settings, tuple[str, ...]]:
    """The settings that an environment asks for, and a warning for each variable that is not followed."""
    warnings: list[str] = []
    groups = get_type_hints(Settings)
    values: dict[str, Any] = {name: _load_group(group, environ, warnings) for name, group in groups.items()}
    known = {variable.name for group in groups.values() for _, variable in _variables(group)}
    warnings.extend(_check_flags(environ, known))
    return Settings(**values), tuple(warnings)
