"""The traffic tests' Gateway of the Gateway API, and routes to it: a managed Gateway that the local mesh deploys itself.

`DOOR` is in the mesh from the start, as its pod takes longest. Its listeners are shared: a test has hosts of its own
under one of them, NAME.door.example.com where nothing else is said. `routed` writes a Service with an HTTPRoute for
it; rules are YAML as users write them, one item each.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from traffic_certificates import OTHER, ROOT, secret
from traffic_manifests import NAMESPACE, service
from traffic_programs import Answer, Program

PARENT = "{name: door, namespace: gateways}"
_ANYBODY = "allowedRoutes: {namespaces: {from: All}}"
_WELCOME = "allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {welcome: at-the-door}}}}"

DOOR = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: door, namespace: gateways}}
spec:
  gatewayClassName: istio
  allowedListeners: {{namespaces: {{from: Selector, selector: {{matchLabels: {{welcome: at-the-door}}}}}}}}
  tls:
    frontend:
      default: {{}}
      perPort:
        - port: 8443
          tls: {{validation: {{caCertificateRefs: [{{group: "", kind: ConfigMap, name: door-clients}}]}}}}
        - port: 8444
          tls:
            validation:
              mode: AllowInsecureFallback
              caCertificateRefs: [{{group: "", kind: ConfigMap, name: door-clients}}]
  listeners:
    - {{name: probe, port: 7, protocol: HTTP, {_ANYBODY}}}
    - {{name: http, port: 80, protocol: HTTP, {_ANYBODY}}}
    - {{name: own, port: 80, protocol: HTTP, hostname: "*.own.example.com"}}
    - {{name: chosen, port: 80, protocol: HTTP, hostname: "*.chosen.example.com", {_WELCOME}}}
    - name: only-grpc
      port: 80
      protocol: HTTP
      hostname: only-grpc.example.com
      allowedRoutes: {{namespaces: {{from: All}}, kinds: [{{kind: GRPCRoute}}]}}
    - {{name: wide, port: 80, protocol: HTTP, hostname: "*.wide.example.com", {_ANYBODY}}}
    - {{name: narrow, port: 80, protocol: HTTP, hostname: narrow.wide.example.com, {_ANYBODY}}}
    - name: https
      port: 443
      protocol: HTTPS
      hostname: "*.door.example.com"
      tls: {{certificateRefs: [{{name: door-cert}}]}}
      {_ANYBODY}
    - name: second
      port: 443
      protocol: HTTPS
      hostname: second.example.com
      tls: {{certificateRefs: [{{name: door-second}}]}}
      {_ANYBODY}
    - name: granted
      port: 443
      protocol: HTTPS
      hostname: granted.example.com
      tls: {{certificateRefs: [{{name: door-granted, namespace: outside}}]}}
      {_ANYBODY}
    - name: refused
      port: 443
      protocol: HTTPS
      hostname: refused.example.com
      tls: {{certificateRefs: [{{name: door-refused, namespace: outside}}]}}
      {_ANYBODY}
    - name: by-option
      port: 443
      protocol: HTTPS
      hostname: by-option.example.com
      tls:
        certificateRefs: [{{name: door-by-option}}]
        options: {{gateway.istio.io/tls-terminate-mode: MUTUAL}}
      {_ANYBODY}
    - {{name: passed, port: 443, protocol: TLS, hostname: "*.passed.example.com", tls: {{mode: Passthrough}}, {_ANYBODY}}}
    - name: opened
      port: 443
      protocol: TLS
      hostname: "*.opened.example.com"
      tls: {{mode: Terminate, certificateRefs: [{{name: door-opened}}]}}
      {_ANYBODY}
    - {{name: known, port: 8443, protocol: HTTPS, tls: {{certificateRefs: [{{name: door-cert}}]}}, {_ANYBODY}}}
    - {{name: lenient, port: 8444, protocol: HTTPS, tls: {{certificateRefs: [{{name: door-cert}}]}}, {_ANYBODY}}}
    - {{name: tcp, port: 9000, protocol: TCP, {_ANYBODY}}}
    - {{name: tcp-split, port: 9001, protocol: TCP, {_ANYBODY}}}
---
kind: ReferenceGrant
metadata: {{name: door-certificate, namespace: outside}}
spec:
  from: [{{group: gateway.networking.k8s.io, kind: Gateway, namespace: gateways}}]
  to: [{{group: "", kind: Secret, name: door-granted}}]
---
"""


def build_door() -> str:
    """The Gateway with its certificates and trusted roots."""
    certificates = [
        secret("door-cert", "door.example.com", "*.door.example.com"),
        secret("door-second", "second.example.com"),
        secret("door-by-option", "by-option.example.com", ca=True),
        secret("door-opened", "*.opened.example.com"),
        secret("door-granted", "granted.example.com", namespace="outside"),
        secret("door-refused", "refused.example.com", namespace="outside"),
    ]
    return DOOR + "".join(certificates) + authority("door-clients", "gateways")


def authority(name: str, namespace: str, *, trusted: bool = True) -> str:
    """A ConfigMap with roots: those whom the tests' certificates come from, or somebody else's."""
    document = {
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"ca.crt": (ROOT if trusted else OTHER).pem},
    }
    return "\n" + yaml.safe_dump(document, sort_keys=False) + "---\n"


def route(
    name: str,
    rules: str,
    *,
    kind: str = "HTTPRoute",
    parents: str = PARENT,
    hosts: str | None = None,
    namespace: str = NAMESPACE,
    created: str = "2026-01-01",
) -> str:
    """A route with these rules, for NAME.door.example.com unless other hosts are said; `""` is any host."""
    hosts = f"{name}.door.example.com" if hosts is None else hosts
    lines = "\n".join(f"    {line}" for line in rules.strip("\n").splitlines())
    return f"""
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}, creationTimestamp: "{created}T00:00:00Z"}}
spec:
  parentRefs: [{parents}]
  {f"hostnames: [{hosts}]" if hosts else ""}
  rules:
{lines}
---
"""


def routed(name: str, rules: str, *, selector: str = "app: echo", **options: Any) -> str:
    """A Service of that name and a route for it."""
    return service(name, selector=selector) + route(name, rules, **options)


def to(*names: str, more: str = "") -> str:
    """Backends, all with the same share."""
    return "backendRefs: [" + ", ".join(f"{{name: {name}, port: 80{more}}}" for name in names) + "]"


def marked(mark: str) -> str:
    """A filter that writes into the request which rule took it."""
    return f"{{type: RequestHeaderModifier, requestHeaderModifier: {{set: [{{name: x-route, value: {mark}}}]}}}}"


def choice(backend: str, matches: Mapping[str, str]) -> str:
    """Rules that say at the receiver which of them took a request: matches by mark, an empty one for no match."""
    return "\n".join(
        f"- {{{f'matches: [{match}], ' if match else ''}filters: [{marked(mark)}], {to(backend)}}}"
        for mark, match in matches.items()
    )


class Door:
    """The Gateway as somebody outside the mesh meets it."""

    def __init__(self, outer: Program, address: str) -> None:
        self._outer = outer
        self.address = address

    def get(self, name: str, path: str = "/", *, port: int = 80, **more: Any) -> Answer:
        """One request for NAME.door.example.com, or for a name with dots as it is."""
        (answer,) = self.send(name, path, port=port, **more)
        return answer

    def send(self, name: str, path: str = "/", *, port: int = 80, **more: Any) -> list[Answer]:
        host = name if "." in name else f"{name}.door.example.com"
        scheme = "https" if "tls" in more else "http"
        return self._outer.send(f"{scheme}://{host}{path}", address=f"{self.address}:{port}", **more)

    def took(self, name: str, path: str = "/", **more: Any) -> str | int:
        """The mark of the rule that took a request; the status where none did."""
        answer = self.get(name, path, **more)
        return answer.route if answer.status == 200 else answer.status
