"""Mizzen's own codes, as `catalogue` has the reference's. A number is never used for anything else."""

from collections.abc import Mapping

from mizzen.analysis.findings import Message

FIELD_NOT_READ = Message("MZ0001", "FieldNotRead", "Warning", "Not as the kind has it: %s")
FIELD_NOT_IN_FORCE = Message(
    "MZ0002",
    "FieldNotInForce",
    "Error",
    "The policy cannot be read as it stands, so %s: %s",
)
DEFINED_TWICE = Message(
    "MZ0003", "DefinedTwice", "Warning", "The object stands a second time at %s, where it has no effect."
)
REFUSED_BY_SCHEMA = Message("MZ0004", "RefusedBySchema", "Error", "The API server would refuse the object: %s")
LEFT_OUT = Message("MZ0005", "LeftOut", "Error", "Not in force: %s")
WITHOUT_EFFECT = Message("MZ0006", "WithoutEffect", "Warning", "Not in force: %s")
HOST_NEVER_ROUTED = Message(
    "MZ0101", "HostNeverRouted", "Warning", "No proxy routes the host %s of this VirtualService: %s."
)
SUBSET_WITHOUT_ENDPOINTS = Message(
    "MZ0102",
    "SubsetWithoutEndpoints",
    "Warning",
    "No endpoint of %s is in subset %s (%s), so requests to it are answered with 503.",
)
PROTOCOL_MISMATCH = Message("MZ0103", "ProtocolMismatch", "Warning", "Port %d of %s: %s.")
STRICT_WITHOUT_SIDECAR = Message(
    "MZ0104",
    "StrictWithoutSidecar",
    "Warning",
    "Mutual TLS is required, and pods of namespace %s without a sidecar cannot call the selected workloads: %s.",
)
TLS_CONFLICT = Message(
    "MZ0105",
    "TLSConflict",
    "Error",
    "Clients speak %s to port %d of %s, whose workloads take %s: connections fail.",
)
DENIES_ALL = Message("MZ0106", "DeniesAll", "Warning", "The policy denies every request that it is for: %s.")
ALLOWS_ALL = Message("MZ0107", "AllowsAll", "Warning", "The policy allows every request that it is for: %s.")
TOKENLESS_REQUEST_PASSES = Message(
    "MZ0108",
    "TokenlessRequestPasses",
    "Warning",
    "Requests without a token pass: no AuthorizationPolicy for %s asks for a request principal.",
)
UNREACHABLE_ROUTE = Message("MZ0109", "UnreachableRoute", "Warning", "%s is never reached, %s takes its requests.")
BAD_REGEX = Message("MZ0110", "BadRegex", "Error", "The regular expression %q %s.")
GATEWAY_WITHOUT_ROUTES = Message(
    "MZ0111", "GatewayWithoutRoutes", "Warning", "No route is attached to this Gateway, so it answers 404 or closes."
)
SERVICE_ENTRY_OVERLAP = Message("MZ0112", "ServiceEntryOverlap", "Warning", "%s is defined by %s too: %s.")
ENVOY_FILTER_WITHOUT_MATCH = Message(
    "MZ0113", "EnvoyFilterWithoutMatch", "Warning", "The EnvoyFilter changes nothing: %s."
)
FAILOVER_WITHOUT_OUTLIER_DETECTION = Message(
    "MZ0114",
    "FailoverWithoutOutlierDetection",
    "Warning",
    "Locality failover has no effect without outlier detection in the same policy (host %s).",
)
OUTLIER_DETECTION_WITHOUT_FAILOVER = Message(
    "MZ0115",
    "OutlierDetectionWithoutFailover",
    "Info",
    "Outlier detection makes clients of %s prefer endpoints of their own locality, of which there are several; "
    "say with localityLbSetting where requests go when those fail, or that locality does not count.",
)

_ALL = (
    FIELD_NOT_READ,
    FIELD_NOT_IN_FORCE,
    DEFINED_TWICE,
    REFUSED_BY_SCHEMA,
    LEFT_OUT,
    WITHOUT_EFFECT,
    HOST_NEVER_ROUTED,
    SUBSET_WITHOUT_ENDPOINTS,
    PROTOCOL_MISMATCH,
    STRICT_WITHOUT_SIDECAR,
    TLS_CONFLICT,
    DENIES_ALL,
    ALLOWS_ALL,
    TOKENLESS_REQUEST_PASSES,
    UNREACHABLE_ROUTE,
    BAD_REGEX,
    GATEWAY_WITHOUT_ROUTES,
    SERVICE_ENTRY_OVERLAP,
    ENVOY_FILTER_WITHOUT_MATCH,
    FAILOVER_WITHOUT_OUTLIER_DETECTION,
    OUTLIER_DETECTION_WITHOUT_FAILOVER,
)

OWN_CODES: Mapping[str, Message] = {message.code: message for message in _ALL}
