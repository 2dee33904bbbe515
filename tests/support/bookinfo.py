"""The pods and Services that Istio's own documentation describes, as manifests, and descriptions of them."""

import pathlib

import cli_runs

REVIEWS_V1 = "reviews-v1-5b95b546f7-nbqcv"
REVIEWS_V2 = "reviews-v2-86786c98bb-2xk4p"

_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{app: {app}, version: {version}}}
  annotations: {{istio.io/rev: default}}
spec:
  containers:
  - {{name: {app}, image: app, ports: [{{containerPort: 9080}}]}}
  - {{name: istio-proxy, image: proxy, ports: [{{name: http-envoy-prom, containerPort: 15090}}]}}
status:
  phase: Running
  podIP: {address}
  conditions: [{{type: Ready, status: "True"}}]
  containerStatuses: [{{name: {app}, ready: true}}, {{name: istio-proxy, ready: true}}]
"""

_SERVICE = """
apiVersion: v1
kind: Service
metadata: {{name: {app}, namespace: {namespace}}}
spec: {{clusterIP: {address}, selector: {{app: {app}}}, ports: [{{name: http, port: 9080}}]}}
"""

GATEWAY = """
apiVersion: v1
kind: Service
metadata: {name: istio-ingressgateway, namespace: istio-system}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.20
  selector: {istio: ingressgateway}
  ports: [{name: http2, port: 80, targetPort: 8080}, {name: status, port: 15021}]
status: {loadBalancer: {ingress: [{ip: 192.0.2.10}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: ingress-0, namespace: istio-system, labels: {istio: ingressgateway}}
spec: {containers: [{name: istio-proxy, image: proxy}]}
status: {phase: Running, podIP: 10.1.0.20}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: bookinfo, namespace: default}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
"""

SUBSETS = """
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: default}
spec:
  host: reviews
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
  - {name: v3, labels: {version: v3}}
"""


def pod(name: str, *, app: str, version: str, address: str, namespace: str = "default") -> str:
    """A pod with a sidecar."""
    return _POD.format(name=name, app=app, version=version, address=address, namespace=namespace)


def service(app: str, address: str, namespace: str = "default") -> str:
    """Its Service."""
    return _SERVICE.format(app=app, address=address, namespace=namespace)


BASE = "---".join(
    (
        service("reviews", "10.96.1.1"),
        pod(REVIEWS_V1, app="reviews", version="v1", address="10.1.1.1"),
        pod(REVIEWS_V2, app="reviews", version="v2", address="10.1.1.2"),
    )
)


def virtual_service(*routes: str, name: str = "reviews", extra: str = "") -> str:
    """A VirtualService of `reviews` with these routes, each in YAML's flow style."""
    listed = "".join(f"\n  - {route}" for route in routes)
    return (
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\n"
        f"metadata: {{name: {name}, namespace: default}}\nspec:\n  hosts: [reviews]\n{extra}  http:{listed}\n"
    )


def describe(folder: pathlib.Path, *arguments: str, objects: tuple[str, ...]) -> str:
    """What is printed for these objects."""
    path = folder / "objects.yaml"
    path.write_text("\n---\n".join(objects))
    result = cli_runs.run("describe", *arguments, "-f", path)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)
