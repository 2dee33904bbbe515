"""What is enforced in place of a policy that cannot be read and has no earlier version: security fails closed.

An AuthorizationPolicy denies all that it selects, a PeerAuthentication demands mutual TLS there, and a
RequestAuthentication accepts no token. If what it selects is itself unreadable, it selects its whole namespace; then a
PeerAuthentication counts as the oldest of that namespace, since the oldest of a scope is the one that counts.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from mizzen.api.decode import Decoded
from mizzen.api.meta import ObjectMeta
from mizzen.api.policy import (
    AuthorizationPolicy,
    AuthorizationPolicySpec,
    JWTRule,
    MutualTLS,
    PeerAuthentication,
    PeerAuthenticationSpec,
    RequestAuthentication,
    RequestAuthenticationSpec,
    Rule,
)

ClosedKind = Literal["AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"]
Closed = AuthorizationPolicy | PeerAuthentication | RequestAuthentication


class Effect(NamedTuple):
    """What a closed policy does, as a Problem says it."""

    code: str
    message: str


EFFECTS: Mapping[ClosedKind, Effect] = {
    "AuthorizationPolicy": Effect("denies-all", "everything that it selects is denied"),
    "PeerAuthentication": Effect("requires-mtls", "everything that it selects takes mutual TLS alone"),
    "RequestAuthentication": Effect("refuses-tokens", "what it selects takes no token that it might have been for"),
}
"""The kinds that fail closed."""

_SELECTING = ("spec.selector", "spec.targetRef", "spec.target_ref")
_OLDEST = datetime(1, 1, 1, tzinfo=UTC)
_NO_TOKEN = JWTRule(issuer="urn:mizzen:unreadable", jwks='{"keys": []}')
"""A rule that no token satisfies: nobody has a key of that issuer."""


def effect_of(closed: Closed) -> Effect:
    """What an object that stands for another one does."""
    return next(effect for kind, effect in EFFECTS.items() if kind == type(closed).__name__)


def closed_policy(decoded: Decoded) -> Closed | None:
    """What stands for an object that does not decode; None for other kinds and outcomes."""
    broken = decoded.remains
    if decoded.outcome != "failed" or not isinstance(broken, Closed):
        return None
    lost = any(problem.path == "spec" or problem.path.startswith(_SELECTING) for problem in decoded.problems)
    return _close(broken, whole_namespace=lost)


def closed_namespace(kind: ClosedKind, name: str, namespace: str) -> Closed:
    """What stands for an object of which nothing else is known."""
    metadata = ObjectMeta(name=name, namespace=namespace)
    empty: Mapping[ClosedKind, Closed] = {
        "AuthorizationPolicy": AuthorizationPolicy(metadata=metadata),
        "PeerAuthentication": PeerAuthentication(metadata=metadata),
        "RequestAuthentication": RequestAuthentication(metadata=metadata),
    }
    return _close(empty[kind], whole_namespace=True)


def _close(broken: Closed, *, whole_namespace: bool) -> Closed:
    metadata = broken.metadata
    match broken:
        case AuthorizationPolicy():
            base = AuthorizationPolicySpec() if whole_namespace else broken.spec
            return AuthorizationPolicy(
                metadata=metadata,
                spec=msgspec.structs.replace(base, action="DENY", rules=(Rule(),), provider=None),
            )
        case PeerAuthentication():
            selector = None if whole_namespace else broken.spec.selector
            if whole_namespace:
                metadata = msgspec.structs.replace(metadata, creation_timestamp=_OLDEST)
            return PeerAuthentication(
                metadata=metadata, spec=PeerAuthenticationSpec(selector=selector, mtls=MutualTLS(mode="STRICT"))
            )
        case RequestAuthentication():
            selecting = RequestAuthenticationSpec() if whole_namespace else broken.spec
            return RequestAuthentication(
                metadata=metadata, spec=msgspec.structs.replace(selecting, jwt_rules=(_NO_TOKEN,))
            )
