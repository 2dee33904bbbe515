"""Extension providers: their names, and the services that they are."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import fields

from mizzen.api.mesh.providers import EnvoyExternalAuthorizationHttpProvider, ExtensionProvider
from mizzen.api.validate.faults import Fault, Faults, at, error, warning
from mizzen.api.validate.values.addresses import port_fault
from mizzen.api.validate.values.names import is_label, wildcard_fault

_INVALID = "found invalid extension provider (can be ignored if the given extension provider is not used)"
_NO_SERVICE = ("stackdriver", "prometheus", "envoy_file_access_log")


def check_providers(providers: Sequence[ExtensionProvider], path: str) -> Faults:
    """Providers by their names; all that is wrong with them is a warning."""
    known: set[str] = set()
    for index, provider in enumerate(providers):
        here = f"{path}[{index}]"
        if provider.name in known:
            yield _invalid(error(f"{here}.name", f"duplicate extension provider name {provider.name}"))
        known.add(provider.name)
        for fault in _check_provider(provider, here):
            yield _invalid(fault)


def _invalid(fault: Fault) -> Fault:
    return warning(fault.path, f"{_INVALID}: {fault.message}")


def _check_provider(provider: ExtensionProvider, path: str) -> Faults:
    if not provider.name:
        yield error(f"{path}.name", "empty extension provider name")
    kinds = [info for info in fields(provider) if info.name != "name" and getattr(provider, info.name) is not None]
    if not kinds:
        yield error(path, f"unset provider {provider.name}")
    for info in kinds:
        kind, here = getattr(provider, info.name), f"{path}.{info.encode_name}"
        if info.name not in _NO_SERVICE:
            yield from _check_service(kind, here)
        if isinstance(kind, EnvoyExternalAuthorizationHttpProvider):
            yield from _check_authorizer(kind, here)


def _check_service(kind: Any, path: str) -> Faults:
    yield from at(f"{path}.port", port_fault(kind.port))
    namespace, slash, host = kind.service.rpartition("/")
    if slash and not is_label(namespace):
        yield error(f"{path}.service", f"invalid namespace {namespace!r} in service {kind.service}")
    yield from at(f"{path}.service", wildcard_fault(host))


def _check_authorizer(kind: EnvoyExternalAuthorizationHttpProvider, path: str) -> Faults:
    if kind.path_prefix and not kind.path_prefix.startswith("/"):
        yield error(f"{path}.pathPrefix", "pathPrefix should begin with `/`")
    status = kind.status_on_error
    if status and not (status.isascii() and status.isdigit() and 100 <= int(status[:4]) <= 599):
        yield error(f"{path}.statusOnError", f"invalid statusOnError value {status}")
