"""Which cause an entry tells of, as tables read from top to bottom.

In: an `Entry`. Out: `Finding`: the cause's code, and what sets one such cause apart from another (the TLS alert, the
policy's rule, the token's fault); None for an entry that tells of nothing wrong. First come answers that say how they
ended by a detail of their own, then transport failures, then flags.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from mizzen.diagnose.access_logs.lines import Entry
from mizzen.model import names

_BLOCKED = "block_all"
"""The route of all that is not known, where only what is known may be called."""
_GOOD_ENDS = frozenset({"DC", "DR"})
_SILENT = frozenset({"RFCF"})
"""Flags of requests with which nothing is wrong."""


class Finding(NamedTuple):
    """What an entry tells."""

    code: str
    mark: str = ""


Decide = Callable[[Entry, re.Match[str]], Finding | None]


def find(entry: Entry) -> Finding | None:
    """The cause, or None where all is well."""
    if _is_fine(entry):
        return None
    for text in (entry.details, entry.termination):
        for pattern, decide in _BY_DETAILS if text else ():
            match = pattern.match(text)
            found = decide(entry, match) if match is not None else None
            if found is not None:
                return found
    return _by_transport(entry) or _by_flags(entry) or _by_status(entry)


def _is_fine(entry: Entry) -> bool:
    if entry.termination.startswith("rbac_access_denied") or entry.details.startswith("rbac_access_denied"):
        return False
    flags = entry.flags - _SILENT
    if not flags:
        return 0 < entry.status < 400 or (entry.is_connection and not entry.details and not entry.failure)
    # Whoever ends a WebSocket or a connection that was served does nothing wrong.
    ended = flags <= _GOOD_ENDS and not entry.failure
    return ended and (entry.status == 101 or (entry.is_connection and bool(entry.upstream)))


# -- transport failures -----------------------------------------------------------------------------------------------

_TRANSPORT: tuple[tuple[str, str], ...] = (
    ("Secret_is_not_supplied", "secret-missing"),
    ("certificate_has_expired", "tls-expired"),
    ("CERTIFICATE_EXPIRED", "tls-expired"),
    (r"verify_SAN_list|SAN_matcher|verify_SAN", "tls-wrong-name"),
    ("CERTIFICATE_VERIFY_FAILED|268435581", "tls-untrusted"),
    (r"WRONG_VERSION_NUMBER|HTTP_REQUEST|:UNEXPECTED_MESSAGE|268435703|268435611", "tls-to-plain"),
    (r"NO_SHARED_CIPHER|UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|HANDSHAKE_FAILURE", "tls-parameters"),
    (r"ALERT_|UNRECOGNIZED_NAME|CERTIFICATE_REQUIRED|DID_NOT_RETURN|TLS_error|^tls:", "tls-refused"),
    (r"immediate_connect_error", "local-connect"),
    (r"Connection_refused|connect_error:_111", "refused"),
    (r"No_route_to_host|Network_is_unreachable|connect_error:_(113|101)", "unreachable"),
    (r"Connection_reset_by_peer|connect_error:_104", "reset-at-connect"),
    (r"timed_out|connect_error:_110|connect_timeout|connection_timeout", "connect-timeout"),
)
"""Parts of transport failure reasons, and what they mean; older releases print some as numbers."""
_TRANSPORT_PATTERNS = tuple((re.compile(part), code) for part, code in _TRANSPORT)
_TLS_NAME = re.compile(r"(?:OPENSSL_internal|SSL_routines):(?:OPENSSL_internal:)?([A-Z0-9_]{4,})")
_BRACES = re.compile(r"[{|,](.*)\}?$")


def _by_transport(entry: Entry) -> Finding | None:
    """By the reason why the upstream's transport failed; older releases have it in the details only."""
    if "UF" not in entry.flags and not entry.failure:
        return None
    inner = _BRACES.search(entry.details)
    text = f"{entry.failure} {inner[1] if inner else ''}".replace(" ", "_", entry.failure.count(" "))
    for pattern, code in _TRANSPORT_PATTERNS:
        if pattern.search(text):
            if code == "refused" and entry.is_inbound:
                return Finding("program-refuses")
            name = _TLS_NAME.search(text) if code in ("tls-refused", "tls-parameters") else None
            return Finding(code, name[1] if name is not None else "")
    return Finding("connect-failed") if "UF" in entry.flags else None


# -- details ----------------------------------------------------------------------------------------------------------


def _always(code: str) -> Decide:
    return lambda _entry, _match: Finding(code)


def _by_policy(_entry: Entry, match: re.Match[str]) -> Finding:
    rule = match["rule"]
    return Finding("denied-by-default") if rule in ("none", "") else Finding("denied-by-rule", rule)


def _marked(code: str) -> Decide:
    """Marked by the reason that the details give."""
    return lambda _entry, match: Finding(code, match["why"])


def _of_entry(decide: Callable[[Entry], Finding]) -> Decide:
    """By the entry alone, once the details are known to be these."""
    return lambda entry, _match: decide(entry)


def _without_chain(entry: Entry) -> Finding:
    """A gateway's listener is asked for names; a sidecar's, which is reached at the pod's own address, for TLS."""
    if entry.sni and not entry.sni.startswith("outbound_.") and ".svc." not in entry.sni:
        return Finding("no-server-name", entry.sni)
    return Finding("plain-to-strict" if not entry.sni else "tls-unknown-to-server")


def _directly(entry: Entry) -> Finding:
    return Finding("registry-only") if entry.route == _BLOCKED else Finding("direct-response", str(entry.status))


def _without_host(entry: Entry) -> Finding:
    if entry.cluster == names.BLACK_HOLE:
        return Finding("registry-only")
    key = names.parse_subset_key(entry.cluster)
    return Finding("empty-subset" if key is not None and key.subset else "no-endpoint")


def _unreadable(entry: Entry) -> Finding:
    return Finding("wrong-protocol" if "UPE" in entry.flags else "client-protocol")


def _reset_before(entry: Entry, match: re.Match[str]) -> Finding | None:
    known = _by_transport(entry)
    if known is not None and known.code != "connect-failed":
        return known
    reason = match["reason"]
    code = next((code for part, code in _RESETS if reason.startswith(part)), "")
    return Finding(code) if code else known


_RESETS = (
    ("connection_termination", "connection-closed"),
    ("overflow", "overflow"),
    ("protocol_error", "wrong-protocol"),
    ("remote_reset", "upstream-reset"),
    ("remote_refused_stream_reset", "upstream-reset"),
    ("local_reset", "local-reset"),
    ("local_refused_stream_reset", "local-reset"),
    ("connection_timeout", "connect-timeout"),
    ("overload", "overload"),
    ("http/1_early_upstream_half-close", "truncated"),
)
"""Reasons of resets, as far as they are no failure to connect."""

_DETAILS: tuple[tuple[str, Decide], ...] = (
    (r"rbac_access_denied_matched_policy\[(?P<rule>.*)\]$", _by_policy),
    (r"jwt_authn_access_denied\{(?P<why>[^}]*)\}", _marked("token")),
    (r"ext_authz_denied", _always("authorizer-denies")),
    (r"ext_authz_error", _always("authorizer-fails")),
    (r"local_rate_limited", _always("local-limit")),
    (r"request_rate_limited", _always("global-limit")),
    (r"rate_limiter_error", _always("limiter-fails")),
    (r"fault_filter_abort", _always("fault-abort")),
    (r"filter_chain_not_found", _of_entry(_without_chain)),
    (r"route_not_found", _always("no-route")),
    (r"route_configuration_not_found", _always("routes-not-there")),
    (r"direct_response", _of_entry(_directly)),
    (r"cluster_not_found", _always("no-cluster")),
    (r"no_healthy_upstream", _of_entry(_without_host)),
    (r"(maintenance_mode|drop_overload|unconditional_drop_overload)", _always("dropped")),
    (r"dns_resolution_failure|dynamic_forward_proxy|dns_cache", _always("name-unresolved")),
    (r"upstream_reset_before_response_started\{(?P<reason>[^|,}]*)", _reset_before),
    (r"upstream_reset_after_response_started", _always("truncated")),
    (r"(response_timeout|upstream_response_timeout)", _always("timeout")),
    (r"upstream_per_try_(idle_)?timeout", _always("try-timeout")),
    (r"(upstream_max_stream_duration_reached|max_duration_timeout|duration_timeout)", _always("stream-duration")),
    (r"stream_idle_timeout", _always("idle")),
    (r"(request_header_timeout|request_overall_timeout|downstream_header_timeout)", _always("slow-client")),
    (r"(websocket_handshake_unsuccessful|upgrade_failed)", _always("upgrade-refused")),
    (r"(request_payload|response_payload|request_headers_too)", _always("too-large")),
    (r"low_version", _always("old-http")),
    (r"downstream_local_disconnect\((?P<why>[^)]*)\)", _marked("closed-here")),
    (r"downstream_remote_(disconnect|reset)", _always("client-gone")),
    (r"overload", _always("overload")),
    (r"filter_(removed_required|added_invalid)", _always("extension")),
    (r"(wasm|lua|ext_proc|golang|dynamic_modules)", _always("extension")),
    (r"(request_headers_failed|missing_|absolute_path|invalid_|path_norm|rejecting)", _always("bad-request")),
    (r"(codec_error|http[123][.])", _of_entry(_unreadable)),
)
"""Response code details, and which cause each is."""
_BY_DETAILS: tuple[tuple[re.Pattern[str], Decide], ...] = tuple((re.compile(p), decide) for p, decide in _DETAILS)


# -- flags and codes --------------------------------------------------------------------------------------------------

_FLAGS: Mapping[str, str] = {
    "NC": "no-cluster",
    "UO": "overflow",
    "UT": "timeout",
    "FI": "fault-abort",
    "RL": "global-limit",
    "RLSE": "limiter-fails",
    "NFCF": "filter-missing",
    "DF": "name-unresolved",
    "DO": "dropped",
    "UDO": "dropped",
    "OM": "overload",
    "LH": "health-check",
    "UPE": "wrong-protocol",
    "UMSDR": "stream-duration",
    "DT": "stream-duration",
    "SI": "idle",
    "IH": "bad-request",
    "DPE": "client-protocol",
    "UC": "connection-closed",
    "UR": "upstream-reset",
    "LR": "local-reset",
    "DC": "client-gone",
    "DR": "client-gone",
}
"""What a flag says alone, the decisive ones first; `UF` is with the transport failures."""


def _by_flags(entry: Entry) -> Finding | None:
    if "UH" in entry.flags:
        return _without_host(entry)
    if "NR" in entry.flags:
        return Finding("no-route") if not entry.is_connection else _without_chain(entry)
    if "UAEX" in entry.flags:
        return Finding("authorizer-denies")
    code = next((code for flag, code in _FLAGS.items() if flag in entry.flags), "")
    if code:
        return Finding(code)
    if "DI" in entry.flags and 0 < entry.status < 400:
        return Finding("fault-delay")
    return None


def _by_status(entry: Entry) -> Finding:
    """Answers of programs, and of filters that leave neither flag nor details."""
    if entry.details in ("", "via_upstream") and (entry.status >= 400 or "URX" in entry.flags):
        return Finding("program-answers", str(entry.status) if entry.status >= 400 else "gRPC")
    return Finding("other", " ".join(_marks(entry)))


def _marks(entry: Entry) -> Iterator[str]:
    if entry.status:
        yield str(entry.status)
    yield from sorted(entry.flags)
    if entry.details:
        yield re.split(r"[{(\[]", entry.details)[0]
