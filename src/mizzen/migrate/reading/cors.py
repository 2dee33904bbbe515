"""Cross-origin sharing."""

import re

from mizzen.migrate.annotations import Annotations
from mizzen.migrate.settings import Cors

_NAMES = (
    "enable-cors",
    "cors-allow-origin",
    "cors-allow-methods",
    "cors-allow-headers",
    "cors-allow-credentials",
    "cors-expose-headers",
    "cors-max-age",
)
_METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_HEADERS = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
_MAX_AGE = 1728000
_ORIGIN = re.compile(r"\*|https?://(\*\.)?[A-Za-z0-9.-]+(:\d+)?")


def read_cors(annotations: Annotations) -> Cors | None:
    """Whom pages of other origins may call, or nothing."""
    if not annotations.flag("enable-cors"):
        annotations.exact(*_NAMES, how="" if "enable-cors" in annotations else "nothing without enable-cors")
        return None
    origins = annotations.items("cors-allow-origin", "*")
    known = tuple(origin for origin in origins if _ORIGIN.fullmatch(origin))
    if known != origins:
        unknown = ", ".join(origin for origin in origins if origin not in known)
        annotations.approximated("cors-allow-origin", how=f"without {unknown}")
    how = "a preflight is answered with 200, not 204; headers come only with an Origin that is allowed, and name it"
    annotations.approximated(*_NAMES, how=how)
    max_age = annotations.number("cors-max-age")
    return Cors(
        origins=("*",) if "*" in known else known,
        methods=tuple(method.upper() for method in annotations.items("cors-allow-methods", _METHODS)),
        headers=annotations.items("cors-allow-headers", _HEADERS),
        exposed=annotations.items("cors-expose-headers"),
        credentials=annotations.flag("cors-allow-credentials", True),
        max_age=_MAX_AGE if max_age is None else max_age,
    )
