"""Who may see which page.

In: the identities that a caller has proved, and the page it asks for. Out: the namespace that it is limited to, or
`Denied`. Callers of the system namespace see everything; others see three pages, about proxies of their own namespace.
"""

from collections.abc import Iterable
from typing import Protocol

from mizzen import settings
from mizzen.errors import MizzenError

EVERYTHING = ""
"""The limit of who may see proxies of all namespaces."""

_OPEN_PAGES = frozenset(("config_dump", "edsz", "ndsz"))


class Identity(Protocol):
    """What a caller has proved to be."""

    @property
    def namespace(self) -> str:
        """The namespace of its service account."""
        ...


class Denied(MizzenError):
    """The caller may not see the page."""


class Access:
    """The rules in force."""

    def __init__(self, config: settings.Settings) -> None:
        self.enforced = config.http.debug_authorization
        self._system = frozenset((config.instance.namespace, *config.http.debug_namespaces))

    def limit(self, identities: Iterable[Identity]) -> str | None:
        """The namespace whose proxies a caller may see, empty for all; None for a caller that proved no identity."""
        if not self.enforced:
            return EVERYTHING
        namespaces = [identity.namespace for identity in identities]
        if self._system.intersection(namespaces):
            return EVERYTHING
        return namespaces[0] if namespaces else None

    def limit_on(self, page: str, identities: Iterable[Identity]) -> str:
        """The same for one page; raises Denied where the page is not for the caller."""
        limit = self.limit(identities)
        if limit is None or (limit and page not in _OPEN_PAGES):
            raise Denied(f"{page} is not for this caller")
        return limit
