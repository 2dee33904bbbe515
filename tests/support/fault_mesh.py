"""The mesh of the truth suite: pods, gateways and the mesh config, before any fault.

Callers: `client`; `scoped`, which sees little and may not leave; `blind`, which sees little and may; `outer`, without a
sidecar. Servers: `near`, which nobody guards; `ported` with a mode of mutual TLS for each port; `locked`, whose whole
namespace is STRICT; `guarded` for denials, tokens, authorizers and limits, each under paths of its own; `walled`, where
only what is allowed passes. `ingress` and `egress` are gateways. Providers of authorization: `asks` has an authorizer,
`gone-closed` and `gone-open` name one whose Service has no pod, `lost` one whose Service does not exist.
"""

from typing import Any

import yaml
from traffic_certificates import ROOT
from traffic_manifests import complete, fill, render
from traffic_mesh import build_gateway, build_pod

from mizzen.local.inventory import DEFAULT_MESH_CONFIG

INJECTED = ("traffic", "scoped", "blind", "ported", "locked", "guarded", "walled")
_SPACES = (*INJECTED, "outside", "gateways", "watched")
_PROGRAMS = (
    ("client", "traffic", {"app": "client", "team": "red"}),
    ("near", "traffic", {"app": "echo", "version": "v1"}),
    ("scoped", "scoped", {"app": "scoped"}),
    ("blind", "blind", {"app": "blind"}),
    ("ported", "ported", {"app": "ported"}),
    ("locked", "locked", {"app": "locked"}),
    ("guarded", "guarded", {"app": "guarded"}),
    ("walled", "walled", {"app": "walled"}),
    ("outer", "outside", {"app": "outer"}),
)

BASE = """
kind: Node
metadata: {name: here, labels: {place: here}}
---
kind: Service
metadata: {name: ingress, namespace: gateways}
spec:
  selector: {gateway: ingress}
  ports:
    - {name: probe, port: 7, targetPort: 7007}
    - {name: http, port: 80, targetPort: 8080}
    - {name: https, port: 443, targetPort: 8443}
    - {name: tcp, port: 9000, targetPort: 9000}
    - {name: tls, port: 15443, targetPort: 15443}
---
kind: Service
metadata: {name: egress, namespace: gateways}
spec:
  selector: {gateway: egress}
  ports:
    - {name: probe, port: 7, targetPort: 7007}
    - {name: http, port: 80, targetPort: 8080}
    - {name: https, port: 443, targetPort: 8443}
---
kind: Gateway
metadata: {name: probe, namespace: watched}
spec:
  selector: {traffic: gateway}
  servers: [{port: {number: 7, name: http, protocol: HTTP}, hosts: ["*"]}]
---
kind: Sidecar
metadata: {name: default, namespace: scoped}
spec:
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  egress: [{hosts: ["watched/*", "./*", "traffic/scope-shown.traffic.svc.cluster.local"]}]
---
kind: Sidecar
metadata: {name: default, namespace: blind}
spec:
  egress: [{hosts: ["watched/*", "./*"]}]
---
kind: PeerAuthentication
metadata: {name: by-port, namespace: ported}
spec:
  selector: {matchLabels: {app: ported}}
  mtls: {mode: PERMISSIVE}
  portLevelMtls: {8083: {mode: STRICT}, 8084: {mode: DISABLE}, 9001: {mode: STRICT}, 9002: {mode: DISABLE}}
---
kind: PeerAuthentication
metadata: {name: all-strict, namespace: locked}
spec: {mtls: {mode: STRICT}}
"""


def build_base() -> str:
    """Everything that is there before any fault."""
    spaces = [
        {"kind": "Namespace", "metadata": {"name": name, "labels": {"istio-injection": "enabled"}}} for name in INJECTED
    ]
    spaces += [{"kind": "Namespace", "metadata": {"name": name}} for name in _SPACES if name not in INJECTED]
    certificate, key = ROOT.issue("outer.example.com", "*.example.com")
    content = {"tls.crt": certificate, "tls.key": key, "ca.crt": ROOT.pem}
    secrets = [
        {"kind": "Secret", "metadata": {"name": "programs-tls", "namespace": space}, "stringData": content}
        for space in dict.fromkeys(space for _, space, _ in _PROGRAMS)
    ]
    pods = [build_pod(name, "here", space, labels=labels) for name, space, labels in _PROGRAMS]
    gateways = [build_gateway(name) for name in ("ingress", "egress")]
    filled = map(fill, [*spaces, _mesh_config(), *secrets])
    return render([*filled, *complete(BASE), *pods, *gateways])


def _mesh_config() -> dict[str, Any]:
    config = yaml.safe_load(DEFAULT_MESH_CONFIG)
    config["extensionProviders"] = [
        _authorizer("asks", "authorizer.outside.svc.cluster.local"),
        _authorizer("gone-closed", "authorizer-gone.outside.svc.cluster.local"),
        _authorizer("gone-open", "authorizer-gone.outside.svc.cluster.local", failOpen=True),
        _authorizer("gone-503", "authorizer-gone.outside.svc.cluster.local", statusOnError="503"),
        _authorizer("lost", "authorizer-lost.outside.svc.cluster.local"),
    ]
    data = {"mesh": yaml.safe_dump(config)}
    return {"kind": "ConfigMap", "metadata": {"name": "istio", "namespace": "istio-system"}, "data": data}


def _authorizer(name: str, service: str, **more: Any) -> dict[str, Any]:
    settings = {"service": service, "port": 80, "timeout": "2s", "includeRequestHeadersInCheck": ["x-answer"], **more}
    return {"name": name, "envoyExtAuthzHttp": settings}
