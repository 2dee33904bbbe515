"""On demand: subscriptions whose resources follow from the names of others.

In: the watches of one stream, and a request. Out: the types that are due because of it. Clusters follow the virtual
hosts that the client has asked for, and virtual hosts its route configurations, whose first host it waits for.
"""

from collections.abc import Iterator, Mapping

from mizzen.compile.resource import ResourceSet
from mizzen.xds import kinds
from mizzen.xds.requests import Request, intern_names
from mizzen.xds.watch import Watch


def follow(watches: Mapping[str, Watch], watch: Watch, request: Request) -> Iterator[str]:
    """Let what is new follow the names that it follows, and what follows it its names; yields whom that changed.

    A client that comes back names its clusters before its virtual hosts: until then it keeps the clusters.
    """
    other = kinds.FOLLOWS.get(watch.type_url)
    if other is not None and watch.follows is None:
        followed = watches.get(other)
        watch.follows = followed.names if followed is not None else intern_names(request.initial_versions)
    for type_url, other in kinds.FOLLOWS.items():
        follower = watches.get(type_url)
        if other == watch.type_url and follower is not None and follower.follows != watch.names:
            follower.follows = watch.names
            yield type_url


def ask_for_hosts(hosts: Watch, routes: ResourceSet) -> None:
    """These routes are being sent: Envoy may have lost their virtual hosts, and waits for a first one."""
    known = hosts.sent.names if hosts.sent is not None else hosts.held.of if hosts.held is not None else ()
    hosts.asked = hosts.asked.union(name for name in known if name.partition("/")[0] in routes)
