"""What the mesh under attack is made of: namespaces, pods, Services, gateways, Secrets and the mesh config.

Documents are short YAML: `apiVersion` follows from the kind, the namespace is `vault` where none is stated. The policies
are in `attack_policies`.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

import yaml
from plugged_authority import make_node
from traffic_certificates import ROOT as TRUSTED
from traffic_manifests import fill

from mizzen.ca import certificates, tokens
from mizzen.local.inventory import DEFAULT_MESH_CONFIG

DEFAULT_NORMALIZATION = "BASE"
NORMALIZATIONS = (DEFAULT_NORMALIZATION, "NONE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES")
"""In the order in which the tests go through them."""
PORTS = ("http=8080", "http=8083", "http=8084", "http=8085", "echo=9001", "echo=9002", "echo=9003")
UNDECLARED = ("http=8086",)
"""Ports that no Service has."""
GUARDED = ("strict", "deny", "allow", "token", "broken", "typo", "other")
PLANE_ROOT = make_node("plane", time.time())
PLANE_TOKEN_KEY = tokens.generate_key()

Document = dict[str, Any]


def documents(text: str) -> list[Document]:
    """Short YAML with all that is left out there."""
    found = [document for document in yaml.safe_load_all(text) if document]
    return [fill({**item, "metadata": {"namespace": "vault", **item["metadata"]}}) for item in found]


def build_mesh_config(normalization: str) -> list[Document]:
    """The mesh config with this way to treat paths."""
    config = yaml.safe_load(DEFAULT_MESH_CONFIG)
    config["pathNormalization"] = {"normalization": normalization}
    config["defaultConfig"]["proxyStatsMatcher"] = {"inclusionRegexps": [".*"]}
    config["extensionProviders"] = [_checker("checks", "other"), _checker("down-closed", "nobody")]
    config["extensionProviders"].append(_checker("down-open", "nobody", failOpen=True))
    data = {"mesh": yaml.safe_dump(config)}
    return [fill({"kind": "ConfigMap", "metadata": {"name": "istio", "namespace": "istio-system"}, "data": data})]


def _checker(name: str, service: str, **more: Any) -> Document:
    host = f"{service}.vault.svc.cluster.local"
    settings = {"service": host, "port": 80, "timeout": "2s", "includeRequestHeadersInCheck": ["x-answer"], **more}
    return {"name": name, "envoyExtAuthzHttp": settings}


def build_marker(name: str) -> Document:
    """A policy that says to every Envoy, and to nobody else, which revision it has."""
    rule = {"to": [{"operation": {"paths": [f"/{name}"], "ports": ["7"]}}]}
    metadata = {"name": name, "namespace": "istio-system"}
    return fill({"kind": "AuthorizationPolicy", "metadata": metadata, "spec": {"action": "DENY", "rules": [rule]}})


# -- pods -------------------------------------------------------------------------------------------------------------

_NAMESPACES = """
kind: Namespace
metadata: {name: vault, labels: {istio-injection: enabled}}
---
kind: Namespace
metadata: {name: ruins, labels: {istio-injection: enabled}}
---
kind: Namespace
metadata: {name: gateways}
---
kind: Namespace
metadata: {name: thieves}
---
kind: Namespace
metadata: {name: outside}
---
kind: Service
metadata: {name: nobody}
spec: {selector: {app: nobody}, ports: [{name: http, port: 80, targetPort: 8080}]}
"""


def build_base() -> list[Document]:
    """Namespaces, pods, Services and Secrets."""
    pods = [build_pod(name) for name in ("front", *GUARDED)]
    pods += [build_pod("ruin", "ruins"), build_pod("mallory", "outside"), build_plane()]
    gateways = [build_gateway("ingress", "gateways", trusted=1), build_gateway("thief", "thieves")]
    services = [build_service(name) for name in ("front", *GUARDED)]
    return [*documents(_NAMESPACES), *services, *pods, *gateways, *_build_secrets()]


def build_service(name: str) -> Document:
    ports = [{"name": kind_port.replace("=", "-"), "targetPort": _port(kind_port)} for kind_port in PORTS]
    for port in ports:
        port["name"] = port["name"].replace("echo", "tcp")
        port["port"] = port["targetPort"]
    ports.append({"name": "http", "port": 80, "targetPort": 8080})
    spec = {"selector": {"app": name}, "ports": ports}
    return fill({"kind": "Service", "metadata": {"name": name, "namespace": "vault"}, "spec": spec})


def _port(text: str) -> int:
    return int(text.partition("=")[2])


def build_pod(name: str, namespace: str = "vault") -> Document:
    """A pod with the program of `attack_app`; port 8085 of `strict` is not captured."""
    container = {
        "name": "app",
        "command": ["python3", "attack_app.py", "$(MIZZEN_ROOT)/control/app.sock", *PORTS, *UNDECLARED],
        "env": [{"name": "POD_NAME", "value": name}],
        "readinessProbe": {"tcpSocket": {"port": 8085}},
        "volumeMounts": [{"name": "control", "mountPath": "/control"}],
    }
    annotations = {"traffic.sidecar.istio.io/excludeInboundPorts": "8085"} if name == "strict" else {}
    spec = {
        "serviceAccountName": name,
        "containers": [container],
        "volumes": [{"name": "control", "emptyDir": {}}],
    }
    return _pod(name, namespace, {"app": name}, annotations, spec)


def build_gateway(name: str, namespace: str, *, trusted: int = 0) -> Document:
    """A gateway behind so many proxies of its own."""
    settings = {"gatewayTopology": {"numTrustedProxies": trusted}}
    annotations = {"inject.istio.io/templates": "gateway", "proxy.istio.io/config": json.dumps(settings)}
    labels = {"gateway": name, "sidecar.istio.io/inject": "true"}
    spec = {"serviceAccountName": name, "containers": [{"name": "istio-proxy", "image": "auto"}]}
    return _pod(name, namespace, labels, annotations, spec)


def build_plane() -> Document:
    """A control plane with its ports as they are by default, open to every pod where they are."""
    command = ["python3", "-m", "mizzen", "discovery", "--config", "$(MIZZEN_ROOT)/objects"]
    container = {
        "name": "discovery",
        "command": [*command, "--tokenKey", "$(MIZZEN_ROOT)/cacerts/token-key.pem"],
        "env": [{"name": "ROOT_CA_DIR", "value": "$(MIZZEN_ROOT)/cacerts"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("objects", "cacerts")],
    }
    volumes = [
        {"name": "objects", "configMap": {"name": "plane-objects"}},
        {"name": "cacerts", "secret": {"secretName": "plane-cacerts"}},
    ]
    return _pod("plane", "outside", {"app": "plane"}, {}, {"containers": [container], "volumes": volumes})


def _pod(
    name: str, namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str], spec: Document
) -> Document:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels), "annotations": dict(annotations)}
    return fill({"kind": "Pod", "metadata": metadata, "spec": spec})


def _build_secrets() -> list[Document]:
    edge, thief = TRUSTED.issue("edge.example"), TRUSTED.issue("thief.example")
    inside = """
apiVersion: v1
kind: Service
metadata: {name: nothing, namespace: default}
spec: {ports: [{name: http, port: 80}]}
"""
    cacerts = {
        "ca-cert.pem": PLANE_ROOT.pem.decode(),
        "ca-key.pem": certificates.encode_key(PLANE_ROOT.key).decode(),
        "cert-chain.pem": "",
        "root-cert.pem": PLANE_ROOT.pem.decode(),
        "token-key.pem": tokens.encode_private_key(PLANE_TOKEN_KEY).decode(),
    }
    return [
        _secret("edge-tls", "gateways", {"tls.crt": edge[0], "tls.key": edge[1], "ca.crt": TRUSTED.pem}),
        _secret("thief-tls", "thieves", {"tls.crt": thief[0], "tls.key": thief[1]}),
        _secret("plane-cacerts", "outside", cacerts),
        fill(
            {
                "kind": "ConfigMap",
                "metadata": {"name": "plane-objects", "namespace": "outside"},
                "data": {"objects.yaml": inside},
            }
        ),
    ]


def _secret(name: str, namespace: str, content: Mapping[str, str]) -> Document:
    return fill({"kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": dict(content)})
