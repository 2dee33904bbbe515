"""A mesh in which every way to say something about TLS is said, for `tls-check` to foretell.

Four clients: `caller` and `other` have sidecars and see different DestinationRules, `naked` has none, and `ingress` is a
gateway that routes each HTTP Service by a host of its own. Five servers:
`inherit` under the mesh's STRICT, `open` PERMISSIVE, `off` DISABLE, `mixed` with policies for workload and ports, and
`plain` without a sidecar. The Services over them, and ServiceEntries, carry the rules of all modes.
"""

from collections.abc import Iterator
from typing import Any

from traffic_certificates import ROOT
from traffic_manifests import complete, fill, render
from traffic_mesh import build_gateway, build_pod

GATEWAY = "ingress"
CLIENTS = {"caller": "calling", "other": "elsewhere", "naked": "bare", GATEWAY: "gateways"}
_PORTS = {"https": 443, "tcp": 9000, "grpc": 9090}
SERVERS = {"inherit": "inherit", "open": "open", "off": "off", "mixed": "mixed", "plain": "bare"}
"""Pods with their namespaces; clients the same."""

_BASE = """
kind: Namespace
metadata: {name: watched}
---
kind: Namespace
metadata: {name: bare}
---
kind: Namespace
metadata: {name: gateways}
---
kind: Service
metadata: {name: ingress, namespace: gateways}
spec:
  selector: {gateway: ingress}
  ports: [{name: probe, port: 7, targetPort: 7007}, {name: http, port: 80, targetPort: 8080}]
---
kind: Gateway
metadata: {name: probe, namespace: watched}
spec:
  selector: {traffic: gateway}
  servers: [{port: {number: 7, name: http, protocol: HTTP}, hosts: ["*"]}]
---
kind: Node
metadata: {name: here, labels: {place: here}}
---
kind: PeerAuthentication
metadata: {name: mesh, namespace: istio-system}
spec: {mtls: {mode: STRICT}}
---
kind: PeerAuthentication
metadata: {name: ports, namespace: inherit}
spec:
  selector: {matchLabels: {app: inherit}}
  portLevelMtls: {8085: {mode: PERMISSIVE}}
---
kind: PeerAuthentication
metadata: {name: default, namespace: open}
spec: {mtls: {mode: PERMISSIVE}}
---
kind: PeerAuthentication
metadata: {name: default, namespace: "off"}
spec: {mtls: {mode: DISABLE}}
---
kind: PeerAuthentication
metadata: {name: default, namespace: mixed}
spec: {mtls: {mode: STRICT}}
---
kind: PeerAuthentication
metadata: {name: own, namespace: mixed}
spec:
  selector: {matchLabels: {app: mixed}}
  mtls: {mode: PERMISSIVE}
  portLevelMtls: {8083: {mode: STRICT}, 8084: {mode: DISABLE}, 9000: {mode: STRICT}}
"""

_SERVICES = """
open-http open http 8080
open-tcp open tcp 9000
open-auto open - 8081
open-heads open http 8083 headless
open-https open https 8443
open-grpc open grpc 9090
in-http inherit http 8080
in-tcp inherit tcp 9000
in-port inherit http 8085
in-auto inherit - 8081
in-heads inherit http 8083 headless
in-https inherit https 8443
off-http off http 8080
off-tcp off tcp 9000
off-https off https 8443
mix-http mixed http 8080
mix-strict mixed http 8083
mix-off mixed http 8084
mix-tcp mixed tcp 9000
bare-http plain http 8080
bare-tcp plain tcp 9000
bare-https plain https 8443
bare-heads plain http 8083 headless
disabled-in inherit http 8080
disabled-open open http 8080
disabled-tcp inherit tcp 9000
mutual-open open http 8080
mutual-off off http 8080
mutual-off-tcp off tcp 9000
mutual-bare plain http 8080
simple-in inherit http 8080
simple-open open http 8080
simple-bare plain http 8443
own-bare plain http 8443
subset-in inherit http 8080
wild-one off http 8086
"""
"""Name, server, protocol (`-` leaves it out), target port."""

_RULES = {
    "disabled-in": "tls: {mode: DISABLE}",
    "disabled-open": "tls: {mode: DISABLE}",
    "disabled-tcp": "tls: {mode: DISABLE}",
    "mutual-open": "tls: {mode: ISTIO_MUTUAL}",
    "mutual-off": "tls: {mode: ISTIO_MUTUAL}",
    "mutual-off-tcp": "tls: {mode: ISTIO_MUTUAL}",
    "mutual-bare": "tls: {mode: ISTIO_MUTUAL}",
    "simple-in": "tls: {mode: SIMPLE, insecureSkipVerify: true}",
    "simple-open": "tls: {mode: SIMPLE, insecureSkipVerify: true}",
    "simple-bare": "tls: {mode: SIMPLE, insecureSkipVerify: true}",
    "in-port": "{portLevelSettings: [{port: {number: 80}, tls: {mode: DISABLE}}]}",
}
"""Traffic policies by Service, seen by `caller` only."""

_MORE = """
kind: Gateway
metadata: {name: door, namespace: gateways}
spec:
  selector: {gateway: ingress}
  servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*.door.example.com"]}]
---
kind: DestinationRule
metadata: {name: door, namespace: gateways}
spec:
  host: open-auto.open.svc.cluster.local
  exportTo: ["."]
  trafficPolicy: {tls: {mode: DISABLE}}
---
kind: DestinationRule
metadata: {name: door-mutual, namespace: gateways}
spec:
  host: off-http.off.svc.cluster.local
  exportTo: ["."]
  trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}
---
kind: DestinationRule
metadata: {name: door-plain, namespace: gateways}
spec:
  host: in-http.inherit.svc.cluster.local
  exportTo: ["."]
  trafficPolicy: {tls: {mode: DISABLE}}
---
kind: DestinationRule
metadata: {name: own-bare, namespace: calling}
spec:
  host: own-bare.bare.svc.cluster.local
  workloadSelector: {matchLabels: {app: caller}}
  exportTo: ["."]
  trafficPolicy: {tls: {mode: MUTUAL, credentialName: caller-tls, insecureSkipVerify: true}}
---
kind: DestinationRule
metadata: {name: subset-in, namespace: calling}
spec:
  host: subset-in.inherit.svc.cluster.local
  exportTo: ["."]
  trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}
  subsets: [{name: plain, labels: {app: inherit}, trafficPolicy: {tls: {mode: DISABLE}}}]
---
kind: VirtualService
metadata: {name: subset-in, namespace: calling}
spec:
  hosts: [subset-in.inherit.svc.cluster.local]
  exportTo: ["."]
  http: [{route: [{destination: {host: subset-in.inherit.svc.cluster.local, subset: plain}}]}]
---
kind: DestinationRule
metadata: {name: wild, namespace: elsewhere}
spec:
  host: "*.off.svc.cluster.local"
  exportTo: ["."]
  trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}
"""

_ENTRIES = (
    ("entry-plain", "{number: 80, name: http, protocol: HTTP, targetPort: 8080}", "plain", "MESH_EXTERNAL", ""),
    ("entry-https", "{number: 443, name: https, protocol: HTTPS, targetPort: 8443}", "plain", "MESH_EXTERNAL", ""),
    (
        "entry-simple",
        "{number: 80, name: http, protocol: HTTP, targetPort: 8443}",
        "plain",
        "MESH_EXTERNAL",
        "tls: {mode: SIMPLE, insecureSkipVerify: true}",
    ),
    (
        "entry-mutual",
        "{number: 80, name: http, protocol: HTTP, targetPort: 8080}",
        "plain",
        "MESH_EXTERNAL",
        "tls: {mode: ISTIO_MUTUAL}",
    ),
    ("entry-tls-by-http", "{number: 80, name: http, protocol: HTTP, targetPort: 8443}", "plain", "MESH_EXTERNAL", ""),
    ("entry-in", "{number: 80, name: http, protocol: HTTP, targetPort: 8080}", "inherit", "MESH_INTERNAL", ""),
    ("entry-open", "{number: 80, name: http, protocol: HTTP, targetPort: 8080}", "open", "MESH_INTERNAL", ""),
)


def build_base() -> str:
    """Pods, namespaces and policies."""
    injected = ["calling", "elsewhere", *(space for space in SERVERS.values() if space != "bare")]
    spaces = [
        {"kind": "Namespace", "metadata": {"name": name, "labels": {"istio-injection": "enabled"}}}
        for name in dict.fromkeys(injected)
    ]
    certificate, key = ROOT.issue("program.example.com", "*.example.com", "*.bare.svc.cluster.local")
    content = {"tls.crt": certificate, "tls.key": key, "ca.crt": ROOT.pem}
    namespaces = [*dict.fromkeys(injected), "bare"]
    secrets = [_secret("programs-tls", space, content) for space in namespaces]
    pods = [
        build_pod("caller", "here", "calling", labels={"app": "caller"}),
        build_pod("other", "here", "elsewhere", labels={"app": "other"}),
        build_gateway(GATEWAY),
        build_pod("naked", "here", "bare", labels={"app": "naked"}),
        *(build_pod(name, "here", space, labels={"app": name}) for name, space in SERVERS.items()),
    ]
    own = _secret("caller-tls", "calling", content)
    return render([*map(fill, spaces), *complete(_BASE), *map(fill, secrets), fill(own), *pods])


def _secret(name: str, namespace: str, content: dict[str, str]) -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": content}


def targets() -> Iterator[tuple[str, int, str, str]]:
    """Host, port, protocol and server of every port that is called."""
    for line in _SERVICES.split("\n")[1:-1]:
        name, server, protocol, target, *more = line.split()
        host = f"{name}.{SERVERS[server]}.svc.cluster.local"
        yield host, _port(protocol, target, bool(more)), "http" if protocol == "-" else protocol, server
    for name, port, server, _, _ in _ENTRIES:
        is_https = "HTTPS" in port
        yield f"{name}.example.com", 443 if is_https else 80, "https" if is_https else "http", server


def _port(protocol: str, target: str, is_headless: bool) -> int:
    return int(target) if is_headless else _PORTS.get(protocol, 80)


def build_services() -> list[str]:
    """Services, ServiceEntries and rules; `$(POD)` in them is a pod's address."""
    services, rules = map(_service, _SERVICES.split("\n")[1:-1]), map(_rule, _RULES.items())
    return [*services, *rules, _MORE, *map(_entry, _ENTRIES), *_doors()]


def door(host: str) -> str:
    """The host by which the gateway knows a Service."""
    return f"{host.partition('.')[0]}.door.example.com"


def _doors() -> Iterator[str]:
    for host, port, protocol, _ in targets():
        if protocol == "http":
            yield f"""
kind: VirtualService
metadata: {{name: {host.partition(".")[0]}, namespace: gateways}}
spec:
  hosts: [{door(host)}]
  gateways: [door]
  http: [{{route: [{{destination: {{host: {host}, port: {{number: {port}}}}}}}]}}]
---
"""


def _service(line: str) -> str:
    name, server, protocol, target, *more = line.split()
    port = _port(protocol, target, bool(more))
    named = "" if protocol == "-" else f"name: {protocol}, "
    heads = "clusterIP: None, " if more else ""
    return f"""
kind: Service
metadata: {{name: {name}, namespace: "{SERVERS[server]}"}}
spec: {{{heads}selector: {{app: "{server}"}}, ports: [{{{named}port: {port}, targetPort: {target}}}]}}
---
"""


def _rule(item: tuple[str, str]) -> str:
    name, policy = item
    server = next(line.split()[1] for line in _SERVICES.split("\n")[1:-1] if line.split()[0] == name)
    wrapped = policy if policy.startswith("{") else f"{{{policy}}}"
    return f"""
kind: DestinationRule
metadata: {{name: {name}, namespace: calling}}
spec: {{host: {name}.{SERVERS[server]}.svc.cluster.local, exportTo: ["."], trafficPolicy: {wrapped}}}
---
"""


def _entry(entry: tuple[str, str, str, str, str]) -> str:
    name, port, server, location, policy = entry
    rule = f"""
kind: DestinationRule
metadata: {{name: {name}, namespace: calling}}
spec: {{host: {name}.example.com, exportTo: ["."], trafficPolicy: {{{policy}}}}}
---
"""
    return f"""
kind: ServiceEntry
metadata: {{name: {name}, namespace: bare}}
spec:
  hosts: [{name}.example.com]
  location: {location}
  ports: [{port}]
  resolution: STATIC
  endpoints: [{{address: $({server})}}]
---
{rule if policy else ""}"""
