"""Redirects: to HTTPS, to another URL, to the root of an application, between a host and its `www.`."""

import re
from typing import Any

from mizzen.migrate.annotations import Annotations, has_variable
from mizzen.migrate.settings import Redirect

_URL = re.compile(
    r"(?:(?P<scheme>https?|\$scheme)://(?P<host>[^/:$?]+|\$host|\$http_host)(?::(?P<port>\d+))?)?(?P<rest>.*)"
)
_CODES = (301, 302, 303, 307, 308)
_KEPT = ("$request_uri", "${request_uri}")


def read_redirects(annotations: Annotations) -> dict[str, Any]:
    """The fields of `Settings` that speak of redirects."""
    return {
        **_to_https(annotations),
        "app_root": _app_root(annotations),
        "redirect": _to_url(annotations),
        "www_redirect": _www(annotations),
    }


def _to_https(annotations: Annotations) -> dict[str, Any]:
    names = ("ssl-redirect", "force-ssl-redirect")
    keeps_slash = annotations.flag("preserve-trailing-slash")
    annotations.exact("preserve-trailing-slash", how="Envoy keeps a trailing slash always" if not keeps_slash else "")
    if keeps_slash or not (annotations.flag(names[0], True) or annotations.flag(names[1])):
        annotations.exact(*names)
    else:
        annotations.approximated(*names, how="308 to https, but a trailing slash stays, which nginx takes away")
    return {"ssl_redirect": annotations.flag(names[0], True), "force_ssl_redirect": annotations.flag(names[1])}


def _app_root(annotations: Annotations) -> str:
    root = annotations.text("app-root")
    if not root:
        return ""
    if not root.startswith("/") or has_variable(root):
        annotations.impossible("app-root", how="only a fixed path can be redirected to")
        return ""
    annotations.exact("app-root", how="302 for requests to / alone")
    return root


def _www(annotations: Annotations) -> bool:
    annotations.exact("from-to-www-redirect", how="308 between the host with and without www.")
    return annotations.flag("from-to-www-redirect")


# -- to another URL ---------------------------------------------------------------------------------------------------


def _to_url(annotations: Annotations) -> Redirect | None:
    """The temporary redirect if there is one, else the permanent one, as ingress-nginx takes them."""
    temporary = annotations.text("temporal-redirect")
    name = "temporal-redirect" if temporary else "permanent-redirect"
    if temporary:
        annotations.exact("permanent-redirect", "permanent-redirect-code", how="temporal-redirect goes before it")
    url = annotations.text(name)
    if not url:
        return None
    code = annotations.number(f"{name}-code") or (302 if temporary else 301)
    if code not in _CODES:
        annotations.approximated(f"{name}-code", how=f"{code} is not a redirect that routes can give; 301 instead")
        code = 301
    annotations.exact(f"{name}-code")
    found = _parse(url, code)
    if found is None:
        annotations.impossible(name, how="a route's redirect has no variables and no query of its own")
        return None
    if found.path:
        annotations.approximated(name, how="a query string of the request is kept, which nginx drops")
    else:
        annotations.exact(name)
    return found


def _parse(url: str, code: int) -> Redirect | None:
    """A URL as nginx's `return` has it; None where it has variables that a route's redirect cannot follow."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return None
    scheme, host, rest = parts["scheme"] or "", parts["host"] or "", parts["rest"]
    if rest in _KEPT:
        path = ""
    elif has_variable(rest) or (rest and rest[0] not in "/?"):
        return None
    else:
        path = rest.partition("?")[0] or "/"
        if "?" in rest:
            return None
    if not scheme and not path:
        return None
    return Redirect(
        code=code,
        scheme="" if scheme == "$scheme" else scheme,
        host="" if host.startswith("$") else host,
        port=int(parts["port"] or 0),
        path=path,
    )
