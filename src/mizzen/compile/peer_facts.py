"""How much clients are told of the workloads behind endpoints.

In: the client's dialect, and whether any Telemetry changes a label that names the called workload. Out: `Telling`,
the same for all clients of a dialect. Upstream Envoy cannot take Istio's record of a workload apart, so where single
labels are changed every fact comes by itself too.
"""

import msgspec

from mizzen.compile.filters.metric_labels import DESTINATION
from mizzen.incremental import Engine, query
from mizzen.model import mesh, telemetry
from mizzen.model.proxy import Dialect

_LABELS = tuple(sorted(DESTINATION))


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into the metadata of every endpoint."""

    cluster_id: str
    dialect: Dialect
    split: bool = False
    """Whether every fact comes by itself too."""


@query
def telling(db: Engine, dialect: Dialect) -> Telling:
    """What the clients of a dialect are told."""
    split = dialect == "envoy" and telemetry.any_changes(db, _LABELS)
    return Telling(cluster_id=mesh.control_plane(db).cluster_id, dialect=dialect, split=split)
