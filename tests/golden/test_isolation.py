"""One bad object never takes down the others.

Real objects of the corpus are mutated where their structure has a place for it (wrong types, huge lists, bad regular
expressions, odd Unicode, numbers out of range, cycles of delegates) and set beside a whole good mesh.
"""

import copy
import functools
import os
from typing import Any

import golden
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mizzen.api.decode import decode_object
from mizzen.compile import snapshot
from mizzen.incremental import Engine
from mizzen.model.proxy import Proxy

ADDITIVE = {"EndpointSlice", "Pod", "WorkloadEntry", "DestinationRule", "VirtualService", "Telemetry", "WasmPlugin"}
"""Kinds that may change resources of the good mesh but never take one away."""

EXAMPLES = 10_000 if os.environ.get("FULL") == "1" else 150

ODD: list[Any] = [
    None,
    "",
    " ",
    "\u0000",
    "‮ö\U0001f600",
    "*",
    "*.*",
    "a" * 5000,
    "[unclosed",
    "(?=look)",
    "a{99999}",
    "10.0.0.1/99",
    "~/*/x",
    "web/front/x",
    "://",
    -1,
    0,
    1,
    65536,
    2**31,
    2**40,
    1e308,
    0.5,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"exact": "", "prefix": "", "regex": "["},
    "0s",
    "-1s",
    "1h",
    "99999999999h",
    "STRICT",
    "mesh",
]


@functools.cache
def corpus_objects() -> list[dict[str, Any]]:
    """Every object of the kinds that decide about traffic, one of each name."""
    kinds = {
        "Service",
        "EndpointSlice",
        "Pod",
        "ServiceEntry",
        "WorkloadEntry",
        "VirtualService",
        "DestinationRule",
        "Gateway",
        "Sidecar",
        "PeerAuthentication",
        "AuthorizationPolicy",
        "RequestAuthentication",
        "EnvoyFilter",
        "Telemetry",
        "WasmPlugin",
    }
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for name in golden.case_names("networking", "gateway", "security", "telemetry"):
        for document in golden.load_case(name).objects:
            if document["kind"] in kinds:
                meta = document["metadata"]
                found.setdefault((document["kind"], meta.get("namespace", ""), meta["name"]), document)
    return [found[key] for key in sorted(found)]


def paths_of(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place within a document."""
    found = [at] if at else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths_of(inner, (*at, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            found += paths_of(inner, (*at, i))
    return found


def mutate(document: dict[str, Any], path: tuple[Any, ...], how: str, value: Any) -> None:
    """Change the document at a place: replace, remove, repeat many times, or rename the key."""
    *before, last = path
    holder: Any = document
    for step in before:
        holder = holder[step]
    if how == "remove":
        del holder[last]
    elif how == "repeat" and isinstance(holder, list):
        holder[last:last] = [copy.deepcopy(holder[last]) for _ in range(200)]
    elif how == "rename" and isinstance(holder, dict):
        holder[f"{last}X"] = holder.pop(last)
    else:
        holder[last] = copy.deepcopy(value)


@st.composite
def bad_objects(draw: st.DrawFn) -> dict[str, Any]:
    document = copy.deepcopy(draw(st.sampled_from(corpus_objects())))
    for _ in range(draw(st.integers(1, 3))):
        places = [p for p in paths_of(document) if p[0] not in ("kind", "apiVersion", "metadata")]
        if not places:
            break
        how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "repeat", "rename"]))
        mutate(document, draw(st.sampled_from(places)), how, draw(st.sampled_from(ODD)))
    document["metadata"] = {**document["metadata"], "name": "the-bad-one"}
    return document


class World:
    """The base mesh, what its proxies are told, and room for one object more."""

    def __init__(self) -> None:
        self.case = golden.load_case("base")
        self.db = golden.engine_of(self.case)
        self.proxies: list[Proxy] = [
            golden.proxy_of(self.case, name, dialect)
            for name, dialect in (("front", "envoy"), ("cart", "istio"), ("payments", "envoy"), ("ingress", "istio"))
        ]
        self.good = self.told()

    def told(self) -> list[dict[str, str]]:
        """Versions by kind and name, for each proxy."""
        return [
            {
                f"{kind}/{r.name}": r.version
                for kind, found in snapshot.everything(self.db, proxy).items()
                for r in found
            }
            for proxy in self.proxies
        ]


@functools.cache
def world() -> World:
    return World()


def described(db: Engine) -> str:
    return "; ".join(f"{function.__qualname__}: {error!r}" for (function, _), error in db.failures.items())


def service(*ports: dict[str, Any]) -> dict[str, Any]:
    """A Service of a pod of the good mesh."""
    metadata = {"name": "the-bad-one", "namespace": "pay"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": {"app": "payments"}, "ports": [*ports]},
    }


def virtual_service(spec: dict[str, Any]) -> dict[str, Any]:
    """One in the good mesh."""
    metadata = {"name": "the-bad-one", "namespace": "pay"}
    return {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": metadata, "spec": spec}


@example(service({"name": "https", "port": 443, "targetPort": -1}))
@example(virtual_service({"hosts": ["ledger"], "tcp": [{"match": None, "route": None}]}))
@pytest.mark.timeout(3600)
@settings(max_examples=EXAMPLES, deadline=None)
@given(bad_objects())
def test_a_bad_object_changes_nothing_but_what_it_speaks_of(document: dict[str, Any]) -> None:
    here = world()
    decoded = decode_object(document)
    if decoded.key is None or decoded.object is None:
        return
    here.db.set(decoded.key, decoded.object)
    try:
        told = here.told()
        if document["kind"] in ADDITIVE:
            for before, after in zip(here.good, told, strict=True):
                assert not before.keys() - after.keys(), described(here.db)
    finally:
        here.db.remove(decoded.key)
        here.db.collect()
    assert here.told() == here.good


def test_a_cycle_of_delegates_leaves_the_neighbours() -> None:
    here = world()
    text = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: {name}, namespace: web}}
spec:
  hosts: {hosts}
  http: [{{name: {name}, delegate: {{name: {other}, namespace: web}}}}]
"""
    import meshes

    loop = [
        text.format(name="a", other="b", hosts="[front]"),
        text.format(name="b", other="c", hosts="[]"),
        text.format(name="c", other="b", hosts="[]"),
    ]
    for part in loop:
        meshes.apply(here.db, part)
    told = here.told()
    for before, after in zip(here.good, told, strict=True):
        assert {k: v for k, v in before.items() if not k.startswith("routes/80")} == {
            k: v for k, v in after.items() if not k.startswith("routes/80")
        }
    for part in loop:
        meshes.delete(here.db, part)
    assert here.told() == here.good
