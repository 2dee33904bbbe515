"""Canaries: Ingresses that take a part of another one's requests."""

from mizzen.migrate.annotations import Annotations
from mizzen.migrate.expressions import is_re2
from mizzen.migrate.settings import Canary

_OWN = (
    "canary",
    "canary-by-header",
    "canary-by-header-value",
    "canary-by-header-pattern",
    "canary-by-cookie",
    "canary-weight",
    "canary-weight-total",
)
_KEPT = ("load-balance", "upstream-hash-by", "affinity", "affinity-canary-behavior")


def read_canary(annotations: Annotations) -> Canary | None:
    """When the Ingress gets requests; None where it is none."""
    if not annotations.flag("canary"):
        annotations.exact(*_OWN, how="" if "canary" in annotations else "nothing without canary")
        return None
    header = annotations.text("canary-by-header")
    value = annotations.text("canary-by-header-value")
    pattern = annotations.text("canary-by-header-pattern")
    if not header:
        annotations.exact("canary-by-header-value", "canary-by-header-pattern", how="nothing without canary-by-header")
    if value:
        annotations.exact("canary-by-header-pattern", how="canary-by-header-value goes before it")
    if pattern and not is_re2(pattern):
        annotations.impossible("canary-by-header-pattern", how="its regular expression is none of RE2")
        header = pattern = ""
    annotations.exact(*_OWN)
    total = annotations.number("canary-weight-total") or 100
    return Canary(
        header=header,
        header_value=value if header else "",
        header_pattern=pattern if header and not value else "",
        cookie=annotations.text("canary-by-cookie"),
        weight=min(annotations.number("canary-weight") or 0, total),
        total=total,
    )


def ignore_others(annotations: Annotations) -> None:
    """Of a canary nginx heeds nothing else; its main Ingress decides."""
    others = [name for name in annotations.unjudged if name not in _KEPT and not name.startswith("session-cookie")]
    annotations.exact(*others, how="a canary takes this from its main Ingress")
    annotations.impossible(*annotations.unjudged, how="a canary is balanced as its main Ingress's Service is")
