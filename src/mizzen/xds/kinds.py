"""The kinds of resource that travel over ADS: their order, their short names, how they are subscribed to.

Facts only. The order is make-before-break: what is used goes before what uses it, and leaves after it.
"""

from collections.abc import Iterable

from mizzen.compile.resource import (
    CLUSTER,
    ENDPOINT,
    EXTENSION,
    LISTENER,
    NAME_TABLE,
    ROUTE,
    SECRET,
    TRUST_BUNDLE,
    VIRTUAL_HOST,
)
from mizzen.protos import TYPE_PREFIX

HEALTH = TYPE_PREFIX + "istio.v1.HealthInformation"
"""Says how a workload is; sent by agents, answered by nobody."""

DEBUG = "istio.io/debug"
"""A page of the debug console; the types that begin so are answered beside all subscriptions."""

ORDER = (CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST, SECRET)
"""Order of responses within one push; other kinds follow, sorted."""

LEAVE_LAST = (VIRTUAL_HOST, ROUTE, SECRET, CLUSTER, ENDPOINT)
"""Kinds whose removals wait until everything else of the push was said, and in which order they are said then."""

NEED_CLUSTERS = frozenset((LISTENER, ROUTE, VIRTUAL_HOST))
"""Kinds that send requests to clusters: to one that the client does not have at work yet they fail."""

FOLLOWS = {CLUSTER: VIRTUAL_HOST, VIRTUAL_HOST: ROUTE}
"""On demand: kinds whose resources follow from the names that the client has subscribed to of another kind."""

EXPLICIT = frozenset((ENDPOINT, ROUTE, SECRET, EXTENSION))
"""Kinds that are subscribed to by name only; an empty list of names means none. For all others it means all."""

NEVER_REMOVED = frozenset((EXTENSION,))
"""Kinds whose removal is told only to who asks for the name: without its configuration a filter answers 500."""

_SHORT = {
    CLUSTER: "cds",
    ENDPOINT: "eds",
    LISTENER: "lds",
    ROUTE: "rds",
    VIRTUAL_HOST: "vhds",
    SECRET: "sds",
    EXTENSION: "ecds",
    NAME_TABLE: "nds",
    TRUST_BUNDLE: "pcds",
    TYPE_PREFIX + "istio.workload.Address": "wds",
    TYPE_PREFIX + "istio.workload.Workload": "wds",
    TYPE_PREFIX + "istio.security.Authorization": "wads",
}
_RANK = {type_url: rank for rank, type_url in enumerate(ORDER)}


def short_name(type_url: str) -> str:
    """`cds`, `eds`, …; the type URL itself where Istio has no such word."""
    return _SHORT.get(type_url, type_url)


def is_debug(type_url: str) -> bool:
    """Whether requests of this type ask for the control plane's own state."""
    return type_url.startswith(DEBUG)


def in_order(type_urls: Iterable[str]) -> list[str]:
    """The type URLs in the order in which responses are sent."""
    found = list(type_urls)
    if len(found) > 1:
        found.sort(key=lambda type_url: (_RANK.get(type_url, len(ORDER)), type_url))
    return found
