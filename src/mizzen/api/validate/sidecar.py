"""Sidecar: what a workload listens for, and whom it may call."""

from mizzen.api.networking.gateway import Port
from mizzen.api.networking.sidecar import (
    IstioEgressListener,
    IstioIngressListener,
    Sidecar,
    SidecarOutboundTrafficPolicy,
)
from mizzen.api.validate.destination_rule.policies import check_connection_pool
from mizzen.api.validate.faults import Faults, at, error, quote, warning
from mizzen.api.validate.hosts_in_namespaces import check_sidecar_host
from mizzen.api.validate.server_tls import check_server_tls
from mizzen.api.validate.values.addresses import UNIX, check_bind, ip_fault, port_fault, unix_fault
from mizzen.api.validate.values.names import (
    HTTP_PROTOCOLS,
    TLS_PROTOCOLS,
    fqdn_fault,
    port_name_fault,
    protocol_fault,
    protocol_of,
)
from mizzen.api.validate.values.selectors import check_workload_selector
from mizzen.api.validate.virtual_service.destinations import check_destination

_LOCAL = ("", "127.0.0.1", "0.0.0.0", "::1", "::")
_ENDPOINT_FORMS = "127.0.0.1:<port>,0.0.0.0:<port>,[::1]:port,[::]:port,unix://filepath or unset"
_PORT_TAKEN = "sidecar: ports on IP bound listeners must be unique"


def check_sidecar(sidecar: Sidecar, path: str) -> Faults:
    """All rules of a Sidecar."""
    spec = sidecar.spec
    yield from check_workload_selector(spec.workload_selector, f"{path}.workloadSelector", "sidecar")
    configured = spec.outbound_traffic_policy is not None or spec.inbound_connection_pool is not None
    if not (spec.ingress or spec.egress or configured):
        yield error(path, "sidecar: empty configuration provided")
    yield from _check_ingress(spec.ingress, f"{path}.ingress")
    yield from _check_egress(spec.egress, sidecar.metadata.namespace, f"{path}.egress")
    if spec.inbound_connection_pool is not None:
        yield from check_connection_pool(spec.inbound_connection_pool, f"{path}.inboundConnectionPool")
    if spec.outbound_traffic_policy is not None:
        yield from _check_outbound_policy(spec.outbound_traffic_policy, f"{path}.outboundTrafficPolicy")


def _check_ingress(listeners: tuple[IstioIngressListener, ...], path: str) -> Faults:
    taken: set[int] = set()
    for index, listener in enumerate(listeners):
        here, port = f"{path}[{index}]", listener.port
        if port is None:
            yield error(f"{here}.port", "sidecar: port is required for ingress listeners")
            continue
        if port.target_port:
            yield error(f"{here}.port.targetPort", "targetPort has no impact on Sidecars")
        yield from _check_port(port, f"{here}.port")
        yield from at(f"{here}.bind", ip_fault(listener.bind) if listener.bind else None)
        if port.number in taken:
            yield error(f"{here}.port.number", _PORT_TAKEN)
        taken.add(port.number)
        yield from at(f"{here}.defaultEndpoint", _endpoint_fault(listener.default_endpoint))
        yield from _check_ingress_tls(listener, port, f"{here}.tls")
        yield from _check_ingress_pool(listener, port, f"{here}.connectionPool")


def _check_port(port: Port, path: str) -> Faults:
    yield from at(f"{path}.name", port_name_fault(port.name) if port.name else None)
    yield from at(f"{path}.protocol", protocol_fault(port.protocol))
    yield from at(f"{path}.number", port_fault(port.number))


def _endpoint_fault(endpoint: str) -> str | None:
    """What is wrong with where traffic goes behind the proxy: a port of the workload itself, or a socket."""
    if not endpoint:
        return None
    if endpoint.startswith(UNIX):
        return unix_fault(endpoint.removeprefix(UNIX))
    host, colon, port = endpoint.rpartition(":")
    if not colon or host.removeprefix("[").removesuffix("]") not in _LOCAL or (":" in host) != host.startswith("["):
        return f"sidecar: defaultEndpoint must be of form {_ENDPOINT_FORMS}"
    if not (port.isascii() and port.isdigit()):
        return f"sidecar: defaultEndpoint port ({port}) is not a number: invalid syntax"
    return port_fault(int(port[:10]))


def _check_ingress_tls(listener: IstioIngressListener, port: Port, path: str) -> Faults:
    tls = listener.tls
    if tls is None:
        return
    unsupported = (
        ("subjectAltNames", "subjectAltNames is not supported in ingress tls", tls.subject_alt_names),
        ("httpsRedirect", "httpsRedirect is not supported", tls.https_redirect),
        ("credentialName", "credentialName is not currently supported", tls.credential_name),
        ("credentialNames", "credentialNames is not currently supported", tls.credential_names),
        ("tlsCertificates", "tls_certificates is not currently supported", tls.tls_certificates),
    )
    for field, words, value in unsupported:
        if value:
            yield error(f"{path}.{field}", f"sidecar: {words}")
    if tls.mode in ("ISTIO_MUTUAL", "AUTO_PASSTHROUGH"):
        message = f"configuration is invalid: cannot set mode to {tls.mode} in sidecar ingress tls"
        yield error(f"{path}.mode", message)
    if protocol_of(port.protocol) not in TLS_PROTOCOLS:
        yield error(path, "server cannot have TLS settings for non HTTPS/TLS ports")
    yield from check_server_tls(tls, path)


def _check_ingress_pool(listener: IstioIngressListener, port: Port, path: str) -> Faults:
    pool = listener.connection_pool
    if pool is None:
        return
    yield from check_connection_pool(pool, path)
    if pool.http is not None and protocol_of(port.protocol) not in HTTP_PROTOCOLS:
        named = f"port {port.number} ({quote(port.name)})"
        effect = f"its protocol is not HTTP ({port.protocol}); only TCP settings will apply"
        message = f"sidecar: HTTP connection pool settings are configured for {named} but {effect}"
        yield warning(f"{path}.http", message)


def _check_egress(listeners: tuple[IstioEgressListener, ...], namespace: str, path: str) -> Faults:
    ports: set[int] = set()
    sockets: set[str] = set()
    for index, listener in enumerate(listeners):
        here = f"{path}[{index}]"
        if listener.port is None:
            if index < len(listeners) - 1:
                what = "the egress listener with empty port should be the last listener in the list"
                yield error(f"{here}.port", f"sidecar: {what}")
        else:
            yield from _check_egress_port(listener, listener.port, here)
            if listener.port.number == 0:
                if listener.bind in sockets:
                    yield error(f"{here}.bind", "sidecar: unix domain socket values for listeners must be unique")
                sockets.add(listener.bind)
            else:
                yield from at(f"{here}.port.number", _PORT_TAKEN if listener.port.number in ports else None)
                ports.add(listener.port.number)
        yield from _check_egress_hosts(listener, namespace, f"{here}.hosts")
    if sum(listener.port is None for listener in listeners) > 1:
        yield error(path, "sidecar: egress can have only one listener with empty port")


def _check_egress_port(listener: IstioEgressListener, port: Port, path: str) -> Faults:
    if port.number:
        yield from _check_port(port, f"{path}.port")
        yield from at(f"{path}.bind", ip_fault(listener.bind) if listener.bind else None)
        return
    yield from at(f"{path}.port.name", port_name_fault(port.name) if port.name else None)
    yield from at(f"{path}.port.protocol", protocol_fault(port.protocol))
    if listener.bind.startswith(UNIX):
        yield from check_bind(listener.bind, f"{path}.bind")
    else:
        message = "sidecar: ports with 0 value must have a unix domain socket bind address"
        yield error(f"{path}.bind", message)
    if listener.capture_mode == "IPTABLES":
        message = "sidecar: captureMode must be DEFAULT/NONE for unix domain socket listeners"
        yield error(f"{path}.captureMode", message)


def _check_egress_hosts(listener: IstioEgressListener, namespace: str, path: str) -> Faults:
    if not listener.hosts:
        yield error(path, "sidecar: egress listener must contain at least one host")
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(listener.hosts):
        here = f"{path}[{index}]"
        where, _, host = entry.partition("/")
        named = (namespace if where == "." else where, host)
        if named in seen:
            yield warning(here, f"duplicated egress host: {entry}")
        seen.add(named)
        if entry == "*/*" and len(listener.hosts) > 1:
            yield warning(here, "`*/*` host select all resources, no other hosts can be added")
        yield from check_sidecar_host(entry, here)


def _check_outbound_policy(policy: SidecarOutboundTrafficPolicy, path: str) -> Faults:
    proxy, here = policy.egress_proxy, f"{path}.egressProxy"
    if proxy is None:
        return
    if policy.mode != "ALLOW_ANY":
        message = "sidecar: egress_proxy must be set only with ALLOW_ANY outbound_traffic_policy mode"
        yield error(here, message)
    yield from at(f"{here}.host", fqdn_fault(proxy.host))
    if proxy.port is None:
        yield error(f"{here}.port", "sidecar: egress_proxy port must be non-nil")
    elif fqdn_fault(proxy.host) is None:
        yield from check_destination(proxy, here)
