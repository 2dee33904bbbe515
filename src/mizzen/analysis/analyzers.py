"""Analyzers: the table of rules under the reference's names, and running them.

In: an engine with objects, and which analyzers to run. Out: Findings in no particular order. A rule that fails is a
finding too, IST0001 on the object that it failed on: its neighbours are analysed all the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from mizzen.analysis import catalogue, objects
from mizzen.analysis.cluster import CRD, MUTATING, VALIDATING
from mizzen.analysis.findings import Finding, report
from mizzen.analysis.own.table import OWN_RULES
from mizzen.analysis.rules import (
    annotations,
    applications,
    conditions,
    deprecations,
    destination_rules,
    destinations,
    envoy_filters,
    gateway_api,
    gateway_conflicts,
    gateways,
    injected_images,
    injection,
    mesh_networks,
    policies,
    service_entries,
    services,
    telemetry,
    validation,
    virtual_services,
    webhooks,
    workload_selectors,
)
from mizzen.analysis.settings import settings
from mizzen.api.meta import Key
from mizzen.incremental import CycleError, Engine

Check = Callable[[Engine, Key], tuple[Finding, ...]]


class Analyzer(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with a name."""

    name: str
    description: str
    checks: tuple[tuple[tuple[str, ...], Check], ...] = ()
    """Kinds, each with what is asked about every object of them."""
    whole: Callable[[Engine], tuple[Finding, ...]] | None = None
    """What is asked once."""
    is_multi_cluster: bool = False
    """Whether it says nothing about one cluster."""


def _analyzer(name: str, description: str, *checks: tuple[str, Check]) -> Analyzer:
    return Analyzer(
        name=name,
        description=description,
        checks=tuple((tuple(kinds.split()), check) for kinds, check in checks),
    )


MESH_KINDS: tuple[str, ...] = (
    "AuthorizationPolicy",
    "DestinationRule",
    "EnvoyFilter",
    "Gateway",
    "PeerAuthentication",
    "ProxyConfig",
    "RequestAuthentication",
    "ServiceEntry",
    "Sidecar",
    "Telemetry",
    "TrafficExtension",
    "VirtualService",
    "WasmPlugin",
    "WorkloadEntry",
    "WorkloadGroup",
)
"""Istio's own kinds."""
_WEBHOOKS = f"{MUTATING} {VALIDATING}"

_REFERENCE = (
    _analyzer(
        "annotations.K8sAnalyzer",
        "Istio annotations that are unknown, misplaced, deprecated or wrong",
        ("Namespace Service Pod Deployment", annotations.check_annotations),
    ),
    _analyzer(
        "applicationUID.Analyzer",
        "Applications that run as the sidecar's user",
        ("Pod Deployment", applications.check_user),
    ),
    _analyzer(
        "auth.AuthorizationPoliciesAnalyzer",
        "AuthorizationPolicies without workloads, or about namespaces that do not exist",
        ("AuthorizationPolicy", policies.check_authorization),
    ),
    _analyzer(
        "authn.BlockedCIDRsAnalyzer",
        "A control plane that fetches keys of tokens from any address",
        ("Deployment", policies.check_key_fetching),
    ),
    _analyzer(
        "conditions.ConditionAnalyzer",
        "Conditions of objects that are not met",
        (" ".join(conditions.KINDS), conditions.check_conditions),
    ),
    _analyzer(
        "deployment.MultiServiceAnalyzer",
        "Deployments behind Services that use one port differently",
        ("Deployment", applications.check_services),
    ),
    _analyzer(
        "deprecation.DeprecationAnalyzer",
        "Fields and kinds that are deprecated",
        ("VirtualService", deprecations.check_virtual_service),
        ("Sidecar", deprecations.check_sidecar),
        (CRD, deprecations.check_definition),
    ),
    _analyzer(
        "destinationrule.CaCertificateAnalyzer",
        "DestinationRules with TLS that do not check the server",
        ("DestinationRule", destination_rules.check_certificates),
    ),
    _analyzer(
        "destinationrule.SubsetSelectPodAnalyzer",
        "DestinationRules of unknown hosts, and subsets without pods",
        ("DestinationRule", destination_rules.check_subsets),
    ),
    _analyzer(
        "envoyfilter.EnvoyPatchAnalyzer",
        "EnvoyFilters whose patches may not be applied",
        ("EnvoyFilter", envoy_filters.check_patches),
    ),
    _analyzer(
        "externalcontrolplane.ExternalControlPlaneAnalyzer",
        "Webhooks that cannot reach an external control plane",
        (_WEBHOOKS, webhooks.check_external),
    ),
    _analyzer(
        "gateway.CertificateAnalyzer",
        "Certificates that several Gateways have",
        ("Gateway", gateway_conflicts.check_certificates),
    ),
    _analyzer(
        "gateway.ConflictingGatewayAnalyzer",
        "Gateways with the same port and hosts",
        ("Gateway", gateway_conflicts.check_hosts),
    ),
    _analyzer(
        "gateway.IngressGatewayPortAnalyzer",
        "Gateway ports that no Service opens",
        ("Gateway", gateways.check_ports),
    ),
    _analyzer(
        "gateway.SecretAnalyzer",
        "Secrets of Gateways that are missing or unreadable",
        ("Gateway", gateways.check_credentials),
    ),
    _analyzer(
        "injection.Analyzer",
        "Namespaces and pods without sidecars",
        ("Namespace", injection.check_namespace),
        ("Pod", injection.check_pod),
    ),
    _analyzer(
        "injection.ImageAnalyzer",
        "Sidecars of another image than the injector's",
        ("Namespace", injected_images.check_versions),
    ),
    _analyzer(
        "injection.ImageAutoAnalyzer",
        "Images left for an injector that is never asked",
        ("Pod", injected_images.check_pod),
        ("Deployment", injected_images.check_deployment),
    ),
    _analyzer(
        "k8sgateway.CRDVersionAnalyzer",
        "CRDs of the Gateway API that are too old",
        (CRD, gateway_api.check_definition),
    ),
    _analyzer(
        "k8sgateway.SelectorAnalyzer",
        "Policies that select a managed gateway by labels",
        ("AuthorizationPolicy RequestAuthentication Telemetry WasmPlugin", gateway_api.check_selector),
    ),
    Analyzer(
        name="meshnetworks.MeshNetworksAnalyzer",
        description="Networks of registries that do not exist",
        whole=mesh_networks.check_networks,
    ),
    *(
        _analyzer(
            f"schema.ValidationAnalyzer.{kind}",
            f"What admission refuses or warns of in {kind} objects",
            (kind, validation.check_object),
        )
        for kind in MESH_KINDS
    ),
    _analyzer(
        "service.PortNameAnalyzer",
        "Service ports whose names say no protocol",
        ("Service", services.check_port_names),
    ),
    _analyzer(
        "serviceentry.Analyzer",
        "ServiceEntries that need addresses",
        ("ServiceEntry", service_entries.check_addresses),
    ),
    _analyzer(
        "serviceentry.ConflictingServiceEntryProtocolAnalyzer",
        "ServiceEntries that give one port several protocols",
        ("ServiceEntry", service_entries.check_protocols),
    ),
    Analyzer(
        name="services.MultiClusterServiceAnalyzer",
        description="Services that differ between clusters",
        checks=((("Service",), services.check_clusters),),
        is_multi_cluster=True,
    ),
    _analyzer(
        "sidecar.SelectorAnalyzer",
        "Sidecars that select nobody, contend for a pod or have no effect",
        ("Sidecar", workload_selectors.check_selected),
        ("Sidecar", workload_selectors.check_unselecting),
        ("Sidecar", workload_selectors.check_ambient),
    ),
    _analyzer(
        "telemetry.DefaultSelectorAnalyzer",
        "Several Telemetries for one whole namespace",
        ("Telemetry", workload_selectors.check_unselecting),
    ),
    _analyzer(
        "telemetry.LightstepAnalyzer",
        "Telemetries with a provider that is deprecated",
        ("Telemetry", telemetry.check_lightstep),
    ),
    _analyzer(
        "telemetry.ProviderAnalyzer",
        "Telemetries with access logs that nobody writes",
        ("Telemetry", telemetry.check_providers),
    ),
    _analyzer(
        "telemetry.SelectorAnalyzer",
        "Telemetries that select nobody or contend for a pod",
        ("Telemetry", workload_selectors.check_selected),
    ),
    _analyzer(
        "virtualservice.ConflictingMeshGatewayHostsAnalyzer",
        "VirtualServices with the same host in the mesh",
        ("VirtualService", virtual_services.check_mesh_hosts),
    ),
    _analyzer(
        "virtualservice.DestinationHostAnalyzer",
        "Destinations that do not exist",
        ("VirtualService", destinations.check_hosts),
    ),
    _analyzer(
        "virtualservice.DestinationRuleAnalyzer",
        "Subsets that no DestinationRule defines",
        ("VirtualService", destinations.check_subsets),
    ),
    _analyzer(
        "virtualservice.GatewayAnalyzer",
        "Gateways that do not exist or do not serve the hosts",
        ("VirtualService", virtual_services.check_gateways),
    ),
    _analyzer(
        "virtualservice.JWTClaimRouteAnalyzer",
        "Routes by claims that nobody checks",
        ("VirtualService", virtual_services.check_claims),
    ),
    _analyzer(
        "webhook.Analyzer",
        "Injectors that overlap or lead nowhere",
        (MUTATING, webhooks.check_injectors),
    ),
)

ANALYZERS: tuple[Analyzer, ...] = tuple(
    sorted(
        (*_REFERENCE, *(_analyzer(rule.name, rule.description, *rule.checks) for rule in OWN_RULES)),
        key=lambda analyzer: analyzer.name,
    )
)
"""By name."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which analyzers run."""

    executed: tuple[Analyzer, ...]
    skipped: tuple[Analyzer, ...]


def select(db: Engine, names: Sequence[str] = ()) -> Selection:
    """The analyzers of these names; all, if none of them exists. What needs several clusters is skipped for one."""
    wanted = [analyzer for analyzer in ANALYZERS if analyzer.name in names] or list(ANALYZERS)
    several = bool(settings(db).clusters)
    executed = tuple(analyzer for analyzer in wanted if several or not analyzer.is_multi_cluster)
    return Selection(executed=executed, skipped=tuple(each for each in wanted if each not in executed))


def run(db: Engine, analyzers: Iterable[Analyzer]) -> tuple[Finding, ...]:
    """What these analyzers find."""
    return tuple(finding for analyzer in analyzers for finding in _run(db, analyzer))


def _run(db: Engine, analyzer: Analyzer) -> Iterator[Finding]:
    if analyzer.whole is not None:
        yield from _attempt(lambda: analyzer.whole(db), None, analyzer)  # type: ignore[misc]
    for kinds, check in analyzer.checks:
        for kind in kinds:
            for key in objects.keys(db, kind):
                yield from attempt(check, db, key, analyzer)


def attempt(check: Check, db: Engine, key: Key, analyzer: Analyzer) -> tuple[Finding, ...]:
    """What one check finds about an object; that it fails is a finding too."""
    return _attempt(lambda: check(db, key), key, analyzer)


def _attempt(ask: Callable[[], tuple[Finding, ...]], key: Key | None, analyzer: Analyzer) -> tuple[Finding, ...]:
    try:
        return ask()
    except CycleError:
        raise
    except Exception as error:  # a bug of ours must not hide what the other rules find
        detail = f"{analyzer.name}: {type(error).__name__}: {error}"
        return (report(catalogue.INTERNAL_ERROR, key, detail),)
