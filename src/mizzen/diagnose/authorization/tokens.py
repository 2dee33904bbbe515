"""Values of policies held against the claims of a token that was found valid.

A request principal is `ISSUER/SUBJECT`; both parts must match, and since issuers are URLs the last slash parts them.
Claims are texts, or lists that hold the text; numbers and booleans equal no text.
"""

from collections.abc import Iterable
from typing import Any

from mizzen.diagnose.authorization import texts
from mizzen.diagnose.authorization.request import Claims


def as_envoy_keeps(claims: Claims, space_delimited: Iterable[str]) -> Claims:
    """The claims with those texts as lists that hold several values between spaces."""
    return {
        name: [part for part in value.split(" ") if part]
        if name in space_delimited and isinstance(value, str)
        else value
        for name, value in claims.items()
    }


def is_request_principal(value: str, claims: Claims | None) -> bool:
    """Whether a value of `requestPrincipals` stands for the token's issuer and subject.

    Only the star that the value begins with, or else the one that it ends with, means anything.
    """
    issuer, subject = (claims or {}).get("iss"), (claims or {}).get("sub")
    if not isinstance(issuer, str) or not isinstance(subject, str):
        return False
    before, slash, after = value.rpartition("/")
    if value == "*":
        return bool(issuer) and bool(subject)
    if value.startswith("*"):
        if not slash:
            return bool(issuer) and texts.is_text(value, subject)
        return texts.is_text(before, issuer) and subject == after
    if value.endswith("*"):
        if not slash:
            return texts.is_text(value, issuer) and bool(subject)
        return issuer == before and (bool(subject) if after == "*" else subject.startswith(after[:-1]))
    return (issuer, subject) == ((before, after) if slash else (value, ""))


def request_principal(claims: Claims | None) -> str:
    """The principal that the token stands for; empty without one."""
    return f"{claims.get('iss', '')}/{claims.get('sub', '')}" if claims is not None else ""


def find_claim(path: Iterable[str], claims: Claims | None) -> Any:
    """The claim at the end of the path, None where there is none."""
    found: Any = claims
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def holds(value: str, found: Any) -> bool:
    """Whether a claim is, or a list holds, what the value stands for."""
    return any(isinstance(one, str) and texts.is_text(value, one) for one in (found if _is_list(found) else (found,)))


def _is_list(found: Any) -> bool:
    return isinstance(found, list | tuple)
