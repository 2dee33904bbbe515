"""Principals rewritten for every trust domain of the mesh, so that a policy outlives a change of the domain.

In: principals or trust domains as written, and the mesh's trust domains (its own, then the aliases in order). Out: the
values to match. Golden case: security/authz-trust-domains.
"""

from collections.abc import Iterable

_IDENTITY_PARTS = 5
_LOCAL = "cluster.local"


def _covers(pattern: str, domain: str) -> bool:
    if pattern.startswith("*"):
        return domain.endswith(pattern[1:])
    return domain.startswith(pattern[:-1]) if pattern.endswith("*") else domain == pattern


def expand_principals(values: Iterable[str], domains: tuple[str, ...]) -> tuple[str, ...]:
    """Each principal of a trust domain that the mesh knows (or of `cluster.local`) once for each of its domains.

    A leading star that covers a domain stays as written in that domain's place. Principals without a trust domain,
    or with one that is `*` or unknown, stay.
    """
    found: list[str] = []
    for value in values:
        domain, _, rest = value.partition("/")
        known = domain == _LOCAL or any(_covers(domain, d) for d in domains)
        if value.count("/") != _IDENTITY_PARTS - 1 or domain == "*" or not known:
            found.append(value)
            continue
        kept = (value if domain.startswith("*") and _covers(domain, d) else f"{d}/{rest}" for d in domains)
        found.extend(dict.fromkeys(kept))
    return tuple(found)


def expand_trust_domains(values: Iterable[str], domains: tuple[str, ...]) -> tuple[str, ...]:
    """Trust domains of which one is the mesh's own are all of them."""
    found: dict[str, None] = {}
    for value in values:
        found.update(dict.fromkeys(domains if value in domains else (value,)))
    return tuple(found)
