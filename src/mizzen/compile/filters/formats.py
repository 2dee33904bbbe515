"""Format strings of logs and tags, for an Envoy that refuses a whole listener for one that it cannot read.

In: a format as a user wrote it. Out: whether upstream Envoy reads it, and JSON formats without the parts that it does
not. What it knows was tried with the Envoy that Mizzen brings; what a command's parameter names is found out per
request.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from mizzen.api.message import names
from mizzen.compile.filters import expressions

_PIECE = re.compile(r"[^%]+|%%|%(?P<command>[A-Z0-9_]+)(?:\((?P<parameter>[^\n]*?)\))?(?P<length>:\d+)?%")
_HEADER = re.compile(r":?[\w!#$&'*+.^`|~-]+(?:\?:?[\w!#$&'*+.^`|~-]+)?", re.ASCII)
_ANY = re.compile(r".+")
_OBJECT = re.compile(r"[^:]+(?::(?:PLAIN|TYPED|FIELD:.+))?")
_PERIOD = re.compile(r"[A-Z0-9_]+:[A-Z0-9_]+(?::(?:ms|us|ns))?")
PARTS = {
    "GRPC_STATUS": re.compile(r"(?:CAMEL_STRING|SNAKE_STRING|NUMBER)?"),
    "PATH": re.compile(r"(?:WQ|NQ)?(?::(?:ORIG|PATH|ORIG_OR_PATH))?"),
    "QUERY_PARAMS": re.compile(r"(?:ORIG|DECODED)?"),
}

ALONE = names(
    """
    ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS
    CUSTOM_FLAGS DOWNSTREAM_CX_RTT DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
    DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT DOWNSTREAM_DETECTED_CLOSE_TYPE DOWNSTREAM_DIRECT_LOCAL_ADDRESS
    DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS
    DOWNSTREAM_DIRECT_REMOTE_PORT DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_HEADER_BYTES_RECEIVED
    DOWNSTREAM_HEADER_BYTES_SENT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID
    DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_IP_SAN
    DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_PORT DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_LOCAL_URI_SAN
    DOWNSTREAM_PEER_CERT DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256
    DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_DNS_SAN DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_PEER_FINGERPRINT_1
    DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_PEER_ISSUER
    DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256 DOWNSTREAM_PEER_ISSUER_SERIAL DOWNSTREAM_PEER_OTHERNAME_SAN
    DOWNSTREAM_PEER_SERIAL DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_REMOTE_ADDRESS
    DOWNSTREAM_REMOTE_PORT DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_GROUP DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_VERSION
    DOWNSTREAM_TRANSPORT_FAILURE_REASON DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_WIRE_BYTES_SENT DURATION
    FILTER_CHAIN_NAME GRPC_STATUS_NUMBER HOSTNAME LISTENER_NAME LOCAL_REPLY_BODY PACKETS_RETRANSMITTED
    PROTOCOL REQUESTED_SERVER_NAME REQUEST_DURATION REQUEST_HEADERS_BYTES REQUEST_TX_DURATION RESPONSE_CODE
    RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES
    RESPONSE_TX_DURATION ROUNDTRIP_DURATION ROUTE_NAME ROUTE_RESOLUTION_COUNT ROUTE_RESOLUTION_TIME_US SPAN_ID
    STREAM_ID TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW
    UPSTREAM_CONNECTION_ID UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_CONNECTION_POOL_READY_DURATION
    UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT UPSTREAM_DETECTED_CLOSE_TYPE
    UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HOST UPSTREAM_HOSTS_ATTEMPTED
    UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME UPSTREAM_HOST_NAMES_ATTEMPTED
    UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS
    UPSTREAM_LOCAL_CLOSE_REASON UPSTREAM_LOCAL_DNS_SAN UPSTREAM_LOCAL_IP_SAN UPSTREAM_LOCAL_PORT
    UPSTREAM_LOCAL_URI_SAN UPSTREAM_PEER_CERT UPSTREAM_PEER_DNS_SAN UPSTREAM_PEER_IP_SAN UPSTREAM_PEER_ISSUER
    UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_PROTOCOL UPSTREAM_REMOTE_ADDRESS
    UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID UPSTREAM_REMOTE_PORT UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_SERVER_NAME
    UPSTREAM_TLS_CIPHER UPSTREAM_TLS_GROUP UPSTREAM_TLS_SESSION_ID UPSTREAM_TLS_VERSION
    UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_WIRE_BYTES_RECEIVED UPSTREAM_WIRE_BYTES_SENT VIRTUAL_CLUSTER_NAME
    """
)
"""Commands without a parameter."""

EITHER = frozenset(
    f"{side}_{address}_WITHOUT_PORT"
    for side, address in (
        *(("DOWNSTREAM", a) for a in ("DIRECT_LOCAL_ADDRESS", "DIRECT_REMOTE_ADDRESS", "LOCAL_ADDRESS")),
        *(("DOWNSTREAM", "REMOTE_ADDRESS"), ("UPSTREAM", "LOCAL_ADDRESS"), ("UPSTREAM", "REMOTE_ADDRESS")),
    )
) | names(
    """
    DOWNSTREAM_PEER_CERT_V_START DOWNSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START UPSTREAM_PEER_CERT_V_END
    EMIT_TIME EMIT_TIME_LOCAL RESPONSE_CODE_DETAILS START_TIME START_TIME_LOCAL
    """
)
"""Commands with or without a parameter."""

_WITH: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("REQ", "RESP", "TRAILER", "REQUEST_HEADER", "RESPONSE_HEADER", "RESPONSE_TRAILER"), _HEADER),
    **dict.fromkeys(("STREAM_INFO_REQ", "REQ_WITHOUT_QUERY"), _HEADER),
    **dict.fromkeys(("CLUSTER_METADATA", "DYNAMIC_METADATA", "UPSTREAM_METADATA", "QUERY_PARAM", "ENVIRONMENT"), _ANY),
    **dict.fromkeys(("FILTER_STATE", "UPSTREAM_FILTER_STATE"), _OBJECT),
    "METADATA": re.compile(
        r"(?:DYNAMIC|CLUSTER|ROUTE|UPSTREAM_HOST|LISTENER|LISTENER_FILTER_CHAIN|VIRTUAL_HOST)(?::.+)?"
    ),
    "COMMON_DURATION": _PERIOD,
}
"""Commands that need a parameter, and its form."""


def is_readable(text: str) -> bool:
    """Whether Envoy reads the format."""
    position = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None or (piece["command"] is not None and not _is_known(**piece.groupdict())):
            return False
        position = piece.end()
    return True


def _is_known(command: str, parameter: str | None, length: str | None) -> bool:
    if command in PARTS:
        is_cut = command == "GRPC_STATUS" and length is not None
        return not is_cut and (parameter is None or PARTS[command].fullmatch(parameter) is not None)
    if command in ALONE:
        return parameter is None and length is None
    if command in EITHER:
        return length is None
    if parameter is None:
        return False
    if command == "CEL":
        return expressions.translate(parameter, "value") is not None
    if command == "COALESCE":
        return _is_coalesce(parameter)
    form = _WITH.get(command)
    return form is not None and form.fullmatch(parameter) is not None


def _is_coalesce(parameter: str) -> bool:
    """A list of commands as JSON, of which the first that yields something counts."""
    try:
        given = json.loads(parameter)
    except ValueError:
        return False
    operators = given.get("operators") if isinstance(given, dict) else None
    return isinstance(operators, list) and bool(operators) and all(map(_is_operator, operators))


def _is_operator(written: Any) -> bool:
    if isinstance(written, str):
        return _is_known(written, None, None)
    if not isinstance(written, dict) or not isinstance(written.get("command"), str):
        return False
    parameter = written.get("param")
    return (parameter is None or isinstance(parameter, str)) and _is_known(written["command"], parameter, None)


def readable_part(value: Any) -> Any:
    """A JSON format without the texts that Envoy does not read; None for a text that is one."""
    if isinstance(value, str):
        return value if is_readable(value) else None
    if isinstance(value, dict):
        parts = ((key, readable_part(each)) for key, each in value.items())
        return {key: part for key, part in parts if part is not None}
    if isinstance(value, list):
        return [part for each in value if (part := readable_part(each)) is not None]
    return value
