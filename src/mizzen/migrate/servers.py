"""Servers: the hosts as ingress-nginx sees them, each with its locations.

In: Ingresses with their settings. Out: one `Server` for each host. The oldest Ingress wins where two ask for the same
path; a canary stands at the location of the same host, path and type. If one location of a host is rewritten or asks
for regular expressions, all locations of the host are regular expressions.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from mizzen.api.kube.ingress import HTTPIngressPath, Ingress, IngressBackend, PathType
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key, Object
from mizzen.migrate.findings import Notes
from mizzen.migrate.settings import Canary, ClientTLS, Settings

ANY_HOST = ""
_TAKEN = "an older Ingress has this path already"


class Source(NamedTuple):
    """An Ingress with what its annotations ask for."""

    key: Key
    ingress: Ingress
    settings: Settings


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """A port of a Service."""

    namespace: str
    service: str
    port: int


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A path of a host."""

    path: str
    type: PathType
    ingress: Key
    settings: Settings
    backend: Backend | None
    """None where the Ingress names nothing that can be found."""
    canary: tuple[Canary, Backend] | None = None

    @property
    def is_rewritten(self) -> bool:
        """Whether backends see another path than the one asked for."""
        return self.settings.rewrite_target not in ("", self.path)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A host."""

    host: str
    """Empty for all hosts that are no server's."""
    locations: tuple[Location, ...]
    """In the order in which regular expressions are tried: the longest path first."""
    aliases: tuple[str, ...] = ()
    certificate: tuple[str, str] | None = None
    """Namespace and name of a Secret."""
    client_tls: ClientTLS | None = None
    redirected_host: str = ""
    """The host with or without `www.` that only leads here."""
    is_passthrough: bool = False

    @property
    def is_regex(self) -> bool:
        """Whether all paths are regular expressions."""
        return any(one.is_rewritten or one.settings.use_regex for one in self.locations)

    @property
    def app_root(self) -> str:
        """Where requests for `/` alone are redirected to."""
        return next((one.settings.app_root for one in self.locations if one.settings.app_root), "")

    @property
    def names(self) -> tuple[str, ...]:
        """The host and its aliases."""
        return (self.host, *self.aliases)


def build_servers(sources: Iterable[Source], objects: Mapping[Key, Object], notes: Notes) -> tuple[Server, ...]:
    """All hosts, sorted by name."""
    by_age = sorted(sources, key=lambda source: (source.ingress.metadata.age_order[0], source.key))
    draft = _Draft(objects, notes)
    for source in by_age:
        if source.settings.canary is None:
            draft.add(source)
    for source in by_age:
        if source.settings.canary is not None:
            draft.add_canary(source, source.settings.canary)
    return tuple(draft.finish())


class _Host:
    """A server while Ingresses add to it."""

    def __init__(self) -> None:
        self.locations: dict[tuple[str, PathType], Location] = {}
        self.aliases: list[str] = []
        self.certificate: tuple[str, str] | None = None
        self.client_tls: ClientTLS | None = None
        self.wants_www = False
        self.is_passthrough = False


class _Draft:
    """All servers while Ingresses add to them."""

    def __init__(self, objects: Mapping[Key, Object], notes: Notes) -> None:
        self._objects, self._notes = objects, notes
        self._hosts: dict[str, _Host] = {}

    def add(self, source: Source) -> None:
        spec = source.ingress.spec
        hosts = dict.fromkeys(rule.host.lower() for rule in spec.rules) or {ANY_HOST: None}
        for host in hosts:
            self._describe(self._hosts.setdefault(host, _Host()), host, source)
        for rule in spec.rules:
            for entry in rule.http.paths if rule.http is not None else ():
                self._locate(self._hosts[rule.host.lower()], entry, source)
        if spec.default_backend is not None:
            for host in hosts:
                self._fall_back(self._hosts[host], spec.default_backend, source)

    def _describe(self, found: _Host, host: str, source: Source) -> None:
        settings = source.settings
        found.aliases += [name for name in settings.aliases if name not in found.aliases]
        found.certificate = found.certificate or _certificate(source, host)
        found.client_tls = found.client_tls or settings.client_tls
        found.wants_www = found.wants_www or settings.www_redirect
        found.is_passthrough = found.is_passthrough or settings.passthrough

    def _locate(self, found: _Host, entry: HTTPIngressPath, source: Source) -> None:
        path, kind = entry.path or "/", entry.path_type or "ImplementationSpecific"
        if (path, kind) in found.locations:
            self._notes.add(source.key, f"path {path}", "impossible", _TAKEN)
            return
        found.locations[path, kind] = Location(
            path=path,
            type=kind,
            ingress=source.key,
            settings=source.settings,
            backend=self._backend(entry.backend, source.key),
        )

    def _fall_back(self, found: _Host, backend: IngressBackend, source: Source) -> None:
        """The Ingress's default backend takes what no path takes, where nothing has `/` already."""
        if any(path == "/" and kind != "Exact" for path, kind in found.locations):
            return
        entry = HTTPIngressPath(path="/", path_type="Prefix", backend=backend)
        self._locate(found, entry, source)

    def add_canary(self, source: Source, canary: Canary) -> None:
        for rule in source.ingress.spec.rules:
            found = self._hosts.get(rule.host.lower())
            for entry in rule.http.paths if rule.http is not None else ():
                at = (entry.path or "/", entry.path_type or "ImplementationSpecific")
                main = found.locations.get(at) if found is not None else None
                backend = self._backend(entry.backend, source.key)
                if found is None or main is None or main.canary is not None or backend is None:
                    how = "there is no main Ingress with this path, or it has a canary already"
                    self._notes.add(source.key, f"path {at[0]}", "impossible", how)
                    continue
                found.locations[at] = msgspec.structs.replace(main, canary=(canary, backend))

    def _backend(self, backend: IngressBackend, key: Key) -> Backend | None:
        service = backend.service
        if service is None:
            self._notes.add(key, "backend.resource", "impossible", "only Services can be backends")
            return None
        port = service.port.number or self._named_port(Key("Service", key.namespace, service.name), service.port.name)
        if not port:
            how = f"no port {service.port.name!r}: the Service is not among the manifests, or does not have it"
            self._notes.add(key, f"backend {service.name}", "impossible", how)
            return None
        return Backend(namespace=key.namespace, service=service.name, port=port)

    def _named_port(self, key: Key, name: str) -> int:
        found = self._objects.get(key)
        ports = found.spec.ports if isinstance(found, Service) else ()
        return next((port.port for port in ports if port.name == name), 0)

    def finish(self) -> Iterator[Server]:
        for host, found in sorted(self._hosts.items()):
            if not found.locations:
                continue
            longest_first = sorted(found.locations.values(), key=lambda one: (len(one.path), one.path), reverse=True)
            yield Server(
                host=host,
                locations=tuple(longest_first),
                aliases=tuple(name for name in found.aliases if name not in self._hosts),
                certificate=found.certificate,
                client_tls=found.client_tls,
                redirected_host=self._redirected(host) if found.wants_www and host else "",
                is_passthrough=found.is_passthrough,
            )

    def _redirected(self, host: str) -> str:
        other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
        return "" if other in self._hosts or host.startswith("*") else other


def _certificate(source: Source, host: str) -> tuple[str, str] | None:
    """The Secret of the entry that names the host; else of one that names none."""
    listed = source.ingress.spec.tls
    named = (entry.secret_name for entry in listed if host in {name.lower() for name in entry.hosts})
    unnamed = (entry.secret_name for entry in listed if not entry.hosts)
    secret = next(named, "") or next(unnamed, "")
    return (source.key.namespace, secret) if secret else None
