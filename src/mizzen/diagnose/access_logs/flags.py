"""Envoy's response flags: their long names, the stage at which they arise, what they say.

In: a flag as it stands in a log. Out: `Flag`. The table has all of current releases; a flag that it lacks is newer.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Flag(NamedTuple):
    """One response flag."""

    name: str
    """As Envoy's configuration spells it."""
    stage: str
    meaning: str


FLAGS: Mapping[str, Flag] = {
    "LH": Flag("FailedLocalHealthCheck", "filters", "the health check filter fails this proxy"),
    "UH": Flag("NoHealthyUpstream", "endpoint", "the cluster has no host that may be chosen"),
    "UT": Flag("UpstreamRequestTimeout", "upstream", "a timeout of the route, or of one try, was over"),
    "LR": Flag("LocalReset", "upstream", "this proxy reset the stream"),
    "UR": Flag("UpstreamRemoteReset", "upstream", "the upstream reset the stream"),
    "UF": Flag("UpstreamConnectionFailure", "connection", "no connection, or no TLS, to the upstream"),
    "UC": Flag("UpstreamConnectionTermination", "upstream", "an established connection to the upstream was closed"),
    "UO": Flag("UpstreamOverflow", "endpoint", "a circuit breaker was open"),
    "NR": Flag("NoRouteFound", "route", "no route, or no filter chain"),
    "DI": Flag("DelayInjected", "filters", "a configured fault delayed the request"),
    "FI": Flag("FaultInjected", "filters", "a configured fault ended the request"),
    "RL": Flag("RateLimited", "filters", "a rate limit, local or global"),
    "UAEX": Flag("UnauthorizedExternalService", "filters", "the external authorizer refused, or did not answer"),
    "RLSE": Flag("RateLimitServiceError", "filters", "the rate limit service did not answer"),
    "DC": Flag("DownstreamConnectionTermination", "client", "the client closed the connection"),
    "URX": Flag("UpstreamRetryLimitExceeded", "upstream", "retries or attempts to connect are used up"),
    "SI": Flag("StreamIdleTimeout", "upstream", "nothing moved on the stream for too long"),
    "IH": Flag("InvalidEnvoyRequestHeaders", "codec", "an x-envoy header has an impossible value"),
    "DPE": Flag("DownstreamProtocolError", "codec", "the client's bytes are not the protocol of the port"),
    "UMSDR": Flag("UpstreamMaxStreamDurationReached", "upstream", "the longest duration of a stream is over"),
    "RFCF": Flag("ResponseFromCacheFilter", "filters", "the answer came from a cache"),
    "NFCF": Flag("NoFilterConfigFound", "filters", "a filter's configuration has not arrived"),
    "DT": Flag("DurationTimeout", "upstream", "the longest duration of a connection is over"),
    "UPE": Flag("UpstreamProtocolError", "upstream", "the upstream's bytes are not the protocol of the cluster"),
    "NC": Flag("NoClusterFound", "cluster", "the route names a cluster that is not there"),
    "OM": Flag("OverloadManagerTerminated", "listener", "the proxy is overloaded and sheds work"),
    "DF": Flag("DnsResolutionFailed", "endpoint", "the host's name does not resolve"),
    "DO": Flag("DropOverload", "endpoint", "the endpoints' drop percentage"),
    "DR": Flag("DownstreamRemoteReset", "client", "the client reset the stream"),
    "UDO": Flag("UnconditionalDropOverload", "endpoint", "the endpoints' drop percentage is all"),
}
