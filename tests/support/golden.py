"""The golden corpus in process: cases with their objects dated as recorded, and one spelling for one meaning.

A case is `AREA/CASE.yaml` beside `CASE.expected/PROXY.json`, which holds only what differs from `base/PROXY.json`.
Recordings compare as messages: maps in any order, a few lists as sets, `*ANY*` for any string, a TypedStruct equal to
the message that it wraps.
"""

import functools
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mizzen import protos
from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.compile import resource, snapshot
from mizzen.incremental import Engine
from mizzen.model.mesh import MESH
from mizzen.model.proxy import Proxy, parse_node
from mizzen.sources.documents import parse_yaml

CORPUS = pathlib.Path(__file__).parent.parent / "golden" / "corpus"
KINDS = ("clusters", "listeners", "routes", "endpoints", "extensions")
_UNORDERED = {"queryParameters", "domains", "matchSubjectAltNames", "matchTypedSubjectAltNames", "lbEndpoints"}
_TYPED_STRUCTS = {protos.TYPE_PREFIX + "udpa.type.v1.TypedStruct", protos.TYPE_PREFIX + "xds.type.v3.TypedStruct"}
_ISTIO = ("stats.", "istio.envoy.", "io.istio.", "envoy.tcp.metadataexchange.")
_DURATION = re.compile(r"^-?\d+(\.\d+)?s$")


class Case(NamedTuple):
    """One recorded case: `base`, or `AREA/NAME`."""

    name: str
    look_from: tuple[str, ...]
    objects: tuple[dict[str, Any], ...]
    mesh: dict[str, Any]
    proxies: dict[str, dict[str, Any]]
    with_base: bool

    @property
    def expected_dir(self) -> pathlib.Path:
        """Where the recordings are."""
        return CORPUS / f"{self.name}.expected"


@functools.cache
def _documents(path: pathlib.Path) -> tuple[dict[str, Any], ...]:
    """A file's documents, read as the product reads them: keys such as `on` and times such as `1:20` are texts."""
    return tuple(d.value for d in parse_yaml(path.read_text()) if d.value)


def _plain(path: pathlib.Path) -> dict[str, Any]:
    return _documents(path)[0] if path.exists() else {}


def _read_json(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def _key(document: dict[str, Any]) -> str:
    return f"{document['kind']}/{document['metadata'].get('namespace', '')}/{document['metadata']['name']}"


def _dated(documents: list[dict[str, Any]], times: dict[str, str], day: int) -> list[dict[str, Any]]:
    """The documents with creation times in the recorded order, one second apart."""
    age = {_key(d): times.get(_key(d)) or str(d["metadata"].get("creationTimestamp", "")) for d in documents}
    order = sorted(set(age.values()))
    dated = []
    for document in documents:
        rank = order.index(age[_key(document)])
        stamp = f"2026-01-{day:02}T00:{rank // 60:02}:{rank % 60:02}Z"
        meta = {**document["metadata"], "creationTimestamp": stamp}
        if document["kind"] == "WasmPlugin":
            meta["resourceVersion"] = "RESOURCE_VERSION"
        dated.append({**document, "metadata": meta})
    return dated


def case_names(*areas: str) -> list[str]:
    """The names of all cases, or of those of some areas."""
    found = sorted(p for p in CORPUS.glob("*/*.yaml") if (p.parent / f"{p.stem}.expected").is_dir())
    names = [f"{p.parent.name}/{p.stem}" for p in found]
    return [n for n in names if not areas or n.split("/")[0] in areas]


def load_case(name: str) -> Case:
    """The case of that name; `base` is the base mesh alone, seen by all its proxies."""
    proxies = dict(_plain(CORPUS / "proxies.yaml"))
    mesh = dict(_plain(CORPUS / "mesh.yaml"))
    base = [d for d in _documents(CORPUS / "base.yaml") if "kind" in d]
    if name == "base":
        return Case(name, tuple(proxies), tuple(_dated(base, {}, 1)), mesh, proxies, True)
    path = CORPUS / f"{name}.yaml"
    head = next(d for d in _documents(path) if "case" in d)
    objects = [d for d in _documents(path) if "kind" in d]
    with_base = head.get("base") is not False
    old = {_key(d) for d in base} if with_base else set()
    times = {k: t for k, t in _read_json(CORPUS / f"{name}.expected" / "created.json").items() if k not in old}
    own = _dated([d for d in objects if _key(d) in old], {}, 1) + _dated(
        [d for d in objects if _key(d) not in old], times, 2
    )
    merged = {_key(d): d for d in (_dated(base, {}, 1) if with_base else [])} | {_key(d): d for d in own}
    return Case(
        name,
        tuple(head["look_from"]),
        tuple(merged.values()),
        {**mesh, **(head.get("mesh") or {})},
        {**proxies, **(head.get("proxies") or {})},
        with_base,
    )


def expected(case: Case, proxy: str) -> dict[str, dict[str, Any]]:
    """What the proxy was served in this case, by kind and name."""
    want: dict[str, dict[str, Any]] = {k: {} for k in KINDS}
    base = CORPUS / "base" / f"{proxy}.json"
    if case.with_base and base.exists():
        want.update(_read_json(base))
    if case.name == "base":
        return want
    change = _read_json(case.expected_dir / f"{proxy}.json")
    for kind in KINDS:
        gone = change.get("removed", {}).get(kind, ())
        want[kind] = {n: v for n, v in want[kind].items() if n not in gone} | change.get(kind, {})
    return want


def node_of(spec: dict[str, Any]) -> dict[str, Any]:
    """The xDS Node of an entry of `proxies.yaml`, as protobuf JSON."""
    labels, name, namespace = spec.get("labels", {}), spec["name"], spec["namespace"]
    metadata = {
        "NAMESPACE": namespace,
        "NAME": name,
        "INSTANCE_IPS": spec["ip"],
        "CLUSTER_ID": "Kubernetes",
        "ISTIO_VERSION": "1.32.0",
        "MESH_ID": "cluster.local",
        "SERVICE_ACCOUNT": spec.get("service_account", "default"),
        "LABELS": labels,
        "PROXY_CONFIG": {},
        "INTERCEPTION_MODE": "REDIRECT",
        "WORKLOAD_NAME": spec.get("workload") or re.sub(r"-\d+$", "", name),
        **spec.get("metadata", {}),
    }
    node = {
        "id": f"{spec['kind']}~{spec['ip']}~{name}.{namespace}~{namespace}.svc.cluster.local",
        "cluster": f"{labels.get('app', name)}.{namespace}",
        "metadata": metadata,
    }
    if spec.get("locality"):
        node["locality"] = dict(zip(("region", "zone", "subZone"), spec["locality"].split("/"), strict=False))
    return node


def engine_of(case: Case) -> Engine:
    """An engine that holds the case's objects and mesh config."""
    db = Engine()
    db.set(MESH, merge_mesh_config(case.mesh)[0])
    for document in case.objects:
        set_object(db, document)
    return db


def set_object(db: Engine, document: dict[str, Any]) -> None:
    """Decode one document into the engine; a kind that is not read is passed over."""
    decoded = decode_object(document)
    if decoded.key is not None and decoded.object is not None:
        db.set(decoded.key, decoded.object)


def remove_object(db: Engine, document: dict[str, Any]) -> None:
    """Take an object out again."""
    key = decode_object(document).key
    if key is not None:
        db.remove(key)


def proxy_of(case: Case, name: str, dialect: str = "istio") -> Proxy:
    """The case's proxy of that name."""
    node = node_of(case.proxies[name])
    if dialect != "istio":
        node["metadata"]["MIZZEN_DIALECT"] = dialect
    return parse_node(node)


def served_sets(db: Engine, proxy: Proxy) -> dict[str, resource.ResourceSet]:
    """All that a proxy would be told, following its own subscriptions."""
    return snapshot.everything(db, proxy)


def compiled(db: Engine, proxy: Proxy) -> dict[str, dict[str, Any]]:
    """What `served_sets` holds as protobuf JSON, by kind and name."""
    return {
        kind: {r.name: {"@type": found.type_url, **protos.to_json(r.message())} for r in found}
        for kind, found in served_sets(db, proxy).items()
    }


def _camel(text: str) -> str:
    head, *rest = text.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _camel_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel(k): _camel_keys(v) for k, v in value.items()}
    return [_camel_keys(v) for v in value] if isinstance(value, list) else value


def normal(value: Any, key: str = "") -> Any:
    """One spelling for one meaning."""
    if isinstance(value, dict):
        if value.get("@type") in _TYPED_STRUCTS:
            return normal({"@type": value.get("typeUrl", ""), **_camel_keys(value.get("value", {}))})
        if value.get("@type", "").rsplit("/", 1)[-1].startswith(_ISTIO):
            value = _camel_keys(value)
        return {k: normal(v, k) for k, v in value.items()}
    if isinstance(value, list):
        items = [normal(v) for v in value]
        return sorted(items, key=lambda v: json.dumps(v, sort_keys=True)) if key in _UNORDERED else items
    if isinstance(value, str) and _DURATION.match(value):
        return f"{float(value[:-1]):.9f}".rstrip("0").rstrip(".") + "s"
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _unmasked(want: Any, got: Any) -> Any:
    if want == "*ANY*" and isinstance(got, str):
        return want
    if isinstance(want, dict) and isinstance(got, dict):
        return {k: _unmasked(want[k], v) if k in want else v for k, v in got.items()}
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [_unmasked(a, b) for a, b in zip(want, got, strict=True)]
    return got


def _paths(want: Any, got: Any, at: str = "") -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            if want.get(key) != got.get(key):
                yield from _paths(want.get(key), got.get(key), f"{at}.{key}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for i, (a, b) in enumerate(zip(want, got, strict=True)):
            if a != b:
                yield from _paths(a, b, f"{at}[{i}]")
    elif want != got:
        yield f"{at.lstrip('.')}: want {json.dumps(want)[:300]} got {json.dumps(got)[:300]}"


def differences(want: dict[str, Any], got: dict[str, Any], kind: str) -> tuple[int, int, list[str]]:
    """Of one kind: how many resources there are, how many are equal, and where the others differ."""
    notes: list[str] = []
    names = sorted(want.keys() | got.keys())
    equal = 0
    for name in names:
        if name not in want or name not in got:
            notes.append(f"{kind} {name}: {'missing' if name in want else 'not expected'}")
            continue
        a = normal(want[name])
        b = _unmasked(a, normal(got[name]))
        if a == b:
            equal += 1
        else:
            notes.extend(f"{kind} {name}: {path}" for path in list(_paths(a, b))[:4])
    return len(names), equal, notes


def assert_told(db: Engine, case: Case, want: Callable[[Case, str], dict[str, dict[str, Any]]]) -> None:
    """Each proxy of the case is told what `want` says of it, in dialect istio; of some kind there is something."""
    notes: list[str] = []
    total = 0
    for proxy in case.look_from:
        wanted, got = want(case, proxy), compiled(db, proxy_of(case, proxy))
        for kind in KINDS:
            count, _, differing = differences(wanted[kind], got.get(kind, {}), kind)
            total += count
            notes += [f"{proxy} {note}" for note in differing]
    assert total > 0
    assert not notes, "\n".join(notes)
