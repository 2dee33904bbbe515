"""Attempts with tokens of end users, with an external check that cannot be asked, and against policies that are broken."""

import time

from attack_attempts import Attempt, by_policy
from attack_calls import Observed, Request
from attack_material import FETCHED, STRANGERS, UNREACHABLE, USERS, Users

_NO_TOKEN = by_policy("token-required")
_DENIED = r"^403 RBAC: access denied"


def bearer(token: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {token}")


def guarded(*headers: tuple[str, str], path: str = "/guarded") -> Request:
    """A request to what only users may see."""
    return Request(pod="token", path=path, headers=headers)


_GOOD = guarded(bearer(USERS.token()))
_FORGED = {
    "wrong-audience": (USERS.token(aud="elsewhere"), r"^403 Audiences in Jwt are not allowed"),
    "no-audience": (USERS.token(aud=None), r"^403 Audiences in Jwt are not allowed"),
    "expired": (USERS.token(exp=int(time.time()) - 3600), r"^401 Jwt is expired"),
    "not-yet-valid": (USERS.token(nbf=int(time.time()) + 7200), r"^401 Jwt not yet valid"),
    "tampered-payload": (USERS.tampered(sub="admin"), r"^401 Jwt verification fails"),
    "tampered-signature": (USERS.bent(), r"^401 Jwt verification fails"),
    "cut-signature": (USERS.cut(), r"^401 Jwt verification fails"),
    "no-signature": (USERS.token().rpartition(".")[0] + ".", r"^401 Jwt is not in the form"),
    "two-parts": (USERS.token().rpartition(".")[0], r"^401 Jwt is not in the form"),
    "alg-none": (USERS.unsigned("none"), r"^401 Jwt is not in the form"),
    "alg-none-with-a-signature": (USERS.unsigned("none", "AAAA"), r"^401 Jwt header \[alg\]"),
    "alg-none-capital": (USERS.unsigned("None", "AAAA"), r"^401 Jwt header \[alg\]"),
    "public-key-as-secret": (USERS.keyed_by_public_half(), r"^401 Jwks doesn't have key"),
    "unknown-key": (STRANGERS.token(), r"^401 Jwt verification fails"),
    "unknown-key-id": (Users(kid="k9").token(), r"^401 Jwks doesn't have key"),
    "brings-its-own-key": (USERS.self_keyed(), r"^401 Jwt verification fails"),
    "wrong-issuer": (USERS.token(iss="https://evil.example"), r"^401 Jwt issuer is not configured"),
    "issuer-of-other-keys": (USERS.token(iss=FETCHED.issuer, aud=None), r"^401 Jwks doesn't have key"),
    "not-a-token": ("e30.e30.e30", r"^401 Jwt header \[alg\]"),
}

_BEARERS = tuple(
    Attempt(name=f"token-{name}", twin=_GOOD, forged={"headers": (bearer(token),)}, answer=answer, details="jwt_authn")
    for name, (token, answer) in _FORGED.items()
)

_PLACES = (
    Attempt(name="token-missing", twin=_GOOD, forged={"headers": ()}, answer=_DENIED, details=_NO_TOKEN),
    Attempt(
        name="token-missing-below",
        twin=guarded(bearer(USERS.token()), path="/guarded/more"),
        forged={"headers": ()},
        answer=_DENIED,
        details=_NO_TOKEN,
    ),
    Attempt(
        name="token-of-another-scheme",
        twin=_GOOD,
        forged={"headers": (("authorization", f"Basic {USERS.token()}"),)},
        answer=_DENIED,
        details=_NO_TOKEN,
    ),
    Attempt(
        name="token-in-a-header-of-another-name",
        twin=_GOOD,
        forged={"headers": (("x-other-token", USERS.token()),)},
        answer=_DENIED,
        details=_NO_TOKEN,
    ),
    Attempt(
        name="token-payload-header-forged",
        twin=_GOOD,
        forged={"headers": (("x-payload", USERS.token().split(".")[1]),)},
        answer=_DENIED,
        details=_NO_TOKEN,
    ),
    Attempt(
        name="token-bad-beside-good",
        twin=_GOOD,
        forged={"headers": (bearer(USERS.token()), ("x-token", STRANGERS.token()))},
        answer=r"^401 Jwt verification fails",
        details="jwt_authn",
    ),
    Attempt(
        name="token-good-beside-bad",
        twin=_GOOD,
        forged={"headers": (bearer(STRANGERS.token()), ("x-token", USERS.token()))},
        answer=r"^401 Jwt verification fails",
        details="jwt_authn",
    ),
    Attempt(
        name="token-bad-in-the-query",
        twin=_GOOD,
        forged={"path": f"/guarded?access_token={STRANGERS.token()}"},
        answer=r"^401 Jwt verification fails",
        details="jwt_authn",
    ),
    Attempt(
        name="token-twice-in-one-header",
        twin=_GOOD,
        forged={"headers": (bearer(STRANGERS.token()), bearer(USERS.token()))},
        answer=r"^401",
        details="jwt_authn",
    ),
    Attempt(
        name="token-of-a-preflight",
        twin=_GOOD,
        forged={
            "method": "OPTIONS",
            "headers": (("origin", "https://a.example"), ("access-control-request-method", "GET")),
        },
        answer=_DENIED,
        details=_NO_TOKEN,
    ),
    Attempt(
        name="token-of-another-subject",
        twin=guarded(bearer(USERS.token()), path="/alice"),
        forged={"headers": (bearer(USERS.token(sub="mallory")),)},
        answer=_DENIED,
        details=r"policy\[token-alice\]",
    ),
    Attempt(
        name="token-subject-with-a-slash",
        twin=guarded(bearer(USERS.token()), path="/alice"),
        forged={"headers": (bearer(USERS.token(sub="mallory/alice")),)},
        answer=_DENIED,
        details=r"policy\[token-alice\]",
    ),
    Attempt(
        name="token-of-another-role",
        twin=guarded(bearer(USERS.token(role="admin")), path="/admin"),
        forged={"headers": (bearer(USERS.token(role="user")),)},
        answer=_DENIED,
        details=r"policy\[token-admin\]",
    ),
    Attempt(
        name="token-role-in-a-header",
        twin=guarded(bearer(USERS.token(role="admin")), path="/admin"),
        forged={"headers": (bearer(USERS.token(role="user")), ("x-role", "admin"))},
        answer=_DENIED,
        details=r"policy\[token-admin\]",
    ),
    Attempt(
        name="claim-header-without-token",
        twin=Observed(
            pod="token", path="/open", headers=(bearer(USERS.token(role="admin")),), forged="admin", watched=("x-role",)
        ),
        forged={"headers": (("x-role", "admin"),)},
        answer=r"arrived with {'x-role': ''}",
    ),
    Attempt(
        name="claim-header-beside-token",
        twin=Observed(
            pod="token", path="/open", headers=(bearer(USERS.token(role="admin")),), forged="admin", watched=("x-role",)
        ),
        forged={"headers": (bearer(USERS.token(role="user")), ("x-role", "admin"))},
        answer=r"arrived with {'x-role': 'user'}",
    ),
    Attempt(
        name="payload-header-without-token",
        twin=Observed(
            pod="token",
            path="/open",
            headers=(bearer(USERS.token()),),
            forged="ey",
            watched=("x-payload",),
        ),
        forged={"headers": (("x-payload", USERS.token().split(".")[1]),)},
        answer=r"arrived with {'x-payload': ''}",
    ),
)

_KEYS = (
    Attempt(
        name="keys-fetched-unknown-key",
        twin=guarded(bearer(FETCHED.token())),
        forged={"headers": (bearer(Users(FETCHED.issuer, FETCHED.kid).token()),)},
        answer=r"^401 Jwt verification fails",
        details="jwt_authn",
    ),
    Attempt(
        name="keys-unreachable",
        twin=guarded(bearer(FETCHED.token())),
        forged={"headers": (bearer(UNREACHABLE.token()),)},
        answer=r"^401 Jwks doesn't have key",
        details="jwt_authn",
    ),
)

_CHECKED = Request(pod="token", path="/checked", headers=(("x-answer", "200"),))

_EXTERNAL = (
    Attempt(
        name="check-says-no",
        twin=_CHECKED,
        forged={"headers": (("x-answer", "403"),)},
        answer=r"^403",
        details=r"UAEX ext_authz_denied",
    ),
    Attempt(
        name="check-fails",
        twin=_CHECKED,
        forged={"headers": (("x-answer", "500"),)},
        answer=r"^403",
        details=r"UAEX ext_authz",
    ),
    Attempt(
        name="check-by-another-way-to-the-path",
        twin=_CHECKED,
        forged={"path": "/x/../checked", "headers": (("x-answer", "403"),)},
        answer=r"^403",
        details=r"UAEX ext_authz_denied",
    ),
    Attempt(
        name="check-cannot-be-asked",
        twin=Request(pod="other", port=8083, path="/checked"),
        forged={"pod": "strict"},
        answer=r"^403",
        details=r"UAEX ext_authz_error",
    ),
)

_BROKEN = (
    Attempt(
        name="policy-that-does-not-decode",
        twin=Request(pod="deny", path="/anything"),
        forged={"pod": "broken"},
        answer=_DENIED,
        details=r"policy\[broken\]",
    ),
    Attempt(
        name="policy-that-does-not-decode-tcp",
        twin=Request(pod="deny", path="/anything", by="front"),
        forged={"pod": "broken", "port": 8086},
        answer=_DENIED,
        details=r"policy\[broken\]",
    ),
    Attempt(
        name="policy-with-a-misspelt-field",
        twin=Request(pod="allow", path="/public", by="front"),
        forged={"pod": "typo", "path": "/private"},
        answer=_DENIED,
        details=r"policy\[typo\]",
    ),
    Attempt(
        name="peer-authentication-of-an-unknown-mode",
        twin=Request(pod="deny", path="/anything"),
        forged={"pod": "typo"},
        answer=r"ConnectionResetError|^closed",
        counter=r"listener\.0\.0\.0\.0_15006\.no_filter_chain_match$",
    ),
    Attempt(
        name="request-authentication-that-does-not-decode",
        twin=Request(pod="deny", path="/anything", headers=(bearer(USERS.token()),)),
        forged={"pod": "other"},
        answer=r"^401",
        details="jwt_authn",
    ),
    *(
        Attempt(
            name=f"denial-with-an-{kind}",
            twin=Request(pod="deny", path="/anything"),
            forged={"path": f"/{kind}"},
            answer=_DENIED,
            details=by_policy("deny-unknown", rule),
        )
        for rule, kind in enumerate(("unknown-condition", "unreadable-address"))
    ),
    *(
        Attempt(
            name=f"permission-with-an-{kind}",
            twin=Request(pod="allow", path="/public"),
            forged={"path": f"/{kind}"},
            answer=_DENIED,
            details=r"rbac_access_denied_matched_policy\[none\]",
        )
        for kind in ("unknown-condition", "unreadable-address")
    ),
    Attempt(
        name="policy-that-hides-whom-it-selects",
        twin=Request(pod="deny", path="/anything"),
        forged={"pod": "ruin"},
        answer=_DENIED,
        details=r"policy\[ruin\]",
    ),
)

ATTEMPTS = (*_BEARERS, *_PLACES, *_KEYS, *_EXTERNAL, *_BROKEN)
