"""All pages of this control plane, put together.

In: the parts that hold its state. Out: a `Console`. Pages of istiod without a meaning here are absent, and answered as
istiod answers unknown ones: ambient mode and multi-cluster services (ambientz, krtz, mcsz, networkz), profiles of Go
(pprof), templates of an injector that runs elsewhere (inject), and what istiod keeps of its last push (push_status,
pushcontext), in place of which stands `problems`.
"""

from collections.abc import Callable, Iterable, Mapping

from mizzen.control.debug import cache, clients, dumps, objects, pushes, registry, sources, views
from mizzen.control.debug.console import Console, Page, PageError, Query, Write
from mizzen.incremental import Engine
from mizzen.sources.origins import Finding
from mizzen.xds.discovery import Discovery


def build_console(
    engine: Engine,
    discovery: Discovery,
    findings: Callable[[], Iterable[Finding]],
    followed: Mapping[str, sources.Followed],
    *,
    administrate: bool,
) -> Console:
    """The console over these parts; `administrate` adds pages that disturb proxies."""
    connections = discovery.connections
    return Console(
        {
            **cache.pages(discovery.responses),
            **clients.pages(connections, findings, administrate=administrate),
            **dumps.pages(connections),
            **objects.pages(engine),
            **pushes.pages(discovery.pusher.history.costs),
            **registry.pages(engine),
            **sources.pages(followed),
            **views.pages(engine, connections),
            "clusterz": Page("Other clusters whose objects are read.", _clusters),
        }
    )


def _clusters(_: Query) -> Write:
    raise PageError(400, "this control plane reads no other clusters")
