"""Values of policies held against the caller's identity.

An identity is `spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT`; policies write it without the scheme. A trust domain of
the mesh stands for all of them, its own and the aliases, so that policies outlive a change of the domain.
"""

import re

from mizzen.diagnose.authorization import texts

_SCHEME = "spiffe://"
_LOCAL = "cluster.local"
_PARTS = 5


def is_principal(value: str, identity: str, domains: tuple[str, ...]) -> bool:
    """Whether a value of `principals` stands for the identity."""
    domain, *rest = value.split("/")
    if len(rest) != _PARTS - 1 or domain == "*" or not _is_of_mesh(domain, domains):
        return _is_written(value, identity)
    named, _, account = identity.removeprefix(_SCHEME).partition("/")
    replaced = identity.startswith(_SCHEME) and named in domains and not _stands_as_written(domain, named)
    if replaced and _continues("/".join(rest), account):
        return True
    return any(_stands_as_written(domain, d) for d in domains) and _is_written(value, identity)


def _continues(value: str, text: str) -> bool:
    """Whether the text is the rest of a value, of which only the last star means anything."""
    return text.startswith(value[:-1]) if value.endswith("*") else text == value


def _is_of_mesh(pattern: str, domains: tuple[str, ...]) -> bool:
    return pattern == _LOCAL or any(texts.is_text(pattern, domain) for domain in domains)


def _stands_as_written(pattern: str, domain: str) -> bool:
    """A leading star is kept for the domains that it covers; other domains of the mesh take its place."""
    return pattern.startswith("*") and texts.is_text(pattern, domain)


def _is_written(value: str, identity: str) -> bool:
    if value == "*":
        return bool(identity)
    if not identity.startswith(_SCHEME):
        return False
    return texts.is_text(value, identity.removeprefix(_SCHEME))


def is_namespace(value: str, identity: str) -> bool:
    """Whether the identity is of a namespace; each star of the value stands for any characters."""
    wanted = ".*".join(re.escape(part) for part in value.split("*"))
    return re.fullmatch(f".*/ns/{wanted}/.*", identity) is not None


def is_service_account(value: str, identity: str, namespace: str) -> bool:
    """Whether the identity is this account, written `namespace/account` or by its name in the policy's namespace."""
    first, slash, second = value.partition("/")
    where, who = (first, second) if slash else (namespace, value)
    expected = f"{_SCHEME}.+/ns/{re.escape(where)}/(?:.+/)?sa/{re.escape(who)}(?:/.+)?"
    return re.fullmatch(expected, identity) is not None


def is_trust_domain(value: str, identity: str, domains: tuple[str, ...]) -> bool:
    """Whether the identity is of a trust domain; one star stands for any characters but a slash."""
    domain, slash, _ = identity.removeprefix(_SCHEME).partition("/")
    if not identity.startswith(_SCHEME):
        return False
    if value == "*":
        return True
    if not slash:
        return False
    if value in domains:
        return domain in domains
    before, star, after = value.partition("*")
    if not star:
        return domain == value
    return len(domain) >= len(before + after) and domain.startswith(before) and domain.endswith(after)
