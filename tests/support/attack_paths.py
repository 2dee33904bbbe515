"""Attempts with other spellings of a path that a policy guards, under each way of the mesh to normalize paths.

What a way does not undo is told in `DOCUMENTED`: as in Istio, the policy sees the path as it was sent, and so does the
program; who guards paths by DENY must choose a way that fits the program, or guard by ALLOW.
"""

import urllib.parse

from attack_attempts import Attempt, by_policy
from attack_calls import Request

_DENIED = r"^403 RBAC: access denied"
_NONE = r"rbac_access_denied_matched_policy\[none\]"
_OPEN = Request(pod="deny", path="/anything")
_PUBLIC = Request(pod="allow", path="/public/page")
_EDGE = Request(pod="ingress", path="/anything", host="edge.example", program="deny")
_ANY_CASE = Request(pod="deny", path="/anything", protocol="h2")

DENIED_ALWAYS = (
    "/private",
    "/private/",
    "/private/a",
    "/private?x=1",
    "/private?/../anything",
    "/private/%2e%2e%2fx",
    "/private#a",
)
"""The path itself, and what only looks like another one."""
DENIED_BY_BASE = (
    "/./private",
    "/a/../private",
    "/a/b/../../private",
    "/%2e/private",
    "/a/%2e%2e/private",
    "/a/.%2E/private",
    "/../private",
    "/private/.",
    "/private/x/..",
    "/a\\..\\private",
    "/%70rivate",
    "/privat%65/a",
)
DENIED_BY_MERGING = ("//private", "///private", "/private//a", "//a/..//private", "/.//private", "/\\private")
DENIED_BY_DECODING = (
    "/%2Fprivate",
    "/%2fprivate",
    "/a%2F..%2Fprivate",
    "/a/..%2Fprivate",
    "/%5Cprivate",
    "/a%5c..%5cprivate",
    "/private%2Fa",
)
REFUSED_ALWAYS = ("/private%00", "/anything%00/../private")
"""What no program is ever sent."""
NO_TARGETS = ("\\private", "private", "%2Fprivate", "?/private")
"""What is no path of a request at all."""
DOCUMENTED = {
    "NONE": ("/./private", "/a/../private", "//private", "/%2Fprivate", "/%70rivate", "/private;x", "/PRIVATE"),
    "BASE": ("//private", "/%2Fprivate", "/a%2F..%2Fprivate", "/private;x", "/PRIVATE", "/private%3Fx"),
    "MERGE_SLASHES": ("/%2Fprivate", "/%5Cprivate", "/private;x", "/PRIVATE", "/private%20"),
    "DECODE_AND_MERGE_SLASHES": ("/private;x", "/PRIVATE", "/%252Fprivate", "/private%3Bx", "/private%09"),
}
"""Spellings that reach the program although the path is denied, as the mesh's way leaves them alone."""
ALLOWED_ONLY = (
    "/private",
    "/public;/../private",
    "/publicity",
    "/PUBLIC/page",
    "/public%2F..%2Fprivate",
    "/public/../private",
    "/public/%2e%2e/private",
    "/public/.%2e/private",
    "/public\\..\\..\\private",
    "/%2e%2e/private",
    "/x/public",
    "//public/../../private",
)
"""Ways to something else past a policy that allows /public and what is below it."""


def _name(path: str) -> str:
    return urllib.parse.quote(path, safe="")


def _deny(option: str, paths: tuple[str, ...], twin: Request = _OPEN, prefix: str = "path") -> tuple[Attempt, ...]:
    policy = by_policy("edge-deny", 1, "gateways") if twin.pod == "ingress" else by_policy("deny-paths")
    return tuple(
        Attempt(
            name=f"{prefix}-{option}-{_name(path)}",
            twin=twin,
            forged={"path": path},
            answer=_DENIED,
            details=policy,
            normalization=option,
        )
        for path in paths
    )


def _refused(option: str) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(
            name=f"path-{option}-{_name(path)}",
            twin=_OPEN,
            forged={"path": path},
            answer=r"^400",
            details=r"path_normalization_failed",
            normalization=option,
        )
        for path in REFUSED_ALWAYS
    )


def _allow(option: str, paths: tuple[str, ...]) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(
            name=f"allow-{option}-{_name(path)}",
            twin=_PUBLIC,
            forged={"path": path},
            answer=_DENIED,
            details=_NONE,
            normalization=option,
        )
        for path in paths
    )


_TARGETS = tuple(
    Attempt(name=f"target-{_name(path)}", twin=_OPEN, forged={"path": path}, answer=r"^400") for path in NO_TARGETS
)
_BASE, _MERGING, _DECODING = "BASE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES"
ATTEMPTS = (
    *_deny(_BASE, (*DENIED_ALWAYS, *DENIED_BY_BASE)),
    *_deny(_BASE, ("/private", "/a/../private", "/%70rivate"), _ANY_CASE, "h2-path"),
    *_deny(_BASE, ("/private", "/a/../private", "/a\\..\\private"), _EDGE, "gateway-path"),
    *_refused(_BASE),
    *_TARGETS,
    *_allow(_BASE, tuple(path for path in ALLOWED_ONLY if "2F" not in path)),
    *_deny("NONE", DENIED_ALWAYS),
    *_deny(_MERGING, ("/private", "/a/../private", *DENIED_BY_MERGING)),
    *_deny(_MERGING, ("//private",), _EDGE, "gateway-path"),
    *_deny(_DECODING, ("/private", "/a/../private", *DENIED_BY_MERGING, *DENIED_BY_DECODING)),
    *_deny(_DECODING, ("/%2Fprivate", "/a%5c..%5cprivate"), _EDGE, "gateway-path"),
    *_allow(_DECODING, ALLOWED_ONLY),
)
