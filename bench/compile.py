"""What compiling costs: a mesh from scratch, and each kind of change for all its proxies, in CPU seconds.

Changes are compared with compiling from scratch in the same run, which is what a control plane without the engine
would do. Query runs are exact and do not depend on the machine.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import yaml

from bench import changes, meshes
from mizzen.api.decode import decode_object
from mizzen.api.kube.pods import as_running
from mizzen.compile import resource, snapshot
from mizzen.incremental import Engine, Root
from mizzen.model.proxy import parse_node


class Figure(msgspec.Struct, kw_only=True):
    """One measured row."""

    name: str
    cpu_seconds: float
    query_runs: int
    roots: int
    """Roots that the change may have reached."""
    changed: int
    """Roots whose value is another than before."""


class Mesh:
    """An engine full of objects, with the roots of every proxy."""

    def __init__(self, services: int, pods: int, namespaces: int, dialect: str) -> None:
        self.services, self.namespaces = services, namespaces
        self.documents = list(meshes.documents(services, pods, namespaces))
        self.db = Engine()
        for document in self.documents:
            self.set(document)
        self.nodes = list(meshes.nodes(self.documents))
        for node in self.nodes:
            node["metadata"]["MIZZEN_DIALECT"] = dialect
        self.roots: dict[Root[Any], Any] = {}

    def set(self, document: meshes.Document) -> None:
        """Decode an object into the engine, as a control plane does."""
        decoded = decode_object(document)
        assert decoded.key is not None
        assert decoded.object is not None, decoded.problems
        self.db.set(decoded.key, as_running(decoded.object))

    def connect(self) -> Figure:
        """Ask for everything that every proxy needs."""
        names: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

        def ask() -> Iterator[tuple[Root[Any], Any]]:
            for node in self.nodes:
                proxy = parse_node(node)
                clusters = self.db.root(snapshot.resources, proxy, resource.CLUSTER, None)
                yield clusters, clusters.value()
                listeners = self.db.root(snapshot.resources, proxy, resource.LISTENER, None)
                yield listeners, listeners.value()
                if proxy.namespace not in names:
                    found = snapshot.endpoint_names(clusters.value()), snapshot.route_names(listeners.value())
                    names[proxy.namespace] = found
                endpoints, routes = names[proxy.namespace]
                for type_url, asked in ((resource.ENDPOINT, endpoints), (resource.ROUTE, routes)):
                    root = self.db.root(snapshot.resources, proxy, type_url, asked)
                    yield root, root.value()

        return self._measure(f"connect {len(self.nodes)} proxies", lambda: list(ask()))

    def remove(self, document: meshes.Document) -> None:
        """Take an object out of the engine."""
        key = decode_object(document).key
        assert key is not None
        self.db.remove(key)

    def change(self, name: str, *documents: meshes.Document, gone: Sequence[meshes.Document] = ()) -> Figure:
        """Apply objects and bring every root that they reach up to date."""

        def run() -> list[tuple[Root[Any], Any]]:
            for document in documents:
                self.set(document)
            for document in gone:
                self.remove(document)
            return [(root, root.value()) for root in self.db.take_stale_roots()]

        self.db.take_stale_roots()
        return self._measure(name, run)

    def _measure(self, name: str, run: Callable[[], list[tuple[Root[Any], Any]]]) -> Figure:
        before, start = self.db.runs, time.process_time()
        reached = run()
        spent = time.process_time() - start
        changed = sum(1 for root, value in reached if self.roots.get(root) != value)
        self.roots.update(reached)
        return Figure(
            name=name, cpu_seconds=spent, query_runs=self.db.runs - before, roots=len(reached), changed=changed
        )


def run(services: int, pods: int, namespaces: int, dialect: str) -> list[Figure]:
    """The whole table for one mesh: everybody's first configuration, then a change of each kind, each undone again."""
    mesh = Mesh(services, pods, namespaces, dialect)
    gc.collect()
    gc.freeze()
    rows = [mesh.connect()]
    for kind in changes.KINDS.values():
        change = kind.make(0, namespaces, 1)
        rows.append(mesh.change(kind.title, *change.documents))
        mesh.change("back", *change.before, gone=change.added)
    rows.append(mesh.change("nothing", meshes.virtual_service(0, namespaces, "first")))
    return rows


def measure_scratch(services: int, pods: int, namespaces: int, dialect: str) -> float:
    """CPU seconds of compiling all that one proxy of each namespace needs, objects decoded before."""
    mesh = Mesh(services, pods, namespaces, dialect)
    mesh.nodes = mesh.nodes[: namespaces * pods : pods]
    gc.collect()
    gc.freeze()
    return mesh.connect().cpu_seconds


def count_query_runs(services: int, pods: int, namespaces: int) -> dict[str, int]:
    """Queries that run again because of edits that change nothing, by edit."""
    mesh = Mesh(services, pods, namespaces, "istio")
    for document in changes.quiet_objects():
        mesh.set(document)
    mesh.nodes = mesh.nodes[: namespaces * pods : pods]
    mesh.connect()
    runs = {}
    for edit in changes.edits(mesh.documents):
        runs[edit.title] = mesh.change(edit.title, yaml.safe_load(edit.text)).query_runs
        mesh.change("back", edit.before)
    return runs


def print_table(rows: list[Figure], title: str) -> None:
    """The figures, and each change's share of compiling from scratch."""
    scratch = rows[0]
    print(f"\n{title}")
    print(f"{'':34} {'CPU s':>8} {'query runs':>11} {'roots':>7} {'changed':>8} {'of scratch':>11}")
    for row in rows:
        share = row.cpu_seconds / scratch.cpu_seconds
        print(f"{row.name:34} {row.cpu_seconds:8.3f} {row.query_runs:11} {row.roots:7} {row.changed:8} {share:11.4f}")
    sys.stdout.flush()
