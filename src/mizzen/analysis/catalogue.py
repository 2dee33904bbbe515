"""The catalogue: every code of the reference, with its name, level and text.

Texts are the reference's, typing errors included, since operators grep for them. Retired numbers are never used again:
0104, 0105, 0113 to 0115, 0117, 0119 to 0122. The reference emits 0001, 0143 and 0168 no more; here the engine and
`precheck` do. Every `Message` of this module is in `CATALOGUE`.
"""

from collections.abc import Mapping

from mizzen.analysis.findings import Message

ISTIO_RELEASE = "1.32"
DOCUMENTATION = f"https://istio.io/v{ISTIO_RELEASE}/docs/reference/config/analysis"

INTERNAL_ERROR = Message("IST0001", "InternalError", "Error", "Internal error: %v")
DEPRECATED = Message("IST0002", "Deprecated", "Warning", "Deprecated: %s")
REFERENCED_RESOURCE_NOT_FOUND = Message("IST0101", "ReferencedResourceNotFound", "Error", "Referenced %s not found: %q")
NAMESPACE_NOT_INJECTED = Message(
    "IST0102",
    "NamespaceNotInjected",
    "Info",
    "The namespace is not enabled for Istio injection. Run 'kubectl label namespace %s "
    "istio-injection=enabled' to enable it, or 'kubectl label namespace %s istio-injection=disabled'"
    " to explicitly mark it as not needing injection.",
)
POD_MISSING_PROXY = Message(
    "IST0103",
    "PodMissingProxy",
    "Warning",
    "The pod %s is missing the Istio proxy. This can often be resolved by restarting or redeploying the workload.",
)
SCHEMA_VALIDATION_ERROR = Message("IST0106", "SchemaValidationError", "Error", "Schema validation error: %v")
MISPLACED_ANNOTATION = Message(
    "IST0107", "MisplacedAnnotation", "Warning", "Misplaced annotation: %s can only be applied to %s"
)
UNKNOWN_ANNOTATION = Message("IST0108", "UnknownAnnotation", "Warning", "Unknown annotation: %s")
CONFLICTING_MESH_GATEWAY_VIRTUAL_SERVICE_HOSTS = Message(
    "IST0109",
    "ConflictingMeshGatewayVirtualServiceHosts",
    "Error",
    "The VirtualServices %s associated with mesh gateway define the same host %s which can lead to "
    "undefined behavior. This can be fixed by merging the conflicting VirtualServices into a single "
    "resource.",
)
CONFLICTING_SIDECAR_WORKLOAD_SELECTORS = Message(
    "IST0110",
    "ConflictingSidecarWorkloadSelectors",
    "Error",
    "The Sidecars %v in namespace %q select the same workload pod %q, which can lead to undefined behavior.",
)
MULTIPLE_SIDECARS_WITHOUT_WORKLOAD_SELECTORS = Message(
    "IST0111",
    "MultipleSidecarsWithoutWorkloadSelectors",
    "Error",
    "The Sidecars %v in namespace %q have no workload selector, which can lead to undefined behavior.",
)
VIRTUAL_SERVICE_DESTINATION_PORT_SELECTOR_REQUIRED = Message(
    "IST0112",
    "VirtualServiceDestinationPortSelectorRequired",
    "Error",
    "This VirtualService routes to a service %q that exposes multiple ports %v. Specifying a port in"
    " the destination is required to disambiguate.",
)
DEPLOYMENT_ASSOCIATED_TO_MULTIPLE_SERVICES = Message(
    "IST0116",
    "DeploymentAssociatedToMultipleServices",
    "Warning",
    "This deployment %s is associated with multiple services using port %d but different protocols: %v",
)
PORT_NAME_IS_NOT_UNDER_NAMING_CONVENTION = Message(
    "IST0118",
    "PortNameIsNotUnderNamingConvention",
    "Info",
    "Port name %s (port: %d, targetPort: %s) doesn't follow the naming convention of Istio port.",
)
NAMESPACE_MULTIPLE_INJECTION_LABELS = Message(
    "IST0123",
    "NamespaceMultipleInjectionLabels",
    "Warning",
    "The namespace has more than one type of injection labels %v, which may lead to undefined "
    "behavior. Make sure only one injection label exists.",
)
INVALID_ANNOTATION = Message("IST0125", "InvalidAnnotation", "Warning", "Invalid annotation %s: %s")
UNKNOWN_MESH_NETWORKS_SERVICE_REGISTRY = Message(
    "IST0126", "UnknownMeshNetworksServiceRegistry", "Error", "Unknown service registry %s in network %s"
)
NO_MATCHING_WORKLOADS_FOUND = Message(
    "IST0127",
    "NoMatchingWorkloadsFound",
    "Warning",
    "No matching workloads for this resource with the following labels: %s",
)
NO_SERVER_CERTIFICATE_VERIFICATION_DESTINATION_LEVEL = Message(
    "IST0128",
    "NoServerCertificateVerificationDestinationLevel",
    "Warning",
    "DestinationRule %s in namespace %s has TLS mode set to %s but no caCertificates are set to "
    "validate server identity for host: %s",
)
NO_SERVER_CERTIFICATE_VERIFICATION_PORT_LEVEL = Message(
    "IST0129",
    "NoServerCertificateVerificationPortLevel",
    "Warning",
    "DestinationRule %s in namespace %s has TLS mode set to %s but no caCertificates are set to "
    "validate server identity for host: %s at port %s",
)
VIRTUAL_SERVICE_UNREACHABLE_RULE = Message(
    "IST0130", "VirtualServiceUnreachableRule", "Warning", "VirtualService rule %v not used (%s)."
)
VIRTUAL_SERVICE_INEFFECTIVE_MATCH = Message(
    "IST0131",
    "VirtualServiceIneffectiveMatch",
    "Info",
    "VirtualService rule %v match %v is not used (duplicate/overlapping match in rule %v).",
)
VIRTUAL_SERVICE_HOST_NOT_FOUND_IN_GATEWAY = Message(
    "IST0132",
    "VirtualServiceHostNotFoundInGateway",
    "Warning",
    "one or more host %v defined in VirtualService %s not found in Gateway %s.",
)
SCHEMA_WARNING = Message("IST0133", "SchemaWarning", "Warning", "Schema validation warning: %v")
SERVICE_ENTRY_ADDRESSES_REQUIRED = Message(
    "IST0134", "ServiceEntryAddressesRequired", "Warning", "ServiceEntry addresses are required for this protocol."
)
DEPRECATED_ANNOTATION = Message(
    "IST0135",
    "DeprecatedAnnotation",
    "Info",
    "Annotation %q has been deprecated%s and may not work in future Istio versions.",
)
ALPHA_ANNOTATION = Message(
    "IST0136",
    "AlphaAnnotation",
    "Info",
    "Annotation %q is part of an alpha-phase feature and may be incompletely supported.",
)
DEPLOYMENT_CONFLICTING_PORTS = Message(
    "IST0137",
    "DeploymentConflictingPorts",
    "Warning",
    "This deployment %s is associated with multiple services %v using targetPort %q but different ports: %v.",
)
GATEWAY_DUPLICATE_CERTIFICATE = Message(
    "IST0138",
    "GatewayDuplicateCertificate",
    "Warning",
    "Duplicate certificate in multiple gateways %v may cause 404s if clients re-use HTTP2 connections.",
)
INVALID_WEBHOOK = Message("IST0139", "InvalidWebhook", "Error", "%v")
INGRESS_ROUTE_RULES_NOT_AFFECTED = Message(
    "IST0140",
    "IngressRouteRulesNotAffected",
    "Warning",
    "Subset in virtual service %s has no effect on ingress gateway %s requests",
)
INSUFFICIENT_PERMISSIONS = Message(
    "IST0141", "InsufficientPermissions", "Error", "Missing required permission to create resource %v (%v)"
)
UNSUPPORTED_KUBERNETES_VERSION = Message(
    "IST0142",
    "UnsupportedKubernetesVersion",
    "Error",
    "The Kubernetes Version %q is lower than the minimum version: %v",
)
LOCALHOST_LISTENER = Message(
    "IST0143",
    "LocalhostListener",
    "Error",
    "Port %v is exposed in a Service but listens on localhost. It will not be exposed to other pods.",
)
INVALID_APPLICATION_UID = Message(
    "IST0144", "InvalidApplicationUID", "Warning", "User ID (UID) 1337 is reserved for the sidecar proxy."
)
CONFLICTING_GATEWAYS = Message(
    "IST0145", "ConflictingGateways", "Error", "Conflict with gateways %s (workload selector %s, port %s, hosts %v)."
)
IMAGE_AUTO_WITHOUT_INJECTION_WARNING = Message(
    "IST0146",
    "ImageAutoWithoutInjectionWarning",
    "Warning",
    "%s %s contains `image: auto` but does not match any Istio injection webhook selectors.",
)
IMAGE_AUTO_WITHOUT_INJECTION_ERROR = Message(
    "IST0147",
    "ImageAutoWithoutInjectionError",
    "Error",
    "%s %s contains `image: auto` but does not match any Istio injection webhook selectors.",
)
NAMESPACE_INJECTION_ENABLED_BY_DEFAULT = Message(
    "IST0148",
    "NamespaceInjectionEnabledByDefault",
    "Info",
    "is enabled for Istio injection, as Istio is installed with enableNamespacesByDefault as true.",
)
JWT_CLAIM_BASED_ROUTING_WITHOUT_REQUEST_AUTHENTICATION = Message(
    "IST0149",
    "JwtClaimBasedRoutingWithoutRequestAuthN",
    "Error",
    "The virtual service uses the JWT claim based routing (key: %s) but found no request "
    "authentication for the gateway (%s) pod (%s). The request authentication must first be applied "
    "for the gateway pods to validate the JWT token and make the claims available for routing.",
)
EXTERNAL_NAME_SERVICE_TYPE_INVALID_PORT_NAME = Message(
    "IST0150",
    "ExternalNameServiceTypeInvalidPortName",
    "Warning",
    "Port name for ExternalName service is invalid. Proxy may prevent tcp named ports and unmatched "
    "traffic for ports serving TCP protocol from being forwarded correctly",
)
ENVOY_FILTER_USES_RELATIVE_OPERATION = Message(
    "IST0151",
    "EnvoyFilterUsesRelativeOperation",
    "Warning",
    "This EnvoyFilter does not have a priority and has a relative patch operation set which can "
    "cause the EnvoyFilter not to be applied. Using the INSERT_FIRST of ADD option or setting the "
    "priority may help in ensuring the EnvoyFilter is applied correctly.",
)
ENVOY_FILTER_USES_REPLACE_OPERATION_INCORRECTLY = Message(
    "IST0152",
    "EnvoyFilterUsesReplaceOperationIncorrectly",
    "Error",
    "The REPLACE operation is only valid for HTTP_FILTER and NETWORK_FILTER.",
)
ENVOY_FILTER_USES_ADD_OPERATION_INCORRECTLY = Message(
    "IST0153",
    "EnvoyFilterUsesAddOperationIncorrectly",
    "Error",
    "The ADD operation will be ignored when applyTo is set to ROUTE_CONFIGURATION, or HTTP_ROUTE.",
)
ENVOY_FILTER_USES_REMOVE_OPERATION_INCORRECTLY = Message(
    "IST0154",
    "EnvoyFilterUsesRemoveOperationIncorrectly",
    "Error",
    "The REMOVE operation will be ignored when applyTo is set to ROUTE_CONFIGURATION, or HTTP_ROUTE.",
)
ENVOY_FILTER_USES_RELATIVE_OPERATION_WITH_PROXY_VERSION = Message(
    "IST0155",
    "EnvoyFilterUsesRelativeOperationWithProxyVersion",
    "Warning",
    "This EnvoyFilter does not have a priority and has a relative patch operation "
    "(NSTERT_BEFORE/AFTER, REPLACE, MERGE, DELETE) and proxyVersion set which can cause the "
    "EnvoyFilter not to be applied during an upgrade. Using the INSERT_FIRST or ADD option or "
    "setting the priority may help in ensuring the EnvoyFilter is applied correctly.",
)
UNSUPPORTED_GATEWAY_API_VERSION = Message(
    "IST0156",
    "UnsupportedGatewayAPIVersion",
    "Error",
    "The Gateway API CRD version %v is lower than the minimum version: %v",
)
INVALID_TELEMETRY_PROVIDER = Message(
    "IST0157",
    "InvalidTelemetryProvider",
    "Warning",
    "The Telemetry %v in namespace %q with empty providers will be ignored.",
)
PODS_ISTIO_PROXY_IMAGE_MISMATCH_IN_NAMESPACE = Message(
    "IST0158",
    "PodsIstioProxyImageMismatchInNamespace",
    "Warning",
    "The Istio proxy images of the pods running in the namespace do not match the image defined in "
    "the injection configuration (pod names: %v). This often happens after upgrading the Istio "
    "control-plane and can be fixed by redeploying the pods.",
)
CONFLICTING_TELEMETRY_WORKLOAD_SELECTORS = Message(
    "IST0159",
    "ConflictingTelemetryWorkloadSelectors",
    "Error",
    "The Telemetries %v in namespace %q select the same workload pod %q, which can lead to undefined behavior.",
)
MULTIPLE_TELEMETRIES_WITHOUT_WORKLOAD_SELECTORS = Message(
    "IST0160",
    "MultipleTelemetriesWithoutWorkloadSelectors",
    "Error",
    "The Telemetries %v in namespace %q have no workload selector, which can lead to undefined behavior.",
)
INVALID_GATEWAY_CREDENTIAL = Message(
    "IST0161",
    "InvalidGatewayCredential",
    "Error",
    "The credential referenced by the Gateway %s in namespace %s is invalid, which can cause the "
    "traffic not to work as expected.",
)
GATEWAY_PORT_NOT_DEFINED_ON_SERVICE = Message(
    "IST0162",
    "GatewayPortNotDefinedOnService",
    "Warning",
    "The gateway is listening on a target port (port %d) that is not defined in the Service "
    "associated with its workload instances (Pod selector %s). If you need to access the gateway "
    "port through the gateway Service, it will not be available.",
)
INVALID_EXTERNAL_CONTROL_PLANE_CONFIG = Message(
    "IST0163",
    "InvalidExternalControlPlaneConfig",
    "Warning",
    "The hostname (%s) that was provided for the webhook (%s) to reach the ingress gateway on the "
    "external control plane cluster %s. Traffic may not flow properly.",
)
EXTERNAL_CONTROL_PLANE_ADDRESS_IS_NOT_A_HOSTNAME = Message(
    "IST0164",
    "ExternalControlPlaneAddressIsNotAHostname",
    "Info",
    "The address (%s) that was provided for the webhook (%s) to reach the ingress gateway on the "
    "external control plane cluster is an IP address. This is not recommended for a production "
    "environment.",
)
REFERENCED_INTERNAL_GATEWAY = Message(
    "IST0165",
    "ReferencedInternalGateway",
    "Warning",
    "Gateway reference in VirtualService %s is to an implementation-generated internal Gateway: %s.",
)
INEFFECTIVE_SELECTOR = Message(
    "IST0166",
    "IneffectiveSelector",
    "Warning",
    "Ineffective selector on Kubernetes Gateway %s. Use the TargetRef field instead.",
)
INEFFECTIVE_POLICY = Message("IST0167", "IneffectivePolicy", "Warning", "The policy has no impact: %s.")
UNKNOWN_UPGRADE_COMPATIBILITY = Message(
    "IST0168",
    "UnknownUpgradeCompatibility",
    "Warning",
    "The configuration %q changed in release %s, but compatibility cannot be automatically detected:"
    " %s. Or, install with `--set compatibilityVersion=%s` to retain the old default.",
)
UPDATE_INCOMPATIBILITY = Message(
    "IST0169",
    "UpdateIncompatibility",
    "Warning",
    "The configuration %q changed in release %s: %s. Or, install with `--set "
    "compatibilityVersion=%s` to retain the old default.",
)
MULTI_CLUSTER_INCONSISTENT_SERVICE = Message(
    "IST0170",
    "MultiClusterInconsistentService",
    "Warning",
    "The service %v in namespace %q is inconsistent across clusters %q, which can lead to undefined "
    "behaviors. The inconsistent behaviors are: %v.",
)
NEGATIVE_CONDITION_STATUS = Message(
    "IST0171",
    "NegativeConditionStatus",
    "Warning",
    "A condition with a negative status is present: type=%s, reason=%s, message=%s.",
)
FUTURE_UNSUPPORTED_GATEWAY_API_VERSION = Message(
    "IST0172",
    "FutureUnsupportedGatewayAPIVersion",
    "Warning",
    "The Gateway API CRD version %v is lower than the minimum version: %v",
)
DESTINATION_RULE_SUBSET_NOT_SELECT_PODS = Message(
    "IST0173",
    "DestinationRuleSubsetNotSelectPods",
    "Error",
    "The Subset %s defined in the DestinationRule does not select any pods. Which may lead to 503 UH"
    " (NoHealthyUpstream).",
)
UNKNOWN_DESTINATION_RULE_HOST = Message(
    "IST0174",
    "UnknownDestinationRuleHost",
    "Warning",
    "The host %s defined in the DestinationRule does not match any services in the mesh.",
)
JWKS_URI_FETCH_UNRESTRICTED = Message(
    "IST0175",
    "JwksUriFetchUnrestricted",
    "Warning",
    "BLOCKED_CIDRS_IN_JWKS_URIS is not configured but %d RequestAuthentication resource(s) exist "
    "(%s). Consider configuring it to restrict JWKS URI fetches to trusted networks.",
)
GATEWAY_API_CRD_VERSION_BELOW_MINIMUM = Message(
    "IST0176",
    "GatewayAPICRDVersionBelowMinimum",
    "Warning",
    "Gateway API CRD %q is at version %q but Istio requires at least %q; resources of this kind will"
    " not be processed. Upgrade the Gateway API CRDs to satisfy the minimum version.",
)
CONFLICTING_SERVICE_ENTRY_PROTOCOL = Message(
    "IST0177",
    "ConflictingServiceEntryProtocol",
    "Warning",
    "Multiple ServiceEntries (%s) define the same host %q and port %d with conflicting protocols (%s).",
)

CATALOGUE: Mapping[str, Message] = {each.code: each for each in tuple(globals().values()) if isinstance(each, Message)}


def documentation(code: str) -> str:
    """The page about a code; empty for one of our own, which have none."""
    return f"{DOCUMENTATION}/{code.lower()}/" if code in CATALOGUE else ""
