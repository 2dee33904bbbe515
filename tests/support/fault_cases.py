"""One fault of the truth suite: manifests that touch nobody else, the request that meets them, and the object at fault.

Every fault has hosts, paths or pods' ports of its own, so that all are in force at once. What a request meets is never
written here: `cause` is the object that was broken on purpose, and empty where nothing was. The helpers below write
the manifests that most faults begin with; `traffic_manifests` completes them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from traffic_manifests import service

ECHO = "app: echo"
HOME = "traffic"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what was done to it."""

    name: str
    family: str
    url: str
    manifests: tuple[str, ...] = ()
    cause: str = ""
    """`Kind/namespace/name` of the object that is broken; empty where no object is."""
    source: str = "client"
    """The pod whose program asks."""
    door: str = ""
    """`POD:PORT` of a gateway at which the request enters; it comes from outside then."""
    address: str = ""
    """The pod that is called, whatever the host resolves to."""
    method: str = "GET"
    headers: Mapping[str, str] = {}
    takes: float = 0.0
    answers: int = 200
    """What the program takes, and what it answers; 0 is a connection that it closes without an answer."""
    at_once: int = 1
    earlier: int = 0
    gives_up: float = 0.0
    """Seconds after which the caller has gone."""
    authorizer: int = 0
    """What an authorizer answers that is asked."""
    host: str = ""
    """The Host that is sent, where it is not the URL's."""
    papers: Mapping[str, str] = {}
    """The caller's own certificate and key."""
    is_wary: bool = True
    """Whether the caller verifies the certificate of a server to which it speaks TLS itself."""


def of_family(family: str, *faults: Mapping[str, Any]) -> tuple[Fault, ...]:
    return tuple(Fault(family=family, **fault) for fault in faults)


def fault(name: str, *manifests: str, url: str = "", **more: Any) -> dict[str, Any]:
    """A request to the host of the fault's own name, unless it says another."""
    return {"name": name, "url": url or f"http://{name}/", "manifests": manifests, **more}


def serving(name: str, namespace: str = HOME, **options: Any) -> str:
    """A Service in a namespace."""
    text = service(name, **{"selector": ECHO, **options})
    return text.replace(f"{{name: {name}}}", f"{{name: {name}, namespace: {namespace}}}", 1)


def routing(name: str, *routes: str, service_options: Mapping[str, Any] | None = None, more: str = "") -> str:
    """A Service, and a VirtualService of that name with these routes; `TO` in them is the way to the Service."""
    lines = "\n".join(f"    - {route.replace('TO', f'route: [{{destination: {{host: {name}}}}}]')}" for route in routes)
    return f"""
{serving(name, **(service_options or {}))}
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{name}]
  {more}
  http:
{lines}
---
"""


def rule(name: str, host: str, policy: str, more: str = "", namespace: str = HOME) -> str:
    """A DestinationRule that only its own namespace sees."""
    return f"""
kind: DestinationRule
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  host: {host}
  exportTo: ["."]
  trafficPolicy: {{{policy}}}
  {more}
---
"""


def entry(name: str, ports: str, what: str, resolution: str = "STATIC", more: str = "") -> str:
    """A ServiceEntry for NAME.example.com."""
    return f"""
kind: ServiceEntry
metadata: {{name: {name}}}
spec:
  hosts: [{name}.example.com]
  location: MESH_EXTERNAL
  ports: [{ports}]
  resolution: {resolution}
  {more}
  {what}
---
"""
