"""Gateway: its servers, their ports, hosts and TLS."""

from mizzen.api.networking.gateway import Gateway, Port, Server
from mizzen.api.validate.faults import Fault, Faults, at, error, quote, warning
from mizzen.api.validate.hosts_in_namespaces import check_gateway_host
from mizzen.api.validate.server_tls import check_server_tls
from mizzen.api.validate.values.addresses import UNIX, check_bind, port_fault
from mizzen.api.validate.values.names import HTTP_PROTOCOLS, TLS_PROTOCOLS, is_label, protocol_of

_SUPPORTED = "HTTP, HTTP2, GRPC, GRPC-WEB, MONGO, REDIS, MYSQL, TCP"


def check_gateway(gateway: Gateway, path: str) -> Faults:
    """All rules of a Gateway."""
    if not is_label(gateway.metadata.name):
        yield error("metadata.name", f"invalid gateway name: {quote(gateway.metadata.name)}")
    servers = gateway.spec.servers
    if not servers:
        yield error(f"{path}.servers", "gateway must have at least one server")
    names: set[str] = set()
    for index, server in enumerate(servers):
        here = f"{path}.servers[{index}]"
        yield from _check_server(server, here)
        if server.port is None:
            continue
        if server.port.name in names:
            message = f"port names in servers must be unique: duplicate name {server.port.name}"
            yield error(f"{here}.port.name", message)
        names.add(server.port.name)
        redirects = server.tls is not None and server.tls.https_redirect
        if redirects and protocol_of(server.port.protocol) not in HTTP_PROTOCOLS:
            yield warning(f"{here}.tls.httpsRedirect", "tls.httpsRedirect should only be used with http servers")


def _check_server(server: Server, path: str) -> Faults:
    if not server.hosts:
        yield error(f"{path}.hosts", "server config must contain at least one host")
    for index, host in enumerate(server.hosts):
        yield from check_gateway_host(host, f"{path}.hosts[{index}]")
    port_faults = list(_check_port(server.port, server.bind, f"{path}.port"))
    yield from port_faults
    if server.bind.startswith(UNIX) and server.port is not None and server.port.number:
        message = f"port number must be 0 for unix domain socket: {port_text(server.port)}"
        yield error(f"{path}.port.number", message)
    yield from check_bind(server.bind, f"{path}.bind")
    if server.tls is not None:
        yield from check_server_tls(server.tls, f"{path}.tls")
    if server.port is not None and not port_faults:
        yield from _check_protocol_and_tls(server, protocol_of(server.port.protocol), path)


def _check_port(port: Port | None, bind: str, path: str) -> Faults:
    if port is None:
        yield error(path, "port is required")
        return
    if not protocol_of(port.protocol):
        message = f"invalid protocol {quote(port.protocol)}, supported protocols are {_SUPPORTED}"
        yield error(f"{path}.protocol", message)
    if port.number or not bind.startswith(UNIX):
        yield from at(f"{path}.number", port_fault(port.number))
    if port.target_port:
        yield error(f"{path}.targetPort", "targetPort has no impact on Gateways")
    if not port.name:
        yield error(f"{path}.name", f"port name must be set: {port_text(port)}")


def port_text(port: Port) -> str:
    """A port as the reference prints it, fields left out that are not set."""
    parts = (
        f"number:{port.number}" if port.number else "",
        f"protocol:{quote(port.protocol)}" if port.protocol else "",
        f"name:{quote(port.name)}" if port.name else "",
        f"target_port:{port.target_port}" if port.target_port else "",
    )
    return " ".join(filter(None, parts))


def _check_protocol_and_tls(server: Server, protocol: str, path: str) -> Faults:
    """TLS where the protocol asks for it, and nowhere else; a redirect to HTTPS alone may stand beside plain HTTP."""
    fault: Fault | None = None
    tls = server.tls
    if protocol in TLS_PROTOCOLS:
        if tls is None:
            fault = error(f"{path}.tls", "server must have TLS settings for HTTPS/TLS protocols")
    elif tls is not None:
        if protocol not in HTTP_PROTOCOLS:
            fault = error(f"{path}.tls", "server cannot have TLS settings for non HTTPS/TLS ports")
        elif tls.mode not in ("PASSTHROUGH", "AUTO_PASSTHROUGH") or (
            tls.ca_certificates or tls.private_key or tls.server_certificate
        ):
            fault = error(f"{path}.tls", "server cannot have TLS settings for plain text HTTP ports")
    if fault is not None:
        yield fault
