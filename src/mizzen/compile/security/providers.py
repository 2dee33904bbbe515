"""External authorizers of the mesh config: which of them can be used, and under which cluster.

In: a provider's name. Out: `Authorizer`, or None for one that is missing, of another kind, or wrongly configured, so
that whoever asked for it denies instead. Golden cases: security/authz-custom-http, security/authz-custom-grpc.
"""

from http import HTTPStatus

import msgspec

from mizzen.api.mesh.providers import (
    EnvoyExternalAuthorizationGrpcProvider,
    EnvoyExternalAuthorizationHttpProvider,
)
from mizzen.compile.filters import formats
from mizzen.incremental import Engine, query
from mizzen.model import providers
from mizzen.model.patterns import UNSPEAKABLE

Provider = EnvoyExternalAuthorizationHttpProvider | EnvoyExternalAuthorizationGrpcProvider
_MAX_PORT = 65535


class Authorizer(msgspec.Struct, frozen=True, kw_only=True):
    """A provider whose service is known."""

    host: str
    cluster: str
    status_on_error: int = 0
    """0 means Envoy's default."""

    @property
    def uri(self) -> str:
        """Where an authorizer over HTTP is called."""
        return f"http://{self.host}"


def find_provider(db: Engine, name: str) -> Provider | None:
    """The external authorizer of that name in the mesh config."""
    found = providers.provider(db, name)
    return (found.envoy_ext_authz_http or found.envoy_ext_authz_grpc) if found is not None else None


@query
def authorizer(db: Engine, name: str) -> Authorizer | None:
    """The authorizer of that name, if it can be asked."""
    provider = find_provider(db, name)
    if provider is None or not 0 < provider.port <= _MAX_PORT:
        return None
    host = providers.service_host(db, provider.service)
    status = _status(provider.status_on_error)
    if host is None or status is None or not _is_askable(provider):
        return None
    cluster = providers.cluster_name(host, provider.port)
    return Authorizer(host=host, cluster=cluster, status_on_error=status)


def _status(text: str) -> int | None:
    """The status as a number; None for one that HTTP does not know."""
    if not text:
        return 0
    known = {str(status.value) for status in HTTPStatus}
    return int(text) if text in known else None


def _is_askable(provider: Provider) -> bool:
    """Whether Envoy takes what is to be asked; it refuses the whole listener for what it does not take."""
    body = provider.include_request_body_in_check
    if body is not None and not body.max_request_bytes:
        return False
    if isinstance(provider, EnvoyExternalAuthorizationGrpcProvider):
        return True
    if provider.path_prefix and not provider.path_prefix.startswith("/"):
        return False
    if not all(_is_addable(name, value) for name, value in provider.include_additional_headers_in_check.items()):
        return False
    headers = (
        *provider.include_request_headers_in_check,
        *provider.include_headers_in_check,
        *provider.headers_to_upstream_on_allow,
        *provider.headers_to_downstream_on_allow,
        *provider.headers_to_downstream_on_deny,
    )
    return "*" not in headers


def _is_addable(name: str, value: str) -> bool:
    """Whether Envoy adds that header to what it asks with."""
    changeable = name != "" and not name.startswith(":") and name.lower() != "host"
    return changeable and UNSPEAKABLE.search(name + value) is None and formats.is_readable(value)
