"""Random edits of a folder of objects, as people and tools make them: of every kind, right and wrong.

In: a seed and the size of a mesh of `meshes`. Out: files that are written, replaced, broken, emptied and deleted, in
place and by renaming; `repair` leaves only files that can be read, since of what cannot be read the last
version stays in force, which nobody can know who starts later.
"""

import itertools
import json
import os
import pathlib
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from bench import meshes

Document = dict[str, Any]
Spec = Mapping[str, Any]

SEEN_BY_ALL = "probe"
"""A namespace that every Sidecar resource lets in and no edit touches."""

_EACH = 8
"""Objects of each kind, besides those of the mesh."""
_SIDECAR_NAMESPACES = 4
"""The first so many namespaces have Sidecar resources now and then; proxies of others see everything."""

_GROUPS = {
    "networking.istio.io/v1": (
        *("VirtualService", "DestinationRule", "ServiceEntry", "Sidecar", "Gateway"),
        *("WorkloadEntry", "WorkloadGroup"),
    ),
    "networking.istio.io/v1alpha3": ("EnvoyFilter",),
    "networking.istio.io/v1beta1": ("ProxyConfig",),
    "security.istio.io/v1": ("AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"),
    "telemetry.istio.io/v1": ("Telemetry",),
    "gateway.networking.k8s.io/v1": ("HTTPRoute",),
}
_API_VERSION = {kind: version for version, kinds in _GROUPS.items() for kind in kinds}


def write(folder: pathlib.Path, document: Document) -> pathlib.Path:
    """The object in a file of its own, renamed into place."""
    path = place(folder, document)
    replace(path, json.dumps(document, indent=1).encode())
    return path


def place(folder: pathlib.Path, document: Document) -> pathlib.Path:
    """The file of an object."""
    meta: dict[str, str] = document["metadata"]
    return folder / meta.get("namespace", "cluster") / f"{document['kind'].lower()}-{meta['name']}.yaml"


def replace(path: pathlib.Path, content: bytes) -> None:
    """Put a file into place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(content)
    os.replace(part, path)


class Edits:
    """Edits of one folder."""

    def __init__(self, folder: pathlib.Path, services: int, pods: int, namespaces: int, seed: int) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        """Edits by what they were."""
        self._random = random.Random(seed)
        self._services, self._namespaces = services, namespaces
        self._mesh = list(meshes.documents(services, pods, namespaces))
        self._number = itertools.count(1)
        self._broken: set[pathlib.Path] = set()

    def lay(self) -> None:
        """Write the mesh."""
        for document in self._mesh:
            write(self.folder, document)

    def step(self) -> str:
        """One edit; what it was."""
        way = self._random.choices(
            ("of the mesh", "create or change", "delete", "break", "no change"), (25, 45, 15, 12, 3)
        )[0]
        done: str = getattr(self, f"_{way.replace(' ', '_')}")()
        self.counts[way] += 1
        return f"{way}: {done}"

    def repair(self) -> None:
        """Make every file one that can be read."""
        for path in sorted(self._broken):
            path.unlink(missing_ok=True)
        self._broken.clear()

    # -- ways -----------------------------------------------------------------------------------------------------

    def _of_the_mesh(self) -> str:
        """A Service, its endpoints, its pods or a Namespace are others than they were."""
        document = json.loads(json.dumps(self._random.choice(self._mesh)))
        changes: dict[str, Callable[[Document], None]] = {
            "Namespace": self._label,
            "Service": self._change_ports,
            "Pod": self._label,
            "EndpointSlice": self._scale,
        }
        kind = document["kind"]
        if kind in changes:
            changes[kind](document)
        else:
            document["spec"] = self._spec(kind, document["metadata"]["namespace"])
        return self._write(document)

    def _create_or_change(self) -> str:
        kind = self._random.choice(list(_API_VERSION))
        return self._write(self._document(kind))

    def _document(self, kind: str) -> Document:
        number = self._random.randrange(_EACH)
        apart = kind == "Sidecar"
        namespace = f"ns-{number % (_SIDECAR_NAMESPACES if apart else self._namespaces)}"
        meta = {"name": f"soak-{number}", "namespace": namespace}
        return {
            "apiVersion": _API_VERSION[kind],
            "kind": kind,
            "metadata": meta,
            "spec": self._spec(kind, namespace),
        }

    def _delete(self) -> str:
        found = sorted(self.folder.glob("*/*-soak-*.yaml"))
        if not found:
            return "nothing"
        path = self._random.choice(found)
        path.unlink()
        self._broken.discard(path)
        return path.name

    def _break(self) -> str:
        """A file that cannot be read, or says what cannot be, is there for a while."""
        document = self._document(self._random.choice(list(_API_VERSION)))
        text = json.dumps(document, indent=1)
        path = place(self.folder, document)
        broken = {
            "syntax": text + "\n]: {",
            "type": json.dumps({**document, "spec": "none of it"}),
            "field": json.dumps({**document, "spec": {**document["spec"], "nonsense": {"a": 1}, "hosts": 7}}),
            "unknown kind": json.dumps({**document, "kind": "Nonsense"}),
            "cut": text[: len(text) // 2],
            "empty": "",
            "not text": "\xff\xfe" + text,
            "twice": text + "\n---\n" + text,
            "no name": json.dumps({**document, "metadata": {}}),
        }
        how = self._random.choice(list(broken))
        content = broken[how].encode("latin-1")
        if self._random.random() < 0.5:
            replace(path, content)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        self._broken.add(path)
        return f"{path.name} {how}"

    def _no_change(self) -> str:
        document = self._random.choice(self._mesh)
        path = place(self.folder, document)
        if path in self._broken or not path.exists():
            return "nothing"
        found = json.loads(path.read_bytes())
        found["metadata"].setdefault("annotations", {})["note"] = str(next(self._number))
        return self._write(found)

    def _write(self, document: Document) -> str:
        path = write(self.folder, document)
        self._broken.discard(path)
        return path.name

    # -- objects of the mesh --------------------------------------------------------------------------------------

    def _label(self, document: Document) -> None:
        labels = document["metadata"].setdefault("labels", {})
        labels["stage"] = self._random.choice(("one", "two", "three"))

    def _change_ports(self, document: Document) -> None:
        ports = document["spec"]["ports"]
        more = {"name": self._random.choice(("tcp-more", "http-more")), "port": 7000 + self._random.randrange(20)}
        document["spec"]["ports"] = [*ports, more] if self._random.random() < 0.6 else ports
        if self._random.random() < 0.3:
            document["metadata"]["annotations"] = {"networking.istio.io/exportTo": self._random.choice((".", "*"))}

    def _scale(self, document: Document) -> None:
        endpoints = document["endpoints"]
        document["endpoints"] = self._random.sample(endpoints, self._random.randrange(len(endpoints) + 1))
        for endpoint in document["endpoints"]:
            endpoint["conditions"] = {"ready": self._random.random() < 0.8}

    # -- specs ----------------------------------------------------------------------------------------------------

    def _spec(self, kind: str, namespace: str) -> Spec:
        made: Spec = getattr(self, f"_{kind.lower()}")(namespace)
        return made

    def _service(self) -> tuple[str, str]:
        """Short and full host of a service."""
        number = self._random.randrange(self._services)
        name = f"svc-{number}"
        return name, f"{name}.ns-{number % self._namespaces}.svc.cluster.local"

    def _selector(self) -> Spec:
        return {} if self._random.random() < 0.2 else {"selector": {"matchLabels": {"app": self._service()[0]}}}

    def _virtualservice(self, _: str) -> Spec:
        host, other = self._service()[1], self._service()[1]
        route: list[Spec] = [
            {"destination": {"host": host}, "weight": 80},
            {"destination": {"host": other}, "weight": 20},
        ]
        match = self._random.choice(
            (
                {"uri": {"prefix": f"/{next(self._number)}"}},
                {"headers": {"x-user": {"regex": self._random.choice(("a.*", "("))}}},
                {"method": {"exact": "GET"}, "sourceLabels": {"version": "v1"}},
            )
        )
        extra: Spec = self._random.choice(
            (
                {"timeout": f"{self._random.randrange(1, 9)}s"},
                {"retries": {"attempts": self._random.randrange(5)}},
                {"fault": {"abort": {"httpStatus": 503, "percentage": {"value": 1.5}}}},
                {"rewrite": {"uri": "/"}},
                {},
            )
        )
        return {"hosts": [host], "http": [{"match": [match], "route": route, **extra}, {"route": route[:1]}]}

    def _destinationrule(self, _: str) -> Spec:
        policy = self._random.choice(
            (
                {"connectionPool": {"http": {"http2MaxRequests": next(self._number)}}},
                {"outlierDetection": {"consecutive5xxErrors": 1 + next(self._number) % 50}},
                {"loadBalancer": {"simple": self._random.choice(("LEAST_REQUEST", "RANDOM", "ROUND_ROBIN"))}},
                {"loadBalancer": {"consistentHash": {"httpHeaderName": "x-user"}}},
                {"tls": {"mode": self._random.choice(("DISABLE", "ISTIO_MUTUAL", "SIMPLE"))}},
            )
        )
        subsets = [{"name": v, "labels": {"version": v}} for v in ("v1", "v2") if self._random.random() < 0.7]
        host = self._service()[1]
        return {"host": host, "trafficPolicy": policy, "subsets": subsets, "exportTo": [self._random.choice(".*")]}

    def _serviceentry(self, _: str) -> Spec:
        number = self._random.randrange(2 * _EACH)
        ports = [{"number": 80 + self._random.randrange(3), "name": "http", "protocol": "HTTP"}]
        ways = (
            {"resolution": "DNS"},
            {"resolution": "STATIC", "endpoints": [{"address": f"10.77.0.{1 + number}"}]},
            {"resolution": "NONE"},
            {"resolution": "STATIC", "workloadSelector": {"labels": {"app": self._service()[0]}}},
        )
        return {
            "hosts": [f"outside-{number}.example.com"],
            "location": "MESH_EXTERNAL",
            "ports": ports,
            **self._random.choice(ways),
        }

    def _sidecar(self, _: str) -> Spec:
        number = self._random.randrange(self._namespaces)
        hosts = ["./*", f"{SEEN_BY_ALL}/*", *(f"ns-{n}/*" for n in range(number, min(number + 5, self._namespaces)))]
        scope = {} if self._random.random() < 0.5 else {"workloadSelector": {"labels": {"version": "v1"}}}
        return {"egress": [{"hosts": hosts}], **scope}

    def _gateway(self, _: str) -> Spec:
        port = {"number": 80, "name": "http", "protocol": "HTTP"}
        hosts = [f"site-{self._random.randrange(5)}.example.com"]
        return {"selector": {"app": self._service()[0]}, "servers": [{"port": port, "hosts": hosts}]}

    def _workloadentry(self, _: str) -> Spec:
        labels = {"app": self._service()[0], "version": "v1"}
        return {"address": f"10.78.0.{1 + self._random.randrange(250)}", "labels": labels}

    def _workloadgroup(self, _: str) -> Spec:
        return {"metadata": {"labels": {"app": self._service()[0]}}, "template": {"serviceAccount": "default"}}

    def _envoyfilter(self, _: str) -> Spec:
        header = {"key": "x-soak", "value": str(next(self._number))}
        patches = (
            {
                "applyTo": "VIRTUAL_HOST",
                "match": {"context": "SIDECAR_OUTBOUND"},
                "patch": {"operation": "MERGE", "value": {"request_headers_to_add": [{"header": header}]}},
            },
            {
                "applyTo": "CLUSTER",
                "match": {"context": "SIDECAR_OUTBOUND"},
                "patch": {"operation": "MERGE", "value": {"connect_timeout": f"{1 + next(self._number) % 9}s"}},
            },
            {"applyTo": "CLUSTER", "patch": {"operation": "MERGE", "value": {"no_such_field": 1}}},
        )
        scope = {"workloadSelector": {"labels": {"app": self._service()[0]}}}
        return {**scope, "configPatches": [self._random.choice(patches)]}

    def _proxyconfig(self, _: str) -> Spec:
        return {**self._selector(), "concurrency": self._random.randrange(1, 5)}

    def _authorizationpolicy(self, _: str) -> Spec:
        rule = self._random.choice(
            (
                {"to": [{"operation": {"paths": [f"/{next(self._number)}"]}}]},
                {"from": [{"source": {"namespaces": [f"ns-{self._random.randrange(self._namespaces)}"]}}]},
                {"when": [{"key": "request.headers[x-user]", "values": ["a"]}]},
            )
        )
        return {**self._selector(), "action": self._random.choice(("ALLOW", "DENY")), "rules": [rule]}

    def _peerauthentication(self, _: str) -> Spec:
        return {**self._selector(), "mtls": {"mode": self._random.choice(("STRICT", "PERMISSIVE", "DISABLE"))}}

    def _requestauthentication(self, _: str) -> Spec:
        rule = {"issuer": f"issuer-{next(self._number) % 9}", "jwks": '{"keys": []}'}
        return {**self._selector(), "jwtRules": [rule]}

    def _telemetry(self, _: str) -> Spec:
        logging = {"providers": [{"name": "envoy"}], "disabled": self._random.random() < 0.5}
        return {**self._selector(), "accessLogging": [logging]}

    def _httproute(self, namespace: str) -> Spec:
        number = int(namespace.removeprefix("ns-"))
        name = f"svc-{self._random.randrange(number, self._services, self._namespaces)}"
        match = {"path": {"type": "PathPrefix", "value": f"/{next(self._number) % 50}"}}
        parent = {"group": "", "kind": "Service", "name": name, "port": 80}
        return {"parentRefs": [parent], "rules": [{"matches": [match], "backendRefs": [{"name": name, "port": 80}]}]}
