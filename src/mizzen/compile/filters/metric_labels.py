"""The labels of Istio's standard metrics in dialect `envoy`: where each comes from, and which stand in one record.

In: the side of a chain, its protocol, whether it terminates mutual TLS. Out: `Group` values. Two dozen labels on each
of four metrics of every chain would be most of a proxy's listeners, and Envoy formats every one of them for every
metric; so labels that belong together are one tag, a record of parts between semicolons, which the agent takes apart
when it is scraped (`agent.status.standard_metrics` reads the records written here). Where a Telemetry changes a label,
its whole group stands by itself, under Istio's names; or where Envoy cannot take the record apart, a list beside it
says what to leave out. What a peer or a request may have written is in no record with
anything else: nobody can move a part.
"""

from collections.abc import Iterator, Mapping

import msgspec

from mizzen.compile.filters import peers
from mizzen.compile.filters.dialect import Side
from mizzen.compile.filters.peers import FACTS, METADATA, first_of

_UNKNOWN = "unknown"
_NOTHING = ";"
"""A record without any part; Envoy takes no empty format."""
_CERTIFIED = "%DOWNSTREAM_PEER_OTHERNAME_SAN%"
"""The record in the peer's certificate (`ca.certificates.RECORD`)."""
WITHOUT = "mz_without"
"""The tag that lists labels which the records beside it hold and which are not to be shown."""
PROTOCOL_STATE = "mizzen.request_protocol"
"""The filter state object that holds `http` or `grpc`."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Labels with their formats, and the record that holds them all while none of them is changed."""

    labels: Mapping[str, str]
    record: str = ""
    """Empty where the labels always stand by themselves."""
    format: str = ""
    whole: bool = False
    """Whether there is the record alone: the labels have no formats of their own."""

    def tags(self, changed: frozenset[str]) -> Mapping[str, str]:
        """The tags that stand for the labels, where these labels are changed."""
        mine = changed & self.labels.keys()
        if self.record and not mine:
            return {self.record: self.format}
        if self.whole:
            return {self.record: self.format, WITHOUT: ";".join(sorted(mine))}
        return self.labels


SOURCE = frozenset(f"source_{fact.label}" for fact in FACTS)
"""The labels that name the workload that calls."""
DESTINATION = frozenset(f"destination_{fact.label}" for fact in FACTS)
"""The labels that name the workload that is called."""


def groups(side: Side, *, http: bool, mutual_tls: bool) -> Iterator[Group]:
    """All labels of a chain's metrics."""
    yield _request(side, http=http, mutual_tls=mutual_tls)
    if side == "inbound":
        yield _server_source(http=http, mutual_tls=mutual_tls)
        yield _own("destination")
        yield _server_principals(mutual_tls=mutual_tls)
        host = _cluster("host"), ("ENVIRONMENT", peers.variable("canonical_service"))
    else:
        yield _own("source")
        yield _client_destination()
        yield Group(
            labels={
                "source_principal": "%UPSTREAM_LOCAL_URI_SAN%",
                "destination_principal": "%UPSTREAM_PEER_URI_SAN%",
            }
        )
        host = _cluster("host"), ("REQ", ":authority")
    # Only a sidecar's clients take the service from the request; a server that knows none is its own.
    asks = http if side == "outbound" else side == "inbound"
    yield Group(labels={"destination_service": first_of(*host) if asks else f"%METADATA(CLUSTER:{METADATA}:host)%"})
    yield _service(side)


def _request(side: Side, *, http: bool, mutual_tls: bool) -> Group:
    client = side != "inbound"
    labels = {
        "reporter": "source" if client else "destination",
        "request_protocol": f"%FILTER_STATE({PROTOCOL_STATE}:PLAIN)%" if http else "tcp",
    }
    if http:
        labels |= {"response_code": "%RESPONSE_CODE%", "grpc_response_status": "%GRPC_STATUS_NUMBER%"}
    labels["response_flags"] = "%RESPONSE_FLAGS%"
    labels["connection_security_policy"] = _UNKNOWN if client else "mutual_tls" if mutual_tls else "none"
    return Group(labels=labels, record="mz_http" if http else "mz_tcp", format=";".join(labels.values()))


def _own(role: str) -> Group:
    labels = {f"{role}_{fact.label}": f"%ENVIRONMENT({fact.variable})%" for fact in FACTS}
    return Group(labels=labels, record=f"mz_{role}", format=f"%ENVIRONMENT({peers.RECORD_VARIABLE})%")


def _server_source(*, http: bool, mutual_tls: bool) -> Group:
    """Who calls, if the caller has proved that it may say so."""
    if not mutual_tls:
        return Group(labels=dict.fromkeys(_in_order("source"), _UNKNOWN), record="mz_source", format=_NOTHING)
    if not http:
        labels = dict.fromkeys(_in_order("source"), "")
        return Group(labels=labels, record="mz_source", format=_CERTIFIED, whole=True)
    labels = {
        f"source_{fact.label}": first_of(("DYNAMIC_METADATA", f"{peers.SPLIT_METADATA}:{fact.key}")) for fact in FACTS
    }
    return Group(labels=labels, record="mz_source", format=f"%FILTER_STATE({peers.STATE}:PLAIN)%")


def _client_destination() -> Group:
    labels = {f"destination_{fact.label}": first_of(("UPSTREAM_METADATA", f"{METADATA}:{fact.key}")) for fact in FACTS}
    record = f"%UPSTREAM_METADATA(istio:workload)%;%UPSTREAM_METADATA({METADATA}:{peers.LABELS_KEY})%"
    return Group(labels=labels, record="mz_destination", format=record)


def _server_principals(*, mutual_tls: bool) -> Group:
    source = "%DOWNSTREAM_PEER_URI_SAN%" if mutual_tls else _UNKNOWN
    destination = "%DOWNSTREAM_LOCAL_URI_SAN%" if mutual_tls else _UNKNOWN
    return Group(labels={"source_principal": source, "destination_principal": destination})


def _service(side: Side) -> Group:
    if side == "inbound":
        namespace = f"%ENVIRONMENT({peers.variable('namespace')})%"
    else:
        namespace = first_of(_cluster("namespace"), ("UPSTREAM_METADATA", f"{METADATA}:namespace"))
    labels = {
        "destination_service_name": first_of(_cluster("service")),
        "destination_service_namespace": namespace,
    }
    record = f"%METADATA(CLUSTER:{METADATA}:service)%;%METADATA(CLUSTER:{METADATA}:namespace)%"
    return Group(labels=labels, record="mz_service", format=record)


def _in_order(role: str) -> Iterator[str]:
    return (f"{role}_{fact.label}" for fact in FACTS)


def _cluster(key: str) -> tuple[str, str]:
    return ("METADATA", f"CLUSTER:{METADATA}:{key}")
