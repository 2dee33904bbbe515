"""Hosts as gateways and Sidecars name them: `namespace/host`."""

from mizzen.api.validate.faults import Faults, at, error, quote
from mizzen.api.validate.values.addresses import is_ip
from mizzen.api.validate.values.names import is_label, partial_wildcard_fault, wildcard_fault


def check_gateway_host(entry: str, path: str) -> Faults:
    """A host at a gateway; the namespace may be left out, and the host may be an IP address."""
    namespace, slash, host = entry.partition("/")
    if not slash:
        yield from _check_name(entry, path, may_be_ip=True)
        return
    yield from _check_both(namespace, host, path)
    if namespace and host:
        if namespace not in ("*", ".") and not is_label(namespace):
            yield error(path, f"invalid namespace value {quote(namespace)} in gateway")
        yield from _check_name(host, path, may_be_ip=True)


def check_sidecar_host(entry: str, path: str) -> Faults:
    """A host that a Sidecar lets through; `~` in place of a namespace means none."""
    namespace, slash, host = entry.partition("/")
    if not slash:
        yield error(path, "host must be of form namespace/dnsName")
        return
    yield from _check_both(namespace, host, path)
    if namespace and host:
        if namespace not in ("*", ".", "~") and not is_label(namespace.removeprefix("~")):
            yield error(path, f"invalid namespace value {quote(namespace)} in sidecar")
        yield from _check_name(host, path, may_be_ip=False)


def _check_both(namespace: str, host: str, path: str) -> Faults:
    if not namespace or not host:
        yield error(path, "config namespace and dnsName in host entry cannot be empty")


def _check_name(host: str, path: str, *, may_be_ip: bool) -> Faults:
    if host != "*" and "." not in host:
        yield error(path, "short names (non FQDN) are not allowed")
    yield from at(path, None if may_be_ip and is_ip(host) else wildcard_fault(host))
    yield from at(path, partial_wildcard_fault(host))
