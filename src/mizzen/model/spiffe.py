"""SPIFFE ids of workloads: `spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT`, read and written.

Pure text. Whether somebody has such an identity is decided by `ca`, whether it fits a proxy by `xds`, under which trust
domains it is accepted by `identities`.
"""

from typing import NamedTuple

SCHEME = "spiffe://"


class Identity(NamedTuple):
    """A workload's identity: the service account it runs under."""

    trust_domain: str
    namespace: str
    service_account: str

    def __str__(self) -> str:
        return format_spiffe(self)


def parse_spiffe(uri: str) -> Identity | None:
    """The identity that `spiffe://TD/ns/NS/sa/SA` names; None for everything that does not have exactly this form."""
    if not uri.startswith(SCHEME):
        return None
    parts = uri.removeprefix(SCHEME).split("/")
    if len(parts) != 5 or parts[1] != "ns" or parts[3] != "sa":
        return None
    identity = Identity(parts[0], parts[2], parts[4])
    return identity if all(identity) else None


def format_spiffe(identity: Identity) -> str:
    """The identity as a URI; `@` in a trust domain becomes `.`, as in Istio."""
    trust_domain = identity.trust_domain.replace("@", ".")
    return f"{SCHEME}{trust_domain}/ns/{identity.namespace}/sa/{identity.service_account}"
