"""`proxy-config route`: the route configurations of a dump, filtered, and their table of routes.

In: the RoutesConfigDump section. Out: route configuration messages in istioctl's order, and one row a route with the
VirtualService that it came from. Routes to `PassthroughCluster` are left out, as istioctl leaves them out.
"""

import re

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json
from mizzen.diagnose.table import Row, Table
from mizzen.diagnose.tables import match
from mizzen.diagnose.tables.ordering import sort_like_go
from mizzen.errors import DecodeError

COLUMNS = ("NAME", "VHOST NAME", "DOMAINS", "MATCH", "VIRTUAL SERVICE")

_INTEGER = re.compile(r"[+-]?[0-9]+")


def select_routes(source: Dump, name: str = "") -> list[Json]:
    """The dynamic and static configurations, all or the one of that name; DecodeError when there are none at all."""
    section = source.section("Routes")
    entries = [*dump.items(section, "dynamic_route_configs"), *dump.items(section, "static_route_configs")]
    routes = [r for entry in entries if (r := dump.message(entry, "route_config"))]
    if not routes:
        raise DecodeError("no routes found")
    return [r for r in sort_like_go(routes, _less) if not name or dump.text(r, "name") == name]


def build_table(routes: list[Json], *, verbose: bool = True, prefix: str = "") -> Table:
    """One row a route, or one a configuration with its number of virtual hosts when not `verbose`."""
    if verbose:
        rows = tuple((prefix + row[0], *row[1:]) for config in routes for row in _rows(config))
        return Table(columns=COLUMNS, rows=rows)
    counts = ((dump.text(r, "name"), len(list(dump.items(r, "virtual_hosts")))) for r in routes)
    rows = tuple((prefix + name, str(count)) for name, count in counts)
    return Table(columns=("NAME", "VIRTUAL HOSTS"), rows=rows)


def _rows(configuration: Json) -> list[Row]:
    name = dump.text(configuration, "name")
    rows: list[Row] = []
    for host in dump.items(configuration, "virtual_hosts"):
        where = (name, dump.text(host, "name"), match.describe_domains(dump.texts(host, "domains")))
        routes = list(dump.items(host, "routes"))
        if not routes:
            rows.append((*where, "/*", "404"))
        rows.extend(
            (*where, match.describe_match(route), dump.describe_origin(dump.message(route, "metadata")))
            for route in routes
            if match.target_cluster(route) != "PassthroughCluster"
        )
    return rows


def _less(a: Json, b: Json) -> bool:
    """Numeric names compare as numbers; any other pair is not ordered, so such names stay near where they were."""
    first, second = dump.text(a, "name"), dump.text(b, "name")
    if _INTEGER.fullmatch(first) and _INTEGER.fullmatch(second):
        return int(first) < int(second)
    return False
