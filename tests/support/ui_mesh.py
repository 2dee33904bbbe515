"""A small mesh for the page: manifests, and proxies that connect, accept, and refuse."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Iterable
from typing import Any

from adsclient import Client, node
from control_planes import Plane

from mizzen import protos
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE

HOSTILE = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
"""Text that would run, were it taken for HTML."""

_POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {app}, version: {version}}}}}
spec:
  serviceAccountName: {app}
  containers:
  - {{name: app, image: app, ports: [{{containerPort: 8080}}], readinessProbe: {{tcpSocket: {{port: 8080}}}}}}
  - {{name: istio-proxy, image: proxy, args: [proxy, sidecar]}}
status: {{phase: Running, podIP: {ip}, podIPs: [{{ip: {ip}}}], conditions: [{{type: Ready, status: "True"}}]}}
---
"""
PODS = {
    "front-0": ("front", "v1", "10.0.0.1"),
    "cart-v1-0": ("cart", "v1", "10.0.0.2"),
    "cart-v2-0": ("cart", "v2", "10.0.0.3"),
}
SERVICES = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: 10.96.0.2, selector: {app: cart}, ports: [{name: http, port: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-a, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.0.0.2], conditions: {ready: true}, targetRef: {kind: Pod, name: cart-v1-0, namespace: shop}}
- {addresses: [10.0.0.3], conditions: {ready: true}, targetRef: {kind: Pod, name: cart-v2-0, namespace: shop}}
"""
RULES = """
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: cart
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart]
  http:
  - name: testers
    match: [{headers: {x-tester: {exact: "yes"}}}]
    route: [{destination: {host: cart, subset: v2}}]
  - name: everybody
    timeout: 5s
    route:
    - {destination: {host: cart, subset: v1}, weight: 90}
    - {destination: {host: cart, subset: v2}, weight: 10}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: no-admin, namespace: shop}
spec:
  selector: {matchLabels: {app: cart}}
  action: DENY
  rules: [{to: [{operation: {paths: [/admin*]}}]}]
"""
BROKEN = f"""
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: '{HOSTILE.replace("'", "''")}', namespace: shop}}
spec: {{hosts: [cart], http: "{HOSTILE.replace('"', "'")}"}}
"""
"""An object that is not in force, with a name and a value that mean harm."""
SUBSET = "outbound|8080|v2|cart.shop.svc.cluster.local"


def pods() -> str:
    """The manifests of all pods."""
    return "".join(_POD.format(name=n, app=app, version=v, ip=ip) for n, (app, v, ip) in PODS.items())


def write(folder: pathlib.Path) -> None:
    """The mesh's manifests."""
    config = folder / "config"
    config.mkdir(exist_ok=True)
    (config / "pods.yaml").write_text(pods())
    (config / "services.yaml").write_text(SERVICES)
    (config / "rules.yaml").write_text(RULES)


class Proxies:
    """Clients that take what they are sent, until told otherwise."""

    def __init__(self) -> None:
        self.refusing: dict[str, str] = {}
        """Types of response that `cart-v2-0` refuses where they hold `SUBSET`, and its words."""

    async def follow(self, client: Client, name: str) -> None:
        """Accept or refuse what comes, and ask for what it names."""
        while True:
            answer = await client.read(within=600.0)
            words = self.refusing.get(answer.type_url) if name == "cart-v2-0" else None
            if words is not None and SUBSET in answer.resources:
                await client.nack(answer, words)
                continue
            await client.ack(answer)
            if answer.type_url == CLUSTER:
                names = (n for n in client.held[CLUSTER] if n.startswith("outbound|"))
                await client.subscribe(ENDPOINT, *names)
            if answer.type_url == LISTENER:
                await client.subscribe(ROUTE, *_route_names(client.held[LISTENER].values()))


def _route_names(listeners: Iterable[bytes]) -> list[str]:
    """Route configurations that listeners ask for."""
    found: set[str] = set()
    for data in listeners:
        listener: Any = protos.unpack(protos.message_class("google.protobuf.Any").FromString(data))
        for chain in (*listener.filter_chains, listener.default_filter_chain):
            for each in chain.filters:
                if each.typed_config.type_url.endswith("HttpConnectionManager"):
                    manager: Any = protos.unpack(each.typed_config)
                    if manager.HasField("rds"):
                        found.add(manager.rds.route_config_name)
    return sorted(found)


@contextlib.asynccontextmanager
async def connected(plane: Plane, *, refusing: bool = True) -> AsyncIterator[Proxies]:
    """All proxies of the mesh at the plain port; one refuses its clusters in hostile words."""
    proxies = Proxies()
    if refusing:
        proxies.refusing[CLUSTER] = f"{SUBSET}: {HOSTILE}"
    async with contextlib.AsyncExitStack() as stack:
        tasks = []
        for name, (app, version, ip) in PODS.items():
            labels = {"app": app, "version": version}
            who = node(name, "shop", ip=ip, service_account=app, LABELS=labels, MIZZEN_DIALECT="envoy", CLUSTER_ID="c1")
            client = await stack.enter_async_context(Client(plane.target("--grpcAddr"), node=who))
            tasks.append(asyncio.ensure_future(proxies.follow(client, name)))
            await client.subscribe(CLUSTER)
            await client.subscribe(LISTENER)
        try:
            yield proxies
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
