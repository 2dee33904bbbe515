"""One HTTP request inside one proxy while filters work on it.

In: the hop, the message, the route configuration. Out: `State`: the message as it stands, the route as it is chosen,
the metadata and flags that filters left. It is the one value of this package that changes while it is used.
"""

from typing import Any

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import routes
from mizzen.diagnose.trace.hop import Hop
from mizzen.diagnose.trace.request import Message

_NOTHING = routes.Selected(route=None)


class State:
    """What filters see and change."""

    def __init__(self, *, hop: Hop, message: Message, configuration: Json, manager: Json) -> None:
        self.hop = hop
        self.message = message
        self.configuration = configuration
        self.manager = manager
        self.host: Json = {}
        self.selected = _NOTHING
        self.metadata: dict[str, Any] = {}
        """Dynamic metadata by filter."""
        self.flags: set[str] = set()

    def on(self, hop: Hop, selected: routes.Selected) -> "State":
        """The same moment on one of several ways."""
        own = State(hop=hop, message=self.message, configuration=self.configuration, manager=self.manager)
        own.host, own.selected = self.host, selected
        own.metadata, own.flags = dict(self.metadata), set(self.flags)
        return own

    def select(self) -> None:
        """Choose the route, or choose it anew."""
        if self.host:
            self.selected = routes.select(self.host, self.message, self.metadata, is_tls=self.hop.peer.is_mutual)

    def override(self, name: str, entry: Json | None = None) -> Json | None:
        """What the cluster entry, route, virtual host or configuration say to the filter of that name, or None.

        An empty object with `disabled` means that the filter is switched off.
        """
        for level in (entry or {}, self.selected.route or {}, self.host, self.configuration):
            found = dump.message(level, "typed_per_filter_config").get(name)
            if isinstance(found, dict):
                if dump.text(found, "@type").endswith("route.v3.FilterConfig"):
                    return found if found.get("disabled") is True else dump.message(found, "config")
                return found
        return None
