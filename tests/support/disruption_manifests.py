"""The manifests of the disruption test: what its mesh is made of before the first edit, as functions of what is edited.

Out: `START`, a map from file to text, and the makers of each file's text.
"""

import yaml
from traffic_certificates import ROOT

NETWORKING = "apiVersion: networking.istio.io/v1"

State = dict[str, str]


def mesh_config(more: str = "") -> str:
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: istio, namespace: istio-system}}
data:
  mesh: |
    accessLogFile: /dev/stdout
    rootNamespace: istio-system
    trustDomain: cluster.local
{more}
    defaultConfig:
      concurrency: 1
      drainDuration: 1s
      proxyMetadata: {{ISTIO_META_DNS_CAPTURE: "true"}}
"""


def keeper(name: str, namespace: str) -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: {name}}}}}
spec:
  serviceAccountName: {name}
  containers:
    - name: app
      command: [python3, disruption_app.py, keep, "$(MIZZEN_ROOT)/control/app.sock"]
      volumeMounts: [{{name: control, mountPath: /control}}]
  volumes: [{{name: control, emptyDir: {{}}}}]
"""


def server(name: str, ports: str, *, replicas: int = 1, labels: str = "", annotations: str = "{}") -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: apps, annotations: {annotations}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}, version: v1{labels}}}}}
    spec:
      serviceAccountName: {name}
      containers:
        - name: app
          command: [python3, disruption_app.py, serve, {ports}]
          readinessProbe: {{tcpSocket: {{port: {ports.partition(",")[0]}}}}}
"""


def service(
    name: str, app: str, ports: str, *, annotations: str = "{}", namespace: str = "apps", labels: str = "{}"
) -> str:
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}, annotations: {annotations}, labels: {labels}}}
spec:
  selector: {{app: {app}}}
  ports: [{ports}]
"""


HTTP = "{name: http, port: 80, targetPort: 8080}"
TCP = "{name: tcp, port: 9000, targetPort: 9000}"

PODS = (
    """
apiVersion: v1
kind: Namespace
metadata: {name: apps, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: other, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: outside}
---
apiVersion: v1
kind: Namespace
metadata: {name: watched}
---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Pod
metadata:
  name: gateway
  namespace: istio-system
  labels: {app: gateway, sidecar.istio.io/inject: "true"}
  annotations: {inject.istio.io/templates: gateway}
spec:
  serviceAccountName: gateway
  containers: [{name: istio-proxy, image: auto}]
---
apiVersion: v1
kind: Service
metadata: {name: gateway, namespace: istio-system}
spec:
  selector: {app: gateway}
  ports:
    - {name: probe, port: 7, targetPort: 7007}
    - {name: http, port: 80, targetPort: 8080}
    - {name: http-more, port: 81, targetPort: 8081}
    - {name: https, port: 443, targetPort: 8443}
"""
    + keeper("client", "apps")
    + keeper("caller", "other")
    + keeper("outer", "outside")
)

WS_PORTS = '"8080", "9000", "8085"'
SIDE_PORTS = '"8090"'


def virtual_service(route: str = "", *, shares: tuple[int, int] = (90, 10), before: str = "") -> str:
    indented = "".join(f"\n      {line}" for line in route.splitlines() if line)
    return f"""
{NETWORKING}
kind: VirtualService
metadata: {{name: ws, namespace: apps}}
spec:
  hosts: [ws.apps.svc.cluster.local]
  http:
{before}
    - name: sockets{indented}
      route:
        - {{destination: {{host: ws.apps.svc.cluster.local, subset: v1, port: {{number: 80}}}}, weight: {shares[0]}}}
        - {{destination: {{host: ws.apps.svc.cluster.local, subset: all, port: {{number: 80}}}}, weight: {shares[1]}}}
"""


_PLAIN = "connectionPool: {tcp: {connectTimeout: 10s}}"


def destination_rule(policy: str = "", subsets: str = "") -> str:
    return f"""
{NETWORKING}
kind: DestinationRule
metadata: {{name: ws, namespace: apps}}
spec:
  host: ws.apps.svc.cluster.local
  trafficPolicy: {{{policy or _PLAIN}}}
  subsets:
    - {{name: v1, labels: {{version: v1}}}}
    - {{name: all, labels: {{app: ws}}}}
{subsets}
"""


def credential() -> str:
    """The Secret of the gateway's server, with a certificate that is new each time."""
    certificate, key = ROOT.issue("ws.example")
    content = {"tls.crt": certificate, "tls.key": key}
    metadata = {"name": "door", "namespace": "istio-system"}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "stringData": content}
    )


def gateway(more: str = "", tls: str = "") -> str:
    return f"""
{NETWORKING}
kind: Gateway
metadata: {{name: door, namespace: apps}}
spec:
  selector: {{app: gateway}}
  servers:
    - {{port: {{number: 80, name: http, protocol: HTTP}}, hosts: ["ws.example"]}}
    - port: {{number: 443, name: https, protocol: HTTPS}}
      hosts: [ws.example]
      tls: {{mode: SIMPLE, credentialName: door{tls}}}
{more}
---
{NETWORKING}
kind: VirtualService
metadata: {{name: door, namespace: apps}}
spec:
  hosts: [ws.example]
  gateways: [door]
  http: [{{route: [{{destination: {{host: ws.apps.svc.cluster.local, port: {{number: 80}}}}}}]}}]
"""


START: State = {
    "mesh": mesh_config(),
    "pods": PODS,
    "ws": server("ws", WS_PORTS),
    "ws-service": service("ws", "ws", f"{HTTP}, {TCP}"),
    "side": server("side", SIDE_PORTS),
    "side-service": service("side", "side", "{name: http, port: 8090, targetPort: 8090}"),
    "routes": virtual_service(),
    "rule": destination_rule(),
    "gateway": gateway(),
    "credential": credential(),
}
