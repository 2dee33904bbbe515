"""Objects that may be behind a group, looked up by its host.

In: a world, a kind and a `Group`. Out: keys, the likeliest first: those that concern the host, and of these the ones
that say something of the cause, as a timeout does of timeouts.
"""

from collections.abc import Iterator

from mizzen.api.meta import Key
from mizzen.diagnose.access_logs.addresses import host_asked, host_of
from mizzen.diagnose.access_logs.groups import Group
from mizzen.diagnose.access_logs.subjects import Subject
from mizzen.diagnose.trace import names as addresses
from mizzen.diagnose.trace.world import Workload, World
from mizzen.model import mesh, names, objects, policies, workloads

_KINDS = ("VirtualService", "DestinationRule", "Gateway", "ServiceEntry", "PeerAuthentication", "EnvoyFilter")
_ACTIONS = {"authorizer-denies": "CUSTOM", "authorizer-fails": "CUSTOM", "denied-by-default": "ALLOW"}
_WORDS = {
    "fault-abort": "abort=Abort",
    "fault-delay": "delay=Delay",
    "timeout": ", timeout=Duration",
    "try-timeout": "per_try_timeout=Duration",
    "overflow": "connection_pool=ConnectionPool",
    "local-limit": "ratelimit",
    "global-limit": "ratelimit",
    "limiter-fails": "ratelimit",
}
"""What stands in the object that causes it, as its value prints."""


def find(world: World, kind: str, group: Group) -> Iterator[Key]:
    """Objects of a kind that concern the group."""
    subject = group.subject
    if kind == "Service":
        key = Key(kind, *subject.service) if subject.service is not None else None
        if key is not None and world.object(key) is not None:
            yield key
    elif kind in ("AuthorizationPolicy", "RequestAuthentication"):
        yield from _policies(world, kind, group)
    elif kind in _KINDS and world.db is not None:
        fitting = [key for key in objects.of_kind(world.db, kind) if _concerns(world, key, group)]
        yield from sorted(fitting, key=lambda key: (not _says(world, key, group), key))


def service_port(world: World, pod: Workload, port: int) -> int:
    """The port of the Service behind which a pod listens on a port; that port where there is none."""
    for key, service in addresses.services(world):
        if key.namespace == pod.namespace and service.spec.selector:
            for each in service.spec.ports:
                for target in addresses.behind(world, key, service, each.port) or ():
                    if target.port == port and target.address in pod.addresses:
                        return each.port
    return port


def _policies(world: World, kind: str, group: Group) -> Iterator[Key]:
    """Policies that apply to the pod that refused."""
    server = _server(world, group)
    if server is None or world.db is None:
        return
    labels = workloads.freeze(server.labels)
    if kind == "RequestAuthentication":
        for rule in policies.request_authentications(world.db, server.namespace, labels):
            yield Key(kind, rule.metadata.namespace, rule.metadata.name)
        return
    wanted = _ACTIONS.get(group.code)
    for policy in policies.authorization_policies(world.db, server.namespace, labels):
        if wanted is None or policy.spec.action == wanted:
            yield Key(kind, policy.metadata.namespace, policy.metadata.name)


def _server(world: World, group: Group) -> Workload | None:
    """The pod whose proxy refused: the one that wrote the example."""
    entry = group.example
    own = world.at(host_of(entry.local))
    return own if own is not None else world.at(host_of(entry.upstream))


def _concerns(world: World, key: Key, group: Group) -> bool:
    spec, subject = world.object(key).spec, group.subject
    if key.kind == "EnvoyFilter":
        return _patches(world, key, group)
    if key.kind == "PeerAuthentication":
        return subject.service is not None and key.namespace == subject.service[0]
    if key.kind == "Gateway":
        hosts = {host.rpartition("/")[2] for server in spec.servers for host in server.hosts} - {"*"}
    elif key.kind == "VirtualService":
        hosts = {*spec.hosts, *_destinations(spec)} - {"*"}
    else:
        hosts = {spec.host} if key.kind == "DestinationRule" else set(spec.hosts)
    written = [names.resolve_host(host, key.namespace, world.domain) for host in hosts]
    return any(_is_host(host, asked) for host in written for asked in _asked(subject, group))


def _patches(world: World, key: Key, group: Group) -> bool:
    """Whether an EnvoyFilter is for the proxy that wrote the example."""
    entry = group.example
    here, there = (world.at(host_of(end)) for end in (entry.local, entry.remote))
    proxy = here if here is not None and (entry.is_inbound or here.proxy == "router") else there
    if proxy is None or world.db is None:
        return group.subject.service is not None and key.namespace == group.subject.service[0]
    selector = world.object(key).spec.workload_selector
    selects = selector is None or selector.labels.items() <= proxy.labels.items()
    return selects and key.namespace in (proxy.namespace, mesh.root_namespace(world.db))


def _destinations(spec: object) -> Iterator[str]:
    for route in getattr(spec, "http", ()):
        yield from (each.destination.host for each in route.route if each.destination is not None)


def _asked(subject: Subject, group: Group) -> Iterator[str]:
    yield subject.host
    authority = host_asked(group.example.authority)
    if authority:
        yield authority


def _is_host(written: str, asked: str) -> bool:
    """Whether an object's host means the one of the lines, which may be short."""
    return names.matches(written, asked) or ("." not in asked and written.startswith(f"{asked}."))


def _says(world: World, key: Key, group: Group) -> bool:
    wanted = f"name='{group.subject.subset}'" if group.code == "empty-subset" else _WORDS.get(group.code, "")
    return wanted in repr(world.object(key).spec)
