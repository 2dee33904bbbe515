"""Istio's standard labels, read out of the records in which Envoy counts.

In: Envoy's statistics in Prometheus' text format. Out: the same, in which every series of a standard metric has Istio's
labels. Two dozen labels on each metric of each chain would be most of what a proxy is told, and most of what counting
costs it; so the control plane has Envoy put those that belong together into one label, a *record* such as
`mz_source="cart-v1;shop;cart;v1;Kubernetes;;"`, and they are taken apart here, once a scrape. Labels that a Telemetry
changes stand by themselves, or `mz_without` says that they are not those of the record. A part that is missing reads
`unknown`, as Istio writes it.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

_SEPARATOR = ";"
_UNKNOWN = "unknown"
_LATEST = "latest"

PEER = ("workload", "workload_namespace", "canonical_service", "canonical_revision", "cluster", "app", "version")
"""The parts of a record that names a workload, in order; each is a label behind `source_` or `destination_`."""

RECORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mz_http": (
            "reporter",
            "request_protocol",
            "response_code",
            "grpc_response_status",
            "response_flags",
            "connection_security_policy",
        ),
        "mz_tcp": ("reporter", "request_protocol", "response_flags", "connection_security_policy"),
        "mz_source": tuple(f"source_{part}" for part in PEER),
        "mz_destination": tuple(f"destination_{part}" for part in PEER),
        "mz_service": ("destination_service_name", "destination_service_namespace"),
    }
)
"""The labels in each record, in order."""
WITHOUT = "mz_without"
"""Lists labels that are not taken from the records of a series."""

_ORDER = (
    *("reporter", "source_workload", "source_canonical_service", "source_canonical_revision"),
    *("source_workload_namespace", "source_principal", "source_app", "source_version", "source_cluster"),
    *("destination_workload", "destination_workload_namespace", "destination_principal", "destination_app"),
    *("destination_version", "destination_service", "destination_canonical_service"),
    *("destination_canonical_revision", "destination_service_name", "destination_service_namespace"),
    *("destination_cluster", "request_protocol", "response_code", "grpc_response_status", "response_flags"),
    "connection_security_policy",
)
_RANK = {label: rank for rank, label in enumerate(_ORDER)}

_PREFIX = b"istio_"
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_BOUND = b',le="'
_IDENTITY = re.compile(r"spiffe://[^/]+/ns/([^/]+)/sa/[^/]+")


class Expander:
    """Takes the records of one scrape apart; lines may come in several slices."""

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}
        """Values by series; other lines by themselves."""
        self._known: dict[bytes, bytes] = {}

    def read(self, lines: list[bytes]) -> None:
        """Take some more lines."""
        for line in lines:
            if line.startswith(_PREFIX) and b"{" in line:
                series, _, value = line.rpartition(b" ")
                self._add(self._series(series), value)
            elif line:
                self._lines[line] = b""

    def _series(self, series: bytes) -> bytes:
        name, _, rest = series.partition(b"{")
        labels, bound, limit = rest[:-1].rpartition(_BOUND) if _BOUND in rest else (rest[:-1], b"", b"")
        expanded = self._known.get(labels)
        if expanded is None:
            expanded = self._known[labels] = expand_labels(labels.decode(errors="replace")).encode()
        return b"%b{%b%b%b}" % (name, expanded, bound, limit)

    def _add(self, series: bytes, value: bytes) -> None:
        """What Envoy told apart by a record that could not be read is one series again."""
        before = self._lines.get(series)
        self._lines[series] = value if before is None else _sum(before, value)

    def body(self) -> bytes:
        """All lines so far."""
        return b"".join(b"%b %b\n" % (key, value) if value else key + b"\n" for key, value in self._lines.items())


def _sum(one: bytes, other: bytes) -> bytes:
    total = float(one) + float(other)
    return str(int(total) if total.is_integer() else total).encode()


def expand_labels(text: str) -> str:
    """The labels of one series, as they stand between the braces, with their records taken apart."""
    written = dict(_LABEL.findall(text))
    records = {name: written.pop(name).split(_SEPARATOR) for name in RECORDS if name in written}
    hidden = written.pop(WITHOUT, "").split(_SEPARATOR)
    labels = dict(written)
    for name, parts in records.items():
        labels |= _read(RECORDS[name], parts)
    for role in ("source", "destination"):
        if f"mz_{role}" in records:
            _complete_peer(labels, role)
    labels = {label: value for label, value in labels.items() if label not in hidden} | written
    if "mz_service" in records and not labels["destination_service_namespace"]:
        labels["destination_service_namespace"] = labels.get("destination_workload_namespace", "")
    for label in (*labels,):
        if not labels[label] and label in _RANK and label != "grpc_response_status":
            labels[label] = _UNKNOWN
    ordered = sorted(labels, key=lambda label: _RANK.get(label, len(_RANK)))
    return ",".join(f'{label}="{labels[label]}"' for label in ordered)


def _read(labels: tuple[str, ...], parts: list[str]) -> dict[str, str]:
    """The parts by label; those that are missing are empty, and all are where there are too many."""
    if len(parts) > len(labels):
        parts = []
    return dict(zip(labels, [*parts, *[""] * (len(labels) - len(parts))], strict=True))


def _complete_peer(labels: dict[str, str], role: str) -> None:
    """What a record leaves out because it follows from the rest."""
    known = bool(labels[f"{role}_workload"])
    revision = labels[f"{role}_canonical_revision"] or _LATEST
    labels[f"{role}_canonical_revision"] = revision
    labels[f"{role}_app"] = labels[f"{role}_app"] or labels[f"{role}_canonical_service"]
    labels[f"{role}_version"] = labels[f"{role}_version"] or (revision if known else "")
    if role == "source" and labels.get("reporter") == "destination":
        # What the peer's certificate says goes before what the peer says.
        identity = _IDENTITY.fullmatch(labels.get("source_principal", ""))
        if identity is not None:
            labels["source_workload_namespace"] = identity[1]
