"""RBAC filters of Envoy: named policies that are enforced, and others that only leave their verdict in metadata.

In: `Rbac`, policies by name as encoded rules. Out: encoded HTTP and network filters.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.policy import Action

_rbac_v3 = protos.package("envoy.config.rbac.v3")
_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_http_v3 = protos.package("envoy.extensions.filters.http.rbac.v3")
_network_v3 = protos.package("envoy.extensions.filters.network.rbac.v3")

HTTP_FILTER = "envoy.filters.http.rbac"
NETWORK_FILTER = "envoy.filters.network.rbac"
NETWORK_STAT_PREFIX = "tcp."

NamedRules = tuple[tuple[str, bytes], ...]


class CompiledPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One AuthorizationPolicy: its rules as encoded RBAC policies, by name."""

    action: Action
    provider: str = ""
    """Of a CUSTOM policy."""
    dry_run: bool = False
    rules: NamedRules = ()


class Rbac(msgspec.Struct, frozen=True, kw_only=True):
    """One RBAC filter; None where it has no enforced (or shadow) rules, which differs from an empty list of them."""

    action: str
    """Envoy's word: ALLOW, DENY or LOG."""
    enforced: NamedRules | None = None
    shadow: NamedRules | None = None
    prefix: str = ""
    """Of the keys under which the shadow leaves its verdict."""


def build_http_filter(rbac: Rbac) -> bytes:
    """The encoded HTTP filter."""
    config = _http_v3.RBAC(**_fields(rbac))
    return protos.encode(_hcm_v3.HttpFilter(name=HTTP_FILTER, typed_config=protos.pack(config)))


def build_network_filter(rbac: Rbac) -> bytes:
    """The encoded network filter."""
    config = _network_v3.RBAC(stat_prefix=NETWORK_STAT_PREFIX, **_fields(rbac))
    return protos.encode(_listener_v3.Filter(name=NETWORK_FILTER, typed_config=protos.pack(config)))


def _fields(rbac: Rbac) -> dict[str, Any]:
    fields: dict[str, Any] = {"shadow_rules_stat_prefix": rbac.prefix}
    for name, entries in (("rules", rbac.enforced), ("shadow_rules", rbac.shadow)):
        if entries is not None:
            message = _rbac_v3.RBAC(action=rbac.action)
            for policy_name, data in entries:
                message.policies[policy_name].MergeFromString(data)
            fields[name] = message
    return fields
