"""CUSTOM policies: RBAC in shadow marks the requests that an external authorizer must allow.

In: the CUSTOM policies that apply to a workload. Out: filters, for each provider the marking RBAC and the authorizer
behind it. A provider that cannot be asked, or several at one workload, deny what their policies match.
Golden cases: security/authz-custom-http, security/authz-custom-grpc.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from mizzen import protos
from mizzen.api.mesh.providers import (
    EnvoyExternalAuthorizationGrpcProvider,
    EnvoyExternalAuthorizationHttpProvider,
    EnvoyExternalAuthorizationRequestBody,
)
from mizzen.api.scalars import Duration
from mizzen.compile.security import providers, rbac
from mizzen.compile.security.providers import Authorizer, Provider
from mizzen.compile.security.rbac import CompiledPolicy, Rbac
from mizzen.incremental import Engine

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_http_v3 = protos.package("envoy.extensions.filters.http.ext_authz.v3")
_network_v3 = protos.package("envoy.extensions.filters.network.ext_authz.v3")

HTTP_FILTER = "envoy.filters.http.ext_authz"
NETWORK_FILTER = "envoy.filters.network.ext_authz"
_PREFIX = "istio-ext-authz-"
_SHADOW = "istio_ext_authz_"
_REFUSED = "-deny-due-to-bad-CUSTOM-action"
_DEFAULT_TIMEOUT = Duration.of(seconds=600)


def build_http_filters(db: Engine, policies: Iterable[CompiledPolicy]) -> Iterator[bytes]:
    """The encoded HTTP filters of CUSTOM policies."""
    for name, provider, found, of_provider in _by_provider(db, policies):
        if found is None:
            yield rbac.build_http_filter(_refusing(name, of_provider))
        else:
            yield rbac.build_http_filter(_marking(name, of_provider))
            yield _http_authorizer(name, provider, found)


def build_network_filters(db: Engine, policies: Iterable[CompiledPolicy]) -> Iterator[bytes]:
    """The encoded network filters of CUSTOM policies; an authorizer over HTTP cannot be asked about TCP."""
    for name, provider, found, of_provider in _by_provider(db, policies):
        if found is None:
            yield rbac.build_network_filter(_refusing(name, of_provider))
        elif isinstance(provider, EnvoyExternalAuthorizationGrpcProvider):
            yield rbac.build_network_filter(_marking(name, of_provider))
            yield _network_authorizer(name, provider, found)


def _by_provider(
    db: Engine, policies: Iterable[CompiledPolicy]
) -> Iterator[tuple[str, Provider | None, Authorizer | None, list[CompiledPolicy]]]:
    grouped: dict[str, list[CompiledPolicy]] = {}
    for policy in policies:
        grouped.setdefault(policy.provider, []).append(policy)
    for name in sorted(grouped):
        usable = providers.authorizer(db, name) if len(grouped) == 1 else None
        yield name, providers.find_provider(db, name), usable, grouped[name]


def _refusing(name: str, policies: list[CompiledPolicy]) -> Rbac:
    rules = tuple((f"{_PREFIX}{name}-{rule}{_REFUSED}", data) for policy in policies for rule, data in policy.rules)
    return Rbac(action="DENY", enforced=rules)


def _marking(name: str, policies: list[CompiledPolicy]) -> Rbac:
    """A dry run of a CUSTOM policy denies for good: Istio has no shadow of a shadow."""

    def rules(dry_run: bool) -> tuple[tuple[str, bytes], ...] | None:
        chosen = [p for p in policies if p.dry_run is dry_run]
        named = ((f"{_PREFIX}{name}-{rule}", data) for policy in chosen for rule, data in policy.rules)
        return tuple(named) if chosen else None

    return Rbac(action="DENY", enforced=rules(dry_run=True), shadow=rules(dry_run=False), prefix=_SHADOW)


# -- the authorizer ---------------------------------------------------------------------------------------------------


def _enabled_by(name: str, rbac_filter: str) -> dict[str, Any]:
    return {
        "filter": rbac_filter,
        "path": [{"key": f"{_SHADOW}shadow_effective_policy_id"}],
        "value": {"string_match": {"prefix": f"{_PREFIX}{name}"}},
    }


def _grpc_service(provider: EnvoyExternalAuthorizationGrpcProvider, found: Authorizer) -> dict[str, Any]:
    timeout = provider.timeout if provider.timeout is not None else _DEFAULT_TIMEOUT
    return {
        "envoy_grpc": {"cluster_name": found.cluster, "authority": found.host},
        "timeout": timeout.protobuf(),
    }


def _network_authorizer(name: str, provider: EnvoyExternalAuthorizationGrpcProvider, found: Authorizer) -> bytes:
    config = _network_v3.ExtAuthz(
        stat_prefix=rbac.NETWORK_STAT_PREFIX,
        failure_mode_allow=provider.fail_open,
        filter_enabled_metadata=_enabled_by(name, rbac.NETWORK_FILTER),
        grpc_service=_grpc_service(provider, found),
        transport_api_version="V3",
    )
    return protos.encode(_listener_v3.Filter(name=NETWORK_FILTER, typed_config=protos.pack(config)))


def _http_authorizer(name: str, provider: Provider | None, found: Authorizer) -> bytes:
    fields: dict[str, Any] = {
        "filter_enabled_metadata": _enabled_by(name, rbac.HTTP_FILTER),
        "transport_api_version": "V3",
    }
    if found.status_on_error:
        fields["status_on_error"] = {"code": found.status_on_error}
    if provider is not None:
        fields["failure_mode_allow"] = provider.fail_open
        if provider.include_request_body_in_check is not None:
            fields["with_request_body"] = _body(provider.include_request_body_in_check)
    if isinstance(provider, EnvoyExternalAuthorizationGrpcProvider):
        fields["grpc_service"] = _grpc_service(provider, found)
    elif provider is not None:
        fields |= _http_fields(provider, found)
    config = _http_v3.ExtAuthz(**fields)
    return protos.encode(_hcm_v3.HttpFilter(name=HTTP_FILTER, typed_config=protos.pack(config)))


def _body(written: EnvoyExternalAuthorizationRequestBody) -> dict[str, Any]:
    return {
        "max_request_bytes": written.max_request_bytes,
        "allow_partial_message": written.allow_partial_message,
        "pack_as_bytes": written.pack_as_bytes,
    }


def _http_fields(provider: EnvoyExternalAuthorizationHttpProvider, found: Authorizer) -> dict[str, Any]:
    timeout = provider.timeout if provider.timeout is not None else _DEFAULT_TIMEOUT
    service: dict[str, Any] = {
        "path_prefix": provider.path_prefix,
        "server_uri": {"uri": found.uri, "cluster": found.cluster, "timeout": timeout.protobuf()},
    }
    if added := provider.include_additional_headers_in_check:
        headers = [{"key": key, "value": value} for key, value in sorted(added.items())]
        service["authorization_request"] = {"headers_to_add": headers}
    response = {
        "allowed_upstream_headers": provider.headers_to_upstream_on_allow,
        "allowed_client_headers": provider.headers_to_downstream_on_deny,
        "allowed_client_headers_on_success": provider.headers_to_downstream_on_allow,
    }
    if any(response.values()):
        service["authorization_response"] = {name: _headers(values) for name, values in response.items() if values}
    fields: dict[str, Any] = {"http_service": service}
    if sent := provider.include_request_headers_in_check or provider.include_headers_in_check:
        fields["allowed_headers"] = _headers(sent)
    return fields


def _headers(names: Iterable[str]) -> dict[str, Any]:
    return {"patterns": [_header(name) for name in names]}


def _header(name: str) -> dict[str, Any]:
    if name.startswith("*"):
        return {"suffix": name[1:], "ignore_case": True}
    if name.endswith("*"):
        return {"prefix": name[:-1], "ignore_case": True}
    return {"exact": name, "ignore_case": True}
