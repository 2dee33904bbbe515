"""Where a request arrives: a workload, and what of the mesh matters for the policies that apply to it.

Which policies those are is decided here as well: those of the root namespace and of the workload's own that select its
labels, and by target references those that name the Gateway that the workload stands for.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from mizzen.api.policy import AuthorizationPolicy
from mizzen.diagnose.authorization.paths import Normalization
from mizzen.model import names

ProviderKind = Literal["http", "grpc"]
Target = tuple[str, str, str]


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload as policies see it."""

    namespace: str
    labels: Mapping[str, str] = {}
    targets: frozenset[Target] = frozenset()
    """What a managed gateway stands for: group, kind and name (as a label has it) of objects of its own namespace."""
    root_namespace: str = "istio-system"
    trust_domains: tuple[str, ...] = ("cluster.local",)
    """The mesh's own trust domain, then its aliases."""
    normalization: Normalization = Normalization()
    providers: Mapping[str, ProviderKind] = {}
    """The external authorizers that can be asked; one that is missing here, or that is wrongly configured, denies."""
    is_edge: bool = False
    """Whether it is a gateway, which believes the connection's address before it believes `x-forwarded-for`."""
    trusted_hops: int = 0
    """Of a gateway, how many proxies in front of it are trusted (`numTrustedProxies`)."""
    space_delimited_claims: frozenset[str] = frozenset({"permission", "scope"})
    """Claims of tokens whose text Envoy reads as a list."""

    def is_selected_by(self, policy: AuthorizationPolicy) -> bool:
        """Whether the policy applies here."""
        spec, namespace = policy.spec, policy.metadata.namespace
        if namespace not in (self.root_namespace, self.namespace):
            return False
        references = spec.target_refs or ((spec.target_ref,) if spec.target_ref is not None else ())
        if references:
            own = namespace == self.namespace
            return own and any((r.group, r.kind, names.label_value(r.name)) in self.targets for r in references)
        wanted = spec.selector.match_labels if spec.selector is not None else {}
        return all(self.labels.get(name) == value for name, value in wanted.items())
