"""Values of policies as string matchers: exact, `prefix*`, `*suffix`, and `*` for anything present.

In: a value as a user wrote it. Out: fields of Envoy's `StringMatcher` or `HeaderMatcher`. Only a star at an end means
something; a value with stars at both ends is a suffix whose last star is literal, as in Istio.
Golden cases: security/authz-operations, security/authz-sources.
"""

from typing import Any

from mizzen.model.patterns import quote

SPIFFE = "spiffe://"


def regex(pattern: str) -> dict[str, Any]:
    """A full match of an RE2 expression."""
    return {"safe_regex": {"regex": pattern}}


ANYTHING = regex(".+")


def match_string(value: str, *, ignore_case: bool = False) -> dict[str, Any]:
    """A string matcher; `*` matches any string but the empty one."""
    if value == "*":
        return ANYTHING
    if value.startswith("*"):
        found: dict[str, Any] = {"suffix": value[1:]}
    elif value.endswith("*"):
        found = {"prefix": value[:-1]}
    else:
        found = {"exact": value}
    if ignore_case:
        found["ignore_case"] = True
    return found


def match_header(name: str, value: str, *, ignore_case: bool = False) -> dict[str, Any]:
    """A header matcher; `*` only asks that the header is there."""
    if value == "*":
        return {"name": name, "present_match": True}
    return {"name": name, "string_match": match_string(value, ignore_case=ignore_case)}


def match_principal(value: str) -> dict[str, Any]:
    """A matcher for a SPIFFE identity, which policies write without its scheme."""
    if value == "*":
        return ANYTHING
    if value.startswith("*"):
        return regex(f"{SPIFFE}.*{quote(value[1:])}")
    if value.endswith("*"):
        return {"prefix": SPIFFE + value[:-1]}
    return {"exact": SPIFFE + value}


def match_namespace(value: str) -> dict[str, Any]:
    """A matcher for identities of a namespace; each star stands for anything."""
    return regex(f".*/ns/{'.*'.join(quote(part) for part in value.split('*'))}/.*")


def match_service_account(value: str, namespace: str) -> dict[str, Any]:
    """A matcher for one service account, written `namespace/name` or, within `namespace`, by name alone."""
    written, slash, name = value.partition("/")
    where, who = (written, name) if slash else (namespace, value)
    return regex(f"{SPIFFE}.+/ns/{quote(where)}/(.+/|)sa/{quote(who)}(/.+)?")


def match_trust_domain(value: str) -> dict[str, Any]:
    """A matcher for identities of a trust domain, in which one star stands for a part of its name."""
    if value == "*":
        return {"prefix": SPIFFE}
    before, star, after = value.partition("*")
    if not star:
        return {"prefix": f"{SPIFFE}{value}/"}
    return regex(f"{SPIFFE}{quote(before)}[^/]*{quote(after)}/.*")
