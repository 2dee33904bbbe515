import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from mizzen.api.decode import decode_object, unfold_lists
from mizzen.api.kube.pods import Pod
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key, OwnerReference
from mizzen.api.networking.virtual_service import StringMatch, VirtualService
from mizzen.api.networking.workload_entry import WorkloadEntry
from mizzen.api.policy import PeerAuthentication, WasmPlugin


def make(kind: str, api_version: str, name: str = "a", **fields: Any) -> dict[str, Any]:
    """A document; `metadata` in the fields adds to its name."""
    metadata = {"name": name, "namespace": "shop", **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def make_virtual_service(**spec: Any) -> dict[str, Any]:
    return make("VirtualService", "networking.istio.io/v1", spec=spec)


def make_policy(**spec: Any) -> dict[str, Any]:
    return make("AuthorizationPolicy", "security.istio.io/v1", spec=spec)


def report(document: object) -> list[tuple[str, str, str]]:
    """The Problems of a document as (level, path, message)."""
    return [(problem.level, problem.path, problem.message) for problem in decode_object(document).problems]


def read(document: object) -> Any:
    """The object of a document that has no Problems."""
    decoded = decode_object(document)
    assert decoded.problems == ()
    assert decoded.outcome == "decoded"
    return decoded.object


def test_an_object_is_read_with_its_key() -> None:
    decoded = decode_object(make_virtual_service(hosts=["cart"]))
    assert decoded.key == Key("VirtualService", "shop", "a")
    assert isinstance(decoded.object, VirtualService)
    assert decoded.object.spec.hosts == ("cart",)


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha3"])
def test_all_served_versions_are_one_kind(version: str) -> None:
    document = make("VirtualService", f"networking.istio.io/{version}", spec={"hosts": ["cart"]})
    assert read(document) == read(make_virtual_service(hosts=["cart"]))


def test_namespaces_are_filled_in_or_dropped_as_the_scope_says() -> None:
    nowhere = make("Service", "v1", metadata={"namespace": None})
    assert decode_object(nowhere).key == Key("Service", "default", "a")
    assert decode_object(nowhere, default_namespace="web").key == Key("Service", "web", "a")
    assert read(nowhere).metadata.namespace == "default"
    assert decode_object(make("Node", "v1")).key == Key("Node", "", "a")
    assert read(make("Node", "v1")).metadata.namespace == ""


def test_what_changes_by_itself_makes_no_difference() -> None:
    first = make_virtual_service(hosts=["cart"])
    second = copy.deepcopy(first)
    first["metadata"] |= {"resourceVersion": "1", "managedFields": [{"manager": "x"}], "selfLink": "/a"}
    first["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    second["metadata"]["annotations"] = {}
    second["status"] = {"observedGeneration": 3}
    assert read(first) == read(second)
    assert first["metadata"]["annotations"]


def test_a_wasm_plugin_keeps_its_resource_version() -> None:
    plugin = read(make("WasmPlugin", "extensions.istio.io/v1alpha1", metadata={"resourceVersion": "7"}))
    assert isinstance(plugin, WasmPlugin)
    assert plugin.metadata.resource_version == "7"


def test_metadata_is_typed() -> None:
    metadata = read(
        make(
            "Pod",
            "v1",
            metadata={
                "creationTimestamp": "2024-01-31T12:00:00Z",
                "deletionTimestamp": None,
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a-1", "uid": "u", "controller": True}
                ],
            },
        )
    ).metadata
    assert metadata.creation_timestamp == datetime(2024, 1, 31, 12, tzinfo=UTC)
    assert metadata.deletion_timestamp is None
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="a-1", controller=True)
    assert metadata.owner_references == (owner,)


def test_a_time_without_a_zone_is_refused() -> None:
    document = make("Pod", "v1", metadata={"creationTimestamp": "2024-01-31T12:00:00"})
    assert report(document) == [
        (
            "error",
            "metadata.creationTimestamp",
            "expected a time such as 2024-01-31T12:00:00Z, got '2024-01-31T12:00:00'",
        )
    ]


@pytest.mark.parametrize(
    ("document", "code", "path"),
    [
        (None, "not-an-object", ""),
        ([], "not-an-object", ""),
        ("text", "not-an-object", ""),
        ({}, "not-an-object", ""),
        ({"apiVersion": "v1", "kind": 7}, "not-an-object", ""),
        ({"apiVersion": "v1", "kind": "Pod"}, "no-name", "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": []}, "no-name", "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 7}}, "no-name", "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}, "no-name", "metadata.name"),
        (make("Pod", "v1", metadata={"namespace": 7}), "invalid-field", "metadata.namespace"),
        (make("VirtualServic", "networking.istio.io/v1"), "unknown-kind", "kind"),
        (make("VirtualService", "networking.istio.io/v9"), "unknown-version", "apiVersion"),
    ],
)
def test_what_is_no_object_of_ours_fails_with_a_code(document: object, code: str, path: str) -> None:
    decoded = decode_object(document)
    assert decoded.outcome == "failed"
    assert decoded.object is None
    assert [(problem.code, problem.path, problem.level) for problem in decoded.problems] == [(code, path, "error")]


@pytest.mark.parametrize(
    "document", [make("PersistentVolume", "v1"), make("IstioOperator", "install.istio.io/v1"), make("Pod", "v9")]
)
def test_kinds_of_others_are_no_problem(document: object) -> None:
    decoded = decode_object(document)
    assert (decoded.outcome, decoded.key, decoded.object, decoded.problems) == ("not-read", None, None, ())


def test_an_error_says_where_and_what() -> None:
    decoded = decode_object(
        make_virtual_service(http=[{}, {"route": [{"destination": {"host": "cart"}, "weight": "90"}]}])
    )
    assert decoded.outcome == "failed"
    assert [str(problem) for problem in decoded.problems] == [
        "VirtualService shop/a: spec.http[1].route[0].weight: expected int (-2147483648 to 2147483647), got '90'"
    ]


def test_every_fault_is_reported_and_the_rest_remains() -> None:
    document = make_virtual_service(
        hosts=[1],
        http=[{"timeout": 5, "retries": {"attempts": 2**31}, "match": [{"headers": {"x": {"exact": 1}}, "port": -1}]}],
        tls=7,
        gatewys=["mesh"],
    )
    assert sorted(report(document)) == [
        ("error", "spec.hosts[0]", "expected string, got 1"),
        ("error", "spec.http[0].match[0].headers[x].exact", "expected string, got 1"),
        ("error", "spec.http[0].match[0].port", "expected int (0 to 4294967295), got -1"),
        ("error", "spec.http[0].retries.attempts", "expected int (-2147483648 to 2147483647), got 2147483648"),
        ("error", "spec.http[0].timeout", "expected a duration such as 1.5s or 1h30m, got 5"),
        ("error", "spec.tls", "expected list, got 7"),
        ("warning", "spec.gatewys", "unknown field; did you mean gateways?"),
    ]
    remains = decode_object(document).remains
    assert isinstance(remains, VirtualService)
    assert remains.spec.http[0].match[0].headers == {"x": StringMatch()}


def test_unknown_fields_warn_at_any_depth_and_the_object_stands() -> None:
    document = make_virtual_service(hosts=["cart"], http=[{"route": [{"destination": {"hots": "cart"}}], "zzz": 1}])
    assert report(document) == [
        ("warning", "spec.http[0].route[0].destination.hots", "unknown field; did you mean host?"),
        ("warning", "spec.http[0].zzz", "unknown field"),
    ]
    assert decode_object(document).outcome == "decoded"


def test_fields_of_kubernetes_that_are_not_read_do_not_warn() -> None:
    pod = make(
        "Pod",
        "v1",
        spec={
            "containers": [{"name": "app", "tty": True, "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}],
            "tolerations": [{"operator": "Exists"}],
            "affinity": {},
        },
        status={"podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}], "hostIP": "10.0.0.1", "qosClass": "Burstable"},
    )
    decoded = read(pod)
    assert isinstance(decoded, Pod)
    assert decoded.status is not None
    assert decoded.status.pod_ip == "10.1.1.1"
    assert decoded.spec.containers[0].resources is not None
    assert decoded.spec.containers[0].resources.limits == {"cpu": "2", "memory": "1Gi"}
    assert report(make("Pod", "v1", spec={"contaners": []})) == [
        ("warning", "spec.contaners", "unknown field; did you mean containers?")
    ]


def test_only_what_is_acted_on_is_kept_of_a_status() -> None:
    def entry(time: str) -> Any:
        condition = {"type": "Healthy", "status": "False", "lastTransitionTime": time, "message": time}
        return read(make("WorkloadEntry", "networking.istio.io/v1", status={"conditions": [condition]}))

    assert isinstance(entry("a"), WorkloadEntry)
    assert entry("a") == entry("b")
    assert entry("a").status.conditions[0].status == "False"


def test_names_or_numbers_of_ports_stay_apart() -> None:
    service = read(
        make("Service", "v1", spec={"ports": [{"port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 8081}]})
    )
    assert isinstance(service, Service)
    assert [port.target_port for port in service.spec.ports] == ["web", 8081]


def test_ports_are_keys_as_numbers() -> None:
    spec = {"portLevelMtls": {"8080": {"mode": "DISABLE"}}}
    policy = read(make("PeerAuthentication", "security.istio.io/v1", spec=spec))
    assert isinstance(policy, PeerAuthentication)
    assert policy.spec.port_level_mtls[8080].mode == "DISABLE"
    assert report(make("PeerAuthentication", "security.istio.io/v1", spec={"portLevelMtls": {"http": {}}})) == [
        ("error", "spec.portLevelMtls[http]", "expected int (0 to 4294967295) as key, got 'http'")
    ]


def test_defaults_of_the_crd_are_filled_in() -> None:
    route = read(make("HTTPRoute", "gateway.networking.k8s.io/v1", spec={"rules": [{"backendRefs": [{"name": "b"}]}]}))
    rule = route.spec.rules[0]
    assert (rule.matches[0].path.type, rule.matches[0].path.value) == ("PathPrefix", "/")
    assert (rule.backend_refs[0].kind, rule.backend_refs[0].weight) == ("Service", 1)


@pytest.mark.parametrize(
    ("kind", "api_version", "kept"),
    [
        ("VirtualService", "networking.istio.io/v1", False),
        ("HTTPRoute", "gateway.networking.k8s.io/v1", False),
        ("Service", "v1", False),
        ("EndpointSlice", "discovery.k8s.io/v1", False),
        ("Endpoints", "v1", False),
        ("Namespace", "v1", False),
        ("Node", "v1", False),
        ("ConfigMap", "v1", False),
        ("Deployment", "apps/v1", False),
        # Passed on to what is made of them, or to Envoy's bootstrap, or written back, or translated.
        ("Gateway", "gateway.networking.k8s.io/v1", True),
        ("Pod", "v1", True),
        ("Ingress", "networking.k8s.io/v1", True),
        ("WorkloadEntry", "networking.istio.io/v1", True),
    ],
)
def test_annotations_of_other_tools_are_kept_where_they_are_passed_on(kind: str, api_version: str, kept: bool) -> None:
    document = make(kind, api_version)
    document["metadata"]["annotations"] = {"example.com/note": "x", "istio.io/rev": "y", 5: "z"}
    decoded = decode_object(document)
    del document["metadata"]["annotations"][5]
    found = read(document).metadata.annotations
    assert found == ({"example.com/note": "x", "istio.io/rev": "y"} if kept else {"istio.io/rev": "y"})
    assert any("annotations" in problem.path for problem in decoded.problems)


def test_annotations_of_a_template_are_the_pods_that_are_made_of_it() -> None:
    document = make("Deployment", "apps/v1")
    document["spec"] = {"template": {"metadata": {"annotations": {"example.com/note": "x"}}}}
    assert read(document).spec.template.metadata.annotations == {"example.com/note": "x"}


def test_decoding_leaves_the_document_as_it_was() -> None:
    document = make_virtual_service(http=[{"timeout": None, "retries": {"per_try_timeout": "1s"}, "nope": 1}])
    document["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    before = copy.deepcopy(document)
    decode_object(document)
    assert document == before


def test_lists_are_unfolded() -> None:
    one, two = make_virtual_service(), make_policy()
    assert list(unfold_lists({"apiVersion": "v1", "kind": "List", "items": [one, two, 3]})) == [one, two, 3]
    bare = {"metadata": {"name": "a"}}
    typed = {"apiVersion": "networking.istio.io/v1", "kind": "VirtualServiceList", "items": [bare, None]}
    assert list(unfold_lists(typed)) == [
        {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": "a"}},
        None,
    ]


@pytest.mark.parametrize(
    "document", [None, [], {"kind": "List"}, {"kind": "Pod", "items": []}, {"kind": 1, "items": []}]
)
def test_what_is_no_list_stays(document: object) -> None:
    assert list(unfold_lists(document)) == [document]
