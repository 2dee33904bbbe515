"""`proxy-config endpoint` and `eds`: the hosts that Envoy knows, and those it was told.

In: `/clusters?format=json` (live hosts with their health), or the EndpointsConfigDump section (assignments as
received). Out: rows of one host each, filtered and in istioctl's order. Filters compare whole values in any case.
"""

from collections.abc import Iterator

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json
from mizzen.diagnose.table import Row, Table
from mizzen.diagnose.tables import addresses
from mizzen.diagnose.tables.clusters import ClusterName

COLUMNS = ("ENDPOINT", "STATUS", "OUTLIER CHECK", "CLUSTER")
ASSIGNED_COLUMNS = ("NAME", "STATUS", "LOCALITY", "CLUSTER")


class EndpointFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a host must have; every part that is set must hold."""

    address: str = ""
    port: int = 0
    cluster: str = ""
    status: str = ""

    def keeps(self, *, address: str, port: int, cluster: str, status: str) -> bool:
        """Whole values, in any case."""
        pairs = ((self.address, address), (self.cluster, cluster), (self.status, status))
        if any(wanted and wanted.lower() != found.lower() for wanted, found in pairs):
            return False
        return not self.port or self.port == port


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host of one cluster."""

    address: str
    port: int
    cluster: str
    status: str
    """The health that EDS gave it; active checks and ejection do not change it."""
    ejected: bool

    def endpoint(self) -> str:
        """`IP:PORT`, `unix://PATH`, `envoy://LISTENER/ID`, or `unknown`."""
        if not self.address:
            return "unknown"
        return f"{self.address}:{self.port}" if self.port else self.address


def select_statuses(statuses: Json, keep: EndpointFilter) -> list[Json]:
    """The cluster status messages that have at least one host which the filter keeps, whole."""
    return [
        status
        for status in dump.items(statuses, "cluster_statuses")
        if any(_keeps(host, keep) for host in _hosts(status))
    ]


def build_table(statuses: list[Json], keep: EndpointFilter) -> Table:
    """One row a host that the filter keeps, sorted by address, port and cluster."""
    hosts = [host for status in statuses for host in _hosts(status) if _keeps(host, keep)]
    hosts.sort(key=lambda host: (host.address, host.port, host.cluster))
    rows = tuple((h.endpoint(), h.status, "FAILED" if h.ejected else "OK", h.cluster) for h in hosts)
    return Table(columns=COLUMNS, rows=rows)


def select_assignments(source: Dump, keep: EndpointFilter) -> list[Json]:
    """The endpoint assignments of a dump (`include_eds`) that the filter keeps, sorted like clusters."""
    sections = source.sections("Endpoints")
    section = sections[-1] if sections else {}
    entries = [
        *dump.items(section, "static_endpoint_configs"),
        *dump.items(section, "dynamic_endpoint_configs"),
    ]
    found = [a for entry in entries if (a := dump.message(entry, "endpoint_config"))]
    found.sort(key=lambda a: ClusterName.parse(dump.text(a, "cluster_name")).key())
    return [a for a in found if any(True for _ in _assigned(a, keep))]


def build_assigned_table(assignments: list[Json], keep: EndpointFilter, *, prefix: str = "") -> Table:
    """One row an assigned endpoint: addresses, health, locality and cluster."""
    rows = (row for assignment in assignments for row in _assigned(assignment, keep))
    return Table(columns=ASSIGNED_COLUMNS, rows=tuple((prefix + row[0], *row[1:]) for row in rows))


def _hosts(status: Json) -> Iterator[Host]:
    for host in dump.items(status, "host_statuses"):
        where = dump.message(host, "address")
        yield Host(
            address=_address(where),
            port=addresses.port(where),
            cluster=dump.text(status, "name"),
            status=dump.text(host, "health_status", "eds_health_status") or "UNKNOWN",
            ejected=bool(dump.field(host, "health_status", "failed_outlier_check")),
        )


def _keeps(host: Host, keep: EndpointFilter) -> bool:
    return keep.keeps(address=host.address, port=host.port, cluster=host.cluster, status=host.status)


def _address(where: Json) -> str:
    pipe = dump.text(where, "pipe", "path")
    return f"unix://{pipe}" if pipe else addresses.internal(where) or addresses.host(where)


def _assigned(assignment: Json, keep: EndpointFilter) -> Iterator[Row]:
    cluster = dump.text(assignment, "cluster_name")
    for locality in dump.items(assignment, "endpoints"):
        place = dump.message(locality, "locality")
        where = "/".join(v for name in ("region", "zone", "sub_zone") if (v := dump.text(place, name)))
        for endpoint in dump.items(locality, "lb_endpoints"):
            main = dump.message(endpoint, "endpoint", "address")
            more = dump.items(endpoint, "endpoint", "additional_addresses")
            name = ",".join(_full(a) for a in (main, *(dump.message(entry, "address") for entry in more)))
            status = dump.text(endpoint, "health_status") or "UNKNOWN"
            port = addresses.port(main)
            if keep.keeps(address=name, port=port, cluster=cluster, status=status):
                yield name, status, where, cluster


def _full(where: Json) -> str:
    port = addresses.port(where)
    text = addresses.internal(where) or addresses.host(where)
    return f"{text}:{port}" if port else text
