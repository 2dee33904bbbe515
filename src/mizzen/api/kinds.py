"""Every kind of object that is read: its API group, the versions it is served at, its scope and its Struct.

`kind_of_api` finds a kind by what stands in an object, `kind_named` by the name in a `Key`. A group is *ours* if its
objects are written for the mesh, so that an unknown kind of it is a mistake worth a Problem.
"""

from collections.abc import Mapping

from msgspec import Struct

from mizzen.api import policy
from mizzen.api.gateway_api import (
    experimental,
    grpc_route,
    http_route,
    listeners,
    policies,
    stream_routes,
)
from mizzen.api.kube import cluster, data, ingress, pods, services, workloads
from mizzen.api.meta import Object
from mizzen.api.networking import (
    destination_rule,
    envoy_filter,
    gateway,
    proxy_config,
    service_entry,
    sidecar,
    virtual_service,
    workload_entry,
    workload_group,
)


class Kind(Struct, frozen=True, kw_only=True):
    """One kind; the first of its versions is the one to ask an API server for."""

    kind: str
    """As written in objects."""
    group: str
    """Empty for Kubernetes' core group."""
    versions: tuple[str, ...]
    plural: str
    type: type[Object]
    namespaced: bool = True
    key_name: str = ""
    """As written in a `Key`, if that is not `kind`."""

    @property
    def name(self) -> str:
        """The kind in a `Key`, unique among all kinds."""
        return self.key_name or self.kind

    @property
    def takes_remarks(self) -> bool:
        """Whether annotations of other tools mean nothing here."""
        return self.name not in _PASSED_ON

    @property
    def api_version(self) -> str:
        """The group and the first version, as written in objects."""
        return f"{self.group}/{self.versions[0]}" if self.group else self.versions[0]


_PASSED_ON = ("Ingress", "KubernetesGateway", "Pod", "WorkloadEntry", "WorkloadGroup")
"""Whose annotations are translated, told to what is made of them, or written back."""
_NETWORKING = ("v1", "v1beta1", "v1alpha3")
_SECURITY = ("v1", "v1beta1")


def _kube(cls: type[Object], plural: str, group: str = "", *, namespaced: bool = True) -> Kind:
    return Kind(kind=cls.__name__, group=group, versions=("v1",), plural=plural, type=cls, namespaced=namespaced)


def _istio(cls: type[Object], plural: str, group: str, versions: tuple[str, ...]) -> Kind:
    return Kind(kind=cls.__name__, group=f"{group}.istio.io", versions=versions, plural=plural, type=cls)


def _gateway_api(
    cls: type[Object], plural: str, versions: tuple[str, ...], *, namespaced: bool = True, key_name: str = ""
) -> Kind:
    return Kind(
        kind=cls.__name__,
        group="gateway.networking.k8s.io",
        versions=versions,
        plural=plural,
        type=cls,
        namespaced=namespaced,
        key_name=key_name,
    )


def _experimental(cls: type[Object], plural: str, *, namespaced: bool = True) -> Kind:
    return Kind(
        kind=cls.__name__,
        group="gateway.networking.x-k8s.io",
        versions=("v1alpha1",),
        plural=plural,
        type=cls,
        namespaced=namespaced,
    )


KINDS: tuple[Kind, ...] = (
    _kube(services.Service, "services"),
    _kube(services.EndpointSlice, "endpointslices", "discovery.k8s.io"),
    _kube(services.Endpoints, "endpoints"),
    _kube(pods.Pod, "pods"),
    _kube(cluster.Node, "nodes", namespaced=False),
    _kube(cluster.Namespace, "namespaces", namespaced=False),
    _kube(cluster.ServiceAccount, "serviceaccounts"),
    _kube(data.Secret, "secrets"),
    _kube(data.ConfigMap, "configmaps"),
    _kube(ingress.Ingress, "ingresses", "networking.k8s.io"),
    _kube(ingress.IngressClass, "ingressclasses", "networking.k8s.io", namespaced=False),
    _kube(workloads.Deployment, "deployments", "apps"),
    _kube(workloads.StatefulSet, "statefulsets", "apps"),
    _kube(workloads.ReplicaSet, "replicasets", "apps"),
    _kube(workloads.DaemonSet, "daemonsets", "apps"),
    _kube(workloads.Job, "jobs", "batch"),
    _kube(workloads.CronJob, "cronjobs", "batch"),
    _istio(virtual_service.VirtualService, "virtualservices", "networking", _NETWORKING),
    _istio(destination_rule.DestinationRule, "destinationrules", "networking", _NETWORKING),
    _istio(gateway.Gateway, "gateways", "networking", _NETWORKING),
    _istio(service_entry.ServiceEntry, "serviceentries", "networking", _NETWORKING),
    _istio(workload_entry.WorkloadEntry, "workloadentries", "networking", _NETWORKING),
    _istio(workload_group.WorkloadGroup, "workloadgroups", "networking", _NETWORKING),
    _istio(sidecar.Sidecar, "sidecars", "networking", _NETWORKING),
    _istio(envoy_filter.EnvoyFilter, "envoyfilters", "networking", ("v1alpha3",)),
    _istio(proxy_config.ProxyConfig, "proxyconfigs", "networking", ("v1beta1",)),
    _istio(policy.PeerAuthentication, "peerauthentications", "security", _SECURITY),
    _istio(policy.RequestAuthentication, "requestauthentications", "security", _SECURITY),
    _istio(policy.AuthorizationPolicy, "authorizationpolicies", "security", _SECURITY),
    _istio(policy.Telemetry, "telemetries", "telemetry", ("v1", "v1alpha1")),
    _istio(policy.WasmPlugin, "wasmplugins", "extensions", ("v1alpha1",)),
    _istio(policy.TrafficExtension, "trafficextensions", "extensions", ("v1alpha1",)),
    _gateway_api(listeners.GatewayClass, "gatewayclasses", ("v1", "v1beta1"), namespaced=False),
    _gateway_api(listeners.Gateway, "gateways", ("v1", "v1beta1"), key_name="KubernetesGateway"),
    _gateway_api(listeners.ListenerSet, "listenersets", ("v1",)),
    _gateway_api(http_route.HTTPRoute, "httproutes", ("v1", "v1beta1")),
    _gateway_api(grpc_route.GRPCRoute, "grpcroutes", ("v1",)),
    _gateway_api(stream_routes.TCPRoute, "tcproutes", ("v1", "v1alpha2")),
    _gateway_api(stream_routes.TLSRoute, "tlsroutes", ("v1", "v1alpha3", "v1alpha2")),
    _gateway_api(stream_routes.UDPRoute, "udproutes", ("v1", "v1alpha2")),
    _gateway_api(policies.ReferenceGrant, "referencegrants", ("v1", "v1beta1")),
    _gateway_api(policies.BackendTLSPolicy, "backendtlspolicies", ("v1", "v1alpha3")),
    _experimental(experimental.XBackend, "xbackends"),
    _experimental(experimental.XBackendTrafficPolicy, "xbackendtrafficpolicies"),
    _experimental(experimental.XMesh, "xmeshes", namespaced=False),
)

_OUR_GROUPS = (
    "networking.istio.io",
    "security.istio.io",
    "telemetry.istio.io",
    "extensions.istio.io",
    "gateway.networking.k8s.io",
    "gateway.networking.x-k8s.io",
)
_BY_GROUP_AND_KIND: Mapping[tuple[str, str], Kind] = {(kind.group, kind.kind): kind for kind in KINDS}
_BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}


def kind_of_api(group: str, kind: str) -> Kind | None:
    """The kind of this group and name, whatever the version; None if it is not read."""
    return _BY_GROUP_AND_KIND.get((group, kind))


def kind_named(name: str) -> Kind:
    """The kind of a `Key`'s `kind`."""
    return _BY_NAME[name]


def is_our_group(group: str) -> bool:
    """Whether objects of this API group are written for the mesh."""
    return group in _OUR_GROUPS


def split_api_version(api_version: str) -> tuple[str, str]:
    """The group, empty for the core one, and the version."""
    group, slash, version = api_version.rpartition("/")
    return (group, version) if slash else ("", api_version)
