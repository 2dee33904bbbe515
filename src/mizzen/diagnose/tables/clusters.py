"""`proxy-config cluster`: the clusters of a dump, filtered, and their table.

In: the ClustersConfigDump section. Out: cluster messages in istioctl's order, and rows that take Istio's cluster names
(`outbound|9080|v1|reviews.default.svc.cluster.local`) apart. Warming clusters are not shown, as istioctl does not.
"""

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json
from mizzen.diagnose.table import Row, Table
from mizzen.diagnose.tables.ordering import sort_like_go
from mizzen.errors import DecodeError

COLUMNS = ("SERVICE FQDN", "PORT", "SUBSET", "DIRECTION", "TYPE", "DESTINATION RULE")


class ClusterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster's name must contain; every part that is set must hold."""

    fqdn: str = ""
    port: int = 0
    subset: str = ""
    direction: str = ""

    def keeps(self, name: str) -> bool:
        """Substrings of the whole name, so `--fqdn v2` finds a subset: as istioctl does."""
        wanted = [self.fqdn, self.subset, self.direction]
        if self.port:
            wanted.append(f"|{self.port}|")
        return all(part in name for part in wanted)


class ClusterName(msgspec.Struct, frozen=True):
    """A cluster's name in its parts; a name of another form is all FQDN."""

    fqdn: str
    port: int = 0
    subset: str = ""
    direction: str = ""

    @classmethod
    def parse(cls, name: str) -> "ClusterName":
        """The parts of `direction|port|subset|fqdn`."""
        parts = name.split("|")
        if len(parts) < 4:
            return cls(name)
        return cls(parts[3], int(parts[1]) if parts[1].isdigit() else 0, parts[2], parts[0])

    def key(self) -> tuple[str, str, int, str]:
        """Sort key: the port as a number, the rest as text."""
        return self.fqdn, self.subset, self.port, self.direction


def select_clusters(source: Dump, keep: ClusterFilter) -> list[Json]:
    """The active and static clusters that the filter keeps, sorted; raises DecodeError when there are none at all."""
    section = source.section("Clusters")
    entries = [*dump.items(section, "dynamic_active_clusters"), *dump.items(section, "static_clusters")]
    clusters = [c for entry in entries if (c := dump.message(entry, "cluster"))]
    if not clusters:
        raise DecodeError("no clusters found")
    ordered = sort_like_go(clusters, lambda a, b: _parsed(a).key() < _parsed(b).key())
    return [c for c in ordered if keep.keeps(dump.text(c, "name"))]


def build_table(clusters: list[Json], *, named: bool = False) -> Table:
    """The clusters as rows; `named` puts a NAME column in front, as `proxy-config all` does."""
    if not named:
        return Table(columns=COLUMNS, rows=tuple(_row(cluster) for cluster in clusters))
    rows = ((f"cluster/{dump.text(cluster, 'name')}", *_row(cluster, "cluster/")) for cluster in clusters)
    return Table(columns=("NAME", *COLUMNS), rows=tuple(rows))


def _row(cluster: Json, prefix: str = "") -> Row:
    """`prefix` stands before names that are not made of a direction, port, subset and host."""
    name = _parsed(cluster)
    origin = dump.describe_origin(dump.message(cluster, "metadata"))
    kind = _discovery_type(cluster)
    if not name.direction:
        return prefix + name.fqdn, "-", "-", "-", kind, origin
    return name.fqdn, str(name.port), name.subset or "-", name.direction, kind, origin


def _discovery_type(cluster: Json) -> str:
    """Istio's word for how endpoints are found, which upstream Envoy knows as an extension where it is by DNS."""
    extension = dump.message(cluster, "cluster_type")
    if dump.text(extension, "name") != "envoy.cluster.dns":
        return dump.text(cluster, "type") or "STATIC"
    config = dump.message(extension, "typed_config")
    return "LOGICAL_DNS" if dump.field(config, "all_addresses_in_single_endpoint") is True else "STRICT_DNS"


def _parsed(cluster: Json) -> ClusterName:
    return ClusterName.parse(dump.text(cluster, "name"))
