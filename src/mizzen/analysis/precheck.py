"""Precheck: rules that only an upgrade or an installation asks for.

In: `settings.Facts` of a live cluster, CustomResourceDefinitions, Services. Out: IST0136, IST0141, IST0142, IST0143,
IST0156, IST0168, IST0169, IST0172. `analyze` runs none of these.
"""

from collections.abc import Iterator

from mizzen.analysis import catalogue, objects
from mizzen.analysis import settings as analysis_settings
from mizzen.analysis.cluster import CustomResourceDefinition
from mizzen.analysis.findings import Finding, Message, report
from mizzen.analysis.rules import annotations
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.workloads import freeze, selects

CLUSTER = Key("Cluster", "", "")
_LOWEST_KUBERNETES = (1, 32)
_TRACER = "meshConfig.defaultConfig.tracer"
_TRACER_CHANGED = (1, 22)
_V1BETA1_KINDS = ("gateways", "gatewayclasses", "httproutes", "referencegrants")
_V1_KINDS = ("gateways", "gatewayclasses", "httproutes", "grpcroutes")
_ANNOTATED = ("Namespace", "Service", "Pod", "Deployment")
_GROUP = "gateway.networking.k8s.io"
_LOCAL = ("127.", "[::1]", "localhost")


def check_all(db: Engine) -> tuple[Finding, ...]:
    """Everything that speaks against an installation or an upgrade."""
    alpha = (
        finding for kind in _ANNOTATED for key in objects.keys(db, kind) for finding in annotations.check_alpha(db, key)
    )
    return (*check_cluster(db), *check_definitions(db), *check_upgrade(db), *check_listeners(db), *alpha)


@query
def check_cluster(db: Engine) -> tuple[Finding, ...]:
    """A server that is too old, and kinds that may not be created."""
    facts = analysis_settings.facts(db)
    findings = []
    version = parse_version(facts.kubernetes_version)
    if version is not None and version < _LOWEST_KUBERNETES:
        lowest = ".".join(map(str, _LOWEST_KUBERNETES))
        findings.append(report(catalogue.UNSUPPORTED_KUBERNETES_VERSION, CLUSTER, facts.kubernetes_version, lowest))
    for kind, reason in sorted(facts.forbidden.items()):
        findings.append(report(catalogue.INSUFFICIENT_PERMISSIONS, CLUSTER, kind, reason))
    return tuple(findings)


def parse_version(text: str) -> tuple[int, int] | None:
    """Major and minor version; None where the text is no version."""
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0].rstrip("+")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


@query
def check_definitions(db: Engine) -> tuple[Finding, ...]:
    """CRDs of the Gateway API without the versions that Istio reads."""
    return tuple(
        finding
        for key in objects.keys(db, "CustomResourceDefinition")
        for finding in _check_definition(key, db.input(key))
    )


def _check_definition(key: Key, found: CustomResourceDefinition) -> Iterator[Finding]:
    served = {version.name for version in found.spec.versions if version.served}
    checks: tuple[tuple[tuple[str, ...], str, Message], ...] = (
        (_V1BETA1_KINDS, "v1beta1", catalogue.UNSUPPORTED_GATEWAY_API_VERSION),
        (_V1_KINDS, "v1", catalogue.FUTURE_UNSUPPORTED_GATEWAY_API_VERSION),
    )
    for plurals, wanted, message in checks:
        if key.name.removesuffix(f".{_GROUP}") in plurals and served and wanted not in served:
            yield report(message, key, ", ".join(sorted(served)), wanted)


@query
def check_upgrade(db: Engine) -> tuple[Finding, ...]:
    """Defaults that have changed since the release that is to be upgraded."""
    facts = analysis_settings.facts(db)
    version = parse_version(facts.from_version)
    if version is None or version >= _TRACER_CHANGED:
        return ()
    istio = analysis_settings.settings(db).istio_namespace
    release, old = ".".join(map(str, _TRACER_CHANGED)), f"{version[0]}.{version[1]}"
    if not objects.exists(db, "Service"):
        info = f"a Service zipkin of {istio} would no longer get traces"
        return (report(catalogue.UNKNOWN_UPGRADE_COMPATIBILITY, CLUSTER, _TRACER, release, info, old),)
    if db.input(Key("Service", istio, "zipkin")) is None:
        return ()
    info = f"traces are no longer sent to 'zipkin.{istio}.svc' by default"
    return (report(catalogue.UPDATE_INCOMPATIBILITY, CLUSTER, _TRACER, release, info, old),)


@query
def check_listeners(db: Engine) -> tuple[Finding, ...]:
    """Ports of Services whose applications listen on the pod's loopback address only."""
    listening = analysis_settings.facts(db).listening
    findings = []
    for name, addresses in sorted(listening.items()):
        pod = Key("Pod", *name.split("/", 1))
        open_ports = {port for host, port in map(_split, addresses) if not host.startswith(_LOCAL)}
        local = {port for host, port in map(_split, addresses) if host.startswith(_LOCAL)} - open_ports
        for port in sorted(local & _service_ports(db, pod)):
            findings.append(report(catalogue.LOCALHOST_LISTENER, pod, port))
    return tuple(findings)


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _service_ports(db: Engine, pod: Key) -> set[int]:
    labels = freeze(objects.pod_labels(db, pod))
    ports: set[int] = set()
    for key in objects.keys_in(db, "Service", pod.namespace):
        service: Service = db.input(key)
        if service.spec.selector and selects(freeze(service.spec.selector), labels):
            targets = (port.target_port or port.port for port in service.spec.ports)
            ports |= {target for target in targets if isinstance(target, int)}
    return ports
