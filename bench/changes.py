"""What is done to a mesh of `bench.meshes`: changes of each kind, whom they concern, and edits that change nothing."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bench import meshes
from bench.meshes import Document

Node = Mapping[str, Any]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Objects to write, and those that stood there before."""

    documents: tuple[Document, ...]
    before: tuple[Document, ...] = ()
    """What to write again to undo it; other objects are removed."""
    marker: str = ""
    """Text that stands in what proxies are told because of it, and nowhere else; none where no text of it does."""

    @property
    def added(self) -> tuple[Document, ...]:
        """The objects that there were not before."""
        there = [identity(document) for document in self.before]
        return tuple(document for document in self.documents if identity(document) not in there)


def identity(document: Document) -> tuple[str, str, str]:
    """Kind, namespace and name of an object."""
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of change, done to service `number` for the n-th time."""

    title: str
    make: Callable[[int, int, int], Change]
    """Of the service's number, the number of namespaces, and n."""
    concerns: Callable[[Node, int, int], bool]
    """Whether it makes a difference for that proxy: node, the service's number, the number of namespaces."""


def _istio(group: str, kind: str, name: str, namespace: str, spec: Document, version: str = "v1") -> Document:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{group}.istio.io/{version}", "kind": kind, "metadata": meta, "spec": spec}


def _namespace(number: int, namespaces: int) -> str:
    return f"ns-{number % namespaces}"


# -- whom changes concern ---------------------------------------------------------------------------------------------


def _everybody(node: Node, number: int, namespaces: int) -> bool:
    del node, number, namespaces
    return True


def _its_namespace(node: Node, number: int, namespaces: int) -> bool:
    return bool(node["metadata"]["NAMESPACE"] == _namespace(number, namespaces))


def _its_pods(node: Node, number: int, namespaces: int) -> bool:
    del namespaces
    return bool(node["metadata"]["LABELS"]["app"] == f"svc-{number}")


# -- changes ----------------------------------------------------------------------------------------------------------


def _virtual_service(number: int, namespaces: int, turn: int) -> Change:
    marker = f"turn-{turn}-of-routes"
    return Change(
        documents=(meshes.virtual_service(number, namespaces, marker),),
        before=(meshes.virtual_service(number, namespaces, "first"),),
        marker=marker,
    )


def _destination_rule(number: int, namespaces: int, turn: int) -> Change:
    marker = f"turn-{turn}-of-subsets"
    before = meshes.destination_rule(number, namespaces, 100)
    after = copy.deepcopy(before)
    after["spec"]["subsets"].append({"name": marker, "labels": {"version": "v1"}})
    return Change(documents=(after,), before=(before,), marker=marker)


def _authorization_policy(number: int, namespaces: int, turn: int) -> Change:
    marker = f"/turn-{turn}-of-policies"
    spec = {"selector": _selector(number), "rules": [{"to": [{"operation": {"paths": [marker]}}]}]}
    policy = _istio("security", "AuthorizationPolicy", "bench", _namespace(number, namespaces), spec)
    return Change(documents=(policy,), marker=marker)


def _selector(number: int) -> Document:
    return {"matchLabels": {"app": f"svc-{number}"}}


def _peer_authentication(number: int, namespaces: int, turn: int) -> Change:
    del turn
    spec = {"mtls": {"mode": "STRICT"}}
    return Change(
        documents=(_istio("security", "PeerAuthentication", "default", _namespace(number, namespaces), spec),)
    )


def _sidecar(number: int, namespaces: int, turn: int) -> Change:
    del turn
    spec = {"egress": [{"hosts": ["./*"]}]}
    return Change(documents=(_istio("networking", "Sidecar", "default", _namespace(number, namespaces), spec),))


def _service(number: int, namespaces: int, turn: int) -> Change:
    marker = f"turn-{turn}-of-services"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": marker, "namespace": _namespace(number, namespaces)},
        "spec": {
            "clusterIP": f"10.200.1.{1 + turn % 250}",
            "selector": {"app": f"svc-{number}"},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        },
    }
    return Change(documents=(service,), marker=marker)


def _service_entry(number: int, namespaces: int, turn: int) -> Change:
    marker = f"turn-{turn}.example.com"
    ports = [{"number": 80, "name": "http", "protocol": "HTTP"}]
    spec = {"hosts": [marker], "location": "MESH_EXTERNAL", "resolution": "DNS", "ports": ports}
    entry = _istio("networking", "ServiceEntry", "bench", _namespace(number, namespaces), spec)
    return Change(documents=(entry,), marker=marker)


def _envoy_filter(number: int, namespaces: int, turn: int) -> Change:
    marker = f"turn-{turn}-of-patches"
    value = {"request_headers_to_add": [{"header": {"key": "x-bench", "value": marker}}]}
    patch = {
        "applyTo": "VIRTUAL_HOST",
        "match": {"context": "SIDECAR_OUTBOUND"},
        "patch": {"operation": "MERGE", "value": value},
    }
    spec = {"workloadSelector": {"labels": {"app": f"svc-{number}"}}, "configPatches": [patch]}
    filter_ = _istio("networking", "EnvoyFilter", "bench", _namespace(number, namespaces), spec, "v1alpha3")
    return Change(documents=(filter_,), marker=marker)


def _endpoint(number: int, namespaces: int, turn: int) -> Change:
    marker = f"10.250.{turn // 250}.{1 + turn % 250}"
    more = [{"addresses": [marker], "conditions": {"ready": True}}]
    slice_ = meshes.endpoint_slice(number, namespaces, more)
    slice_["metadata"]["name"] = f"svc-{number}-2"
    return Change(documents=(slice_,), marker=marker)


KINDS = {
    "vs": Kind(title="VirtualService", make=_virtual_service, concerns=_everybody),
    "dr": Kind(title="DestinationRule", make=_destination_rule, concerns=_everybody),
    "authz": Kind(title="AuthorizationPolicy, one workload", make=_authorization_policy, concerns=_its_pods),
    "peerauth": Kind(title="PeerAuthentication, one namespace", make=_peer_authentication, concerns=_its_namespace),
    "sidecar": Kind(title="Sidecar, one namespace", make=_sidecar, concerns=_its_namespace),
    "service": Kind(title="new Service", make=_service, concerns=_everybody),
    "serviceentry": Kind(title="new ServiceEntry", make=_service_entry, concerns=_everybody),
    "envoyfilter": Kind(title="EnvoyFilter, one workload", make=_envoy_filter, concerns=_its_pods),
    "endpoint": Kind(title="endpoint", make=_endpoint, concerns=_everybody),
}
"""By the name of the row."""


# -- edits that change nothing ----------------------------------------------------------------------------------------


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """An object as it stands, and the text that takes its place and means the same."""

    title: str
    before: Document
    text: str


def edits(documents: Sequence[Document]) -> Iterator[Edit]:
    """Every kind of edit that changes nothing, done to the first service of a mesh and what there is about it."""
    found = {identity(document): document for document in (*documents, *quiet_objects())}
    for key, (what, edit) in _EDITS:
        after = copy.deepcopy(found[key])
        edit(after)
        yield Edit(title=f"{key[0]}: {what}", before=found[key], text=json.dumps(after))
    for key, (what, rewrite) in _TEXTS:
        yield Edit(title=f"{key[0]}: {what}", before=found[key], text=rewrite(found[key]))


def quiet_objects() -> tuple[Document, ...]:
    """Objects of further kinds, to be there before they are edited."""
    return (
        _istio("security", "AuthorizationPolicy", "quiet", "ns-0", {"action": "DENY", "selector": _selector(0)}),
        _istio("security", "PeerAuthentication", "quiet", "ns-0", {"selector": _selector(0)}),
        _istio("security", "RequestAuthentication", "quiet", "ns-0", {"selector": _selector(0)}),
        _istio("networking", "Sidecar", "quiet", "ns-0", {"workloadSelector": {"labels": {"app": "svc-0"}}}),
        _service_entry(0, 1, 999).documents[0],
        _envoy_filter(0, 1, 999).documents[0],
        _istio("telemetry", "Telemetry", "quiet", "ns-0", {"selector": _selector(0)}),
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": meshes.NODE}, "status": {}},
    )


def _annotate(document: Document) -> None:
    document["metadata"].setdefault("annotations", {})["bench.example.com/note"] = "another"


def _restart(document: Document) -> None:
    """As `kubectl rollout restart` does."""
    document["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/restartedAt"] = _TIME


def _trigger(document: Document) -> None:
    """As the controller of EndpointSlices does for each change that it looks at."""
    annotations = document["metadata"].setdefault("annotations", {})
    annotations["endpoints.kubernetes.io/last-change-trigger-time"] = _TIME


def _tell_status(document: Document) -> None:
    document.setdefault("status", {})["conditions"] = [{"type": "Bench", "status": "True", "message": "another"}]


def _tell_containers(document: Document) -> None:
    """As the kubelet does when a container was restarted."""
    told = {"name": "app", "ready": True, "restartCount": 1, "state": {"running": {"startedAt": _TIME}}}
    document["status"]["containerStatuses"] = [told]


def _beat(document: Document) -> None:
    """As the kubelet does every few minutes."""
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": _TIME}
    document["status"] |= {"conditions": [condition], "images": [{"names": ["app"], "sizeBytes": 4711}]}


def _version(document: Document) -> None:
    document["metadata"]["resourceVersion"] = "4711"


def _manage(document: Document) -> None:
    document["metadata"]["managedFields"] = [{"manager": "bench", "operation": "Update"}]


def _reverse_labels(document: Document) -> None:
    document["metadata"]["labels"] = dict(reversed(document["metadata"]["labels"].items()))


def _reverse_spec(document: Document) -> None:
    document["spec"] = dict(reversed(document["spec"].items()))


def _as_json(document: Document) -> str:
    return json.dumps(document, indent=2)


def _with_comment(document: Document) -> str:
    return f"# A comment.\n{json.dumps(document)}\n"


def _in_older_version(document: Document) -> str:
    return json.dumps({**document, "apiVersion": "networking.istio.io/v1beta1"})


_VIRTUAL_SERVICE = ("VirtualService", "ns-0", "svc-0")
_RULE = ("DestinationRule", "ns-0", "svc-0")
_SERVICE = ("Service", "ns-0", "svc-0")
_POD = ("Pod", "ns-0", "svc-0-0")
_SLICE = ("EndpointSlice", "ns-0", "svc-0-1")
_NAMESPACE = ("Namespace", "", "ns-0")
_NODE = ("Node", "", meshes.NODE)
_TIME = "2026-01-01T00:00:00Z"
_ANNOTATION = ("an annotation", _annotate)
_STATUS = ("status", _tell_status)
_VERSION = ("resourceVersion", _version)

_EDITS = (
    (_VIRTUAL_SERVICE, _ANNOTATION),
    (_VIRTUAL_SERVICE, _STATUS),
    (_VIRTUAL_SERVICE, _VERSION),
    (_VIRTUAL_SERVICE, ("managedFields", _manage)),
    (_VIRTUAL_SERVICE, ("order of fields", _reverse_spec)),
    (_RULE, _ANNOTATION),
    (_RULE, _STATUS),
    (_SERVICE, _ANNOTATION),
    (_SERVICE, _STATUS),
    (_SERVICE, _VERSION),
    (_POD, _ANNOTATION),
    (_POD, ("when it was restarted", _restart)),
    (_POD, _STATUS),
    (_POD, ("restarts of a container", _tell_containers)),
    (_POD, _VERSION),
    (_POD, ("managedFields", _manage)),
    (_POD, ("order of labels", _reverse_labels)),
    (_SLICE, _ANNOTATION),
    (_SLICE, ("when it was looked at", _trigger)),
    (_SLICE, _VERSION),
    (_NAMESPACE, _ANNOTATION),
    (_NAMESPACE, _STATUS),
    (_NODE, _ANNOTATION),
    (_NODE, ("a heartbeat", _beat)),
    (("AuthorizationPolicy", "ns-0", "quiet"), _ANNOTATION),
    (("PeerAuthentication", "ns-0", "quiet"), _STATUS),
    (("Sidecar", "ns-0", "quiet"), _ANNOTATION),
    (("ServiceEntry", "ns-0", "bench"), _STATUS),
    (("EnvoyFilter", "ns-0", "bench"), _VERSION),
)
_TEXTS = (
    (_VIRTUAL_SERVICE, ("a comment", _with_comment)),
    (_VIRTUAL_SERVICE, ("equal spec, written otherwise", _as_json)),
    (_VIRTUAL_SERVICE, ("an older version of the API", _in_older_version)),
)
