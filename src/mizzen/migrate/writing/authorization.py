"""Who may come in, as AuthorizationPolicies on the Gateway, and the mesh's extension providers that they name.

A condition that a policy cannot have makes it stricter: where paths are regular expressions, which policies do not
know, one restricted path restricts the host.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.migrate.findings import Notes
from mizzen.migrate.servers import Location, Server
from mizzen.migrate.settings import Access, ExternalAuth
from mizzen.migrate.writing.documents import ISTIO_SECURITY, Document, Target, document, host_name

_TOLD_BACK = ["location", "set-cookie", "www-authenticate", "content-type"]
_ASKED_WITH = ["authorization", "cookie", "x-forwarded-for", "x-forwarded-proto"]

Rule = dict[str, Any]


def authorization_policies(servers: Sequence[Server], target: Target, notes: Notes) -> Iterator[Document]:
    """A policy for each host that not everybody may reach."""
    for server in servers:
        denials: list[Rule] = []
        asked: dict[ExternalAuth, list[Rule]] = {}
        for access, operation in _restricted(server, servers, notes):
            denials.extend(_denials(access, operation))
            if access.auth is not None:
                asked.setdefault(access.auth, []).append({"to": [{"operation": operation}]} if operation else {})
        name = f"{target.name}-{host_name(server.host)}"
        if denials:
            yield _policy(target, f"{name}-addresses", {"action": "DENY", "rules": denials})
        for auth, rules in asked.items():
            spec = {"action": "CUSTOM", "provider": {"name": provider_name(auth)}, "rules": rules}
            yield _policy(target, f"{name}-{provider_name(auth)}", spec)


def _policy(target: Target, name: str, spec: dict[str, Any]) -> Document:
    reference = {"group": GATEWAY_GROUP, "kind": "Gateway", "name": target.name}
    return document(ISTIO_SECURITY, "AuthorizationPolicy", target.namespace, name, {"targetRefs": [reference], **spec})


def _denials(access: Access, operation: Rule) -> Iterator[Rule]:
    to = {"to": [{"operation": operation}]} if operation else {}
    if access.denied:
        yield {"from": [{"source": {"remoteIpBlocks": list(access.denied)}}], **to}
    if access.allowed:
        yield {"from": [{"source": {"notRemoteIpBlocks": list(access.allowed)}}], **to}


# -- which requests ---------------------------------------------------------------------------------------------------


def _restricted(server: Server, servers: Sequence[Server], notes: Notes) -> Iterator[tuple[Access, Rule]]:
    """Each restriction with the requests that it is for."""
    hosts = _hosts(server, servers)
    if server.is_regex:
        kinds = dict.fromkeys(one.settings.access for one in server.locations if one.settings.access)
        if len(kinds) > 1 or any(not one.settings.access for one in server.locations if kinds):
            for one in server.locations:
                notes.add(one.ingress, "access", "approximated", _WHOLE_HOST)
        yield from ((access, hosts) for access in kinds)
        return
    for location in server.locations:
        if location.settings.access:
            yield location.settings.access, {**hosts, **_paths(location, server.locations)}


_WHOLE_HOST = "policies know no regular expressions: restrictions of one path hold for the whole host"


def _hosts(server: Server, servers: Sequence[Server]) -> Rule:
    """The server's hosts with any port; a wildcard is told by the hosts that it is not, so that no port escapes it."""
    if server.host and all(not name.startswith("*") for name in server.names):
        return {"hosts": [text for name in server.names for text in (name, f"{name}:*")]}
    others = [name for other in servers if other is not server for name in other.names if name]
    not_hosts = [text for name in others for text in ((name,) if name.startswith("*") else (name, f"{name}:*"))]
    outside = [text for text in not_hosts if not _is_below(text, server)]
    return {"notHosts": outside} if outside else {}


def _is_below(host: str, server: Server) -> bool:
    """Whether a wildcard of the server has a part in what another wildcard stands for."""
    return host.startswith("*") and any(host.endswith(name[1:]) for name in server.names if name.startswith("*"))


def _paths(location: Location, all_of_host: Iterable[Location]) -> Rule:
    """The location's paths without those of longer locations with other restrictions."""
    texts = _texts(location)
    spared = [
        text
        for other in all_of_host
        if other is not location
        and other.settings.access != location.settings.access
        and (len(other.path) > len(location.path) or other.type == "Exact")
        for text in _texts(other)
    ]
    found: Rule = {}
    if texts:
        found["paths"] = texts
    if spared:
        found["notPaths"] = spared
    return found


def _texts(location: Location) -> list[str]:
    """The paths of a location as policies write them; none for all paths."""
    if location.type == "Exact":
        return [location.path]
    bare = location.path.rstrip("/")
    if not bare:
        return []
    if location.type == "ImplementationSpecific" and bare == location.path:
        return [f"{location.path}*"]
    return [bare, f"{bare}/*"]


# -- providers --------------------------------------------------------------------------------------------------------


def provider_name(auth: ExternalAuth) -> str:
    """What the mesh's config calls a service that is asked."""
    return host_name(f"{auth.host}-{auth.port}{auth.path}".replace("/", "-").rstrip("-"))


def extension_providers(servers: Iterable[Server]) -> list[dict[str, Any]]:
    """The entries of the mesh config's `extensionProviders`."""
    asked = {one.settings.access.auth: None for server in servers for one in server.locations}
    return [
        {
            "name": provider_name(auth),
            "envoyExtAuthzHttp": {
                "service": auth.host,
                "port": auth.port,
                **({"pathPrefix": auth.path} if auth.path.strip("/") else {}),
                "includeRequestHeadersInCheck": list(_ASKED_WITH),
                "headersToUpstreamOnAllow": list(auth.headers),
                "headersToDownstreamOnDeny": list(_TOLD_BACK),
            },
        }
        for auth in asked
        if auth is not None
    ]
