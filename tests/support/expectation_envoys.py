"""Real Envoys for tables of tests: one stands for the client, and for the sidecars of all pods that it may reach.

Everything is what the world of a table holds for these proxies, in dialect `envoy`. Changed is what one process on one
machine must change: networks `10.x` become others of `127` in all resources alike, listeners bind the addresses that
the capture would lead to them, clusters towards programs lead to echo servers, names of one sidecar's clusters and
secrets are told from another's, access logs tell Envoy's reasons, and routes wait however slow the machine is.
"""

import asyncio
import contextlib
import functools
import json
import pathlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from aiohttp import web
from claims import own_number
from static_envoy import started
from traffic_certificates import ROOT

from mizzen.agent.binaries import find_envoy
from mizzen.diagnose.trace import names
from mizzen.diagnose.trace.world import Workload, World

ID = "x-expectation"
_MANAGER = "envoy.filters.network.http_connection_manager"
_LOGGER = "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
_ADDRESS = re.compile(r"\b10\.(\d+)\.(\d+\.\d+)\b")
_PARTS = {"HUNDRED": 100, "TEN_THOUSAND": 10_000, "MILLION": 1_000_000}
_SELDOM = 0.05
_LOOPBACK = [number for number in range(1, 256) if number not in (11, 89)]
"""Second numbers of addresses of this machine; other tests have the rest."""


def here(address: str) -> str:
    """The address of this machine that stands for one of the mesh."""
    return _ADDRESS.sub(lambda found: f"127.{_own_network(found[1])}.{found[2]}", address)


@functools.cache
def _own_network(_: str) -> int:
    """What stands for a network of the mesh; tests that run at the same time have networks of their own."""
    return own_number("network of loopback", _LOOPBACK)


class Bench:
    """The Envoy of one client, with the servers around it."""

    def __init__(self, world: World, client: Workload, folder: pathlib.Path) -> None:
        self.world, self.client, self.folder = world, client, folder
        self.log = folder / "access.log"
        self._programs: dict[tuple[str, int], int] = {}
        """Ports of the programs, by pod and the port they stand for."""
        self._secrets: dict[str, dict[str, Any]] = {}
        self._entries: dict[str, list[dict[str, Any]]] = {}
        self._read = 0

    # -- the configuration --------------------------------------------------------------------------------------------

    def bootstrap(self) -> dict[str, Any]:
        """All resources, static."""
        parts = [self._of_client(), *(self._of_server(pod) for pod in self._servers())]
        resources = {kind: [item for part in parts for item in part[kind]] for kind in ("listeners", "clusters")}
        text = json.dumps({**resources, "secrets": list(self._secrets.values())})
        return {
            "node": {"id": self.client.reference, "cluster": "expectations"},
            "staticResources": json.loads(here(text)),
        }

    def _servers(self) -> list[Workload]:
        return [pod for pod in self.world.pods if pod.proxy == "sidecar"]

    def _of_client(self) -> dict[str, list[Any]]:
        held = self.world.holdings(self.client)
        listeners = [
            self._finish(self._bound(_untyped(listener)), self.client)
            for listener in held.listeners.values()
            if not listener["name"].startswith("virtual") and self._is_callable(listener)
        ]
        clusters = []
        for name, cluster in held.clusters.items():
            if name.startswith(("outbound", "BlackHole", "Passthrough")):
                plain = {key: value for key, value in _untyped(cluster).items() if key != "edsClusterConfig"}
                if cluster.get("type") == "EDS":
                    plain |= {
                        "type": "STATIC",
                        "loadAssignment": _untyped(held.endpoints.get(name, {"clusterName": name})),
                    }
                clusters.append(self._finish(plain, self.client))
        return {"listeners": listeners, "clusters": clusters}

    def _is_callable(self, listener: Any) -> bool:
        """Whether it has an address of its own; those of headless pods are where the pods' servers listen."""
        own = listener["address"]["socketAddress"]["address"]
        if self.client.proxy == "router":
            return True
        if own == "0.0.0.0":
            return bool(list(self._addresses(listener["address"]["socketAddress"]["portValue"])))
        return self.world.at(own) is None

    def _bound(self, listener: Any) -> dict[str, Any]:
        """The listener at the addresses for which it is meant, as no capture leads there."""
        port = listener["address"]["socketAddress"]["portValue"]
        own = listener["address"]["socketAddress"]["address"]
        addresses = [own] if own != "0.0.0.0" else list(self._addresses(port))
        first, *more = [{"socketAddress": {"address": each, "portValue": port}} for each in addresses]
        kept = {k: v for k, v in listener.items() if k not in ("bindToPort", "useOriginalDst", "additionalAddresses")}
        return {**kept, "address": first, "additionalAddresses": [{"address": each} for each in more]}

    def _addresses(self, port: int) -> Iterator[str]:
        """Where something connects for a wildcard listener of that port."""
        if self.client.proxy == "router":
            yield self.client.addresses[0]
            return
        taken = {
            listener["address"]["socketAddress"]["address"]
            for listener in self.world.holdings(self.client).listeners.values()
            if listener["address"]["socketAddress"]["portValue"] == port
        }
        for _, service in names.services(self.world):
            ip = service.spec.cluster_ip
            if ip not in ("", "None") and ip not in taken and any(each.port == port for each in service.spec.ports):
                yield ip

    def _of_server(self, pod: Workload) -> dict[str, list[Any]]:
        """What receives for the pod, on the ports that endpoints name."""
        held = self.world.holdings(pod)
        ports = sorted(self._ports(pod))
        addresses = [{"socketAddress": {"address": pod.addresses[0], "portValue": port}} for port in ports]
        if not addresses:
            return {"listeners": [], "clusters": []}
        inbound = {
            **_untyped(held.listeners["virtualInbound"]),
            "name": f"inbound of {pod.reference}",
            "address": addresses[0],
            "additionalAddresses": [{"address": each} for each in addresses[1:]],
            "accessLog": [],
        }
        inbound.pop("maxConnectionsToAcceptPerSocketEvent", None)
        listener = self._finish(inbound, pod, rename=True)
        clusters = [
            {
                "name": f"{pod.reference}/inbound|{port}||",
                "type": "STATIC",
                "connectTimeout": "30s",
                "loadAssignment": _assignment(f"{pod.reference}/inbound|{port}||", self._programs[pod.reference, port]),
            }
            for port in ports
        ]
        others = [
            {"name": f"{pod.reference}/{name}", "type": "STATIC", "connectTimeout": "1s"}
            for name in ("InboundPassthroughCluster", "BlackHoleCluster", "PassthroughCluster")
        ]
        return {"listeners": [listener], "clusters": [*clusters, *others]}

    def _finish(self, value: Any, pod: Workload, *, rename: bool = False) -> Any:
        """Routes inline, secrets static, access logs our own; with `rename` clusters are the pod's own."""
        if isinstance(value, list):
            return [self._finish(item, pod, rename=rename) for item in value]
        if not isinstance(value, dict):
            return value
        if "rds" in value:
            route = _untyped(self.world.holdings(pod).routes[value["rds"]["routeConfigName"]])
            value = {**{k: v for k, v in value.items() if k != "rds"}, "routeConfig": route}
        if "cluster" in value or "weightedClusters" in value:
            value = _patient(value)
        if value.get("@type", "").endswith("HTTPFault"):
            value = {name: fault for name, fault in value.items() if name not in ("abort", "delay") or _counts(fault)}
        if "sdsConfig" in value:
            return {"name": self._secret(value["name"], pod)}
        if value.get("@type", "").endswith("HttpConnectionManager"):
            value = {**value, "accessLog": [self._access_log(pod)]}
        found = {name: self._finish(item, pod, rename=rename) for name, item in value.items() if name != "@type"}
        if rename and isinstance(found.get("cluster"), str):
            found["cluster"] = f"{pod.reference}/{found['cluster']}"
        return {"@type": value["@type"], **found} if "@type" in value else found

    def _secret(self, name: str, pod: Workload) -> str:
        own = f"{pod.reference}/{name}"
        if name == "ROOTCA":
            self._secrets[own] = {"name": own, "validationContext": {"trustedCa": {"inlineString": ROOT.pem}}}
        else:
            chain, key = ROOT.issue(f"spiffe://cluster.local/ns/{pod.namespace}/sa/{pod.account}")
            pair = {"certificateChain": {"inlineString": chain}, "privateKey": {"inlineString": key}}
            self._secrets.setdefault(own, {"name": own, "tlsCertificate": pair})
        return own

    def _access_log(self, pod: Workload) -> dict[str, Any]:
        fields = {
            "id": f"%REQ({ID})%",
            "side": pod.reference,
            "status": "%RESPONSE_CODE%",
            "flags": "%RESPONSE_FLAGS%",
            "details": "%RESPONSE_CODE_DETAILS%",
            "cluster": "%UPSTREAM_CLUSTER_RAW%",
        }
        config = {"@type": _LOGGER, "path": str(self.log), "logFormat": {"jsonFormat": fields}}
        return {"name": "envoy.access_loggers.file", "typedConfig": config}

    # -- programs -----------------------------------------------------------------------------------------------------

    def _ports(self, pod: Workload) -> set[int]:
        """The ports of the pod that endpoints name."""
        return {
            port.port
            for key, _ in names.services(self.world)
            for item in names.slices(self.world, key)
            for endpoint in item.endpoints
            if set(endpoint.addresses) & set(pod.addresses)
            for port in item.ports
            if port.port
        }

    async def start_programs(self, stack: contextlib.AsyncExitStack) -> None:
        """One echo server for each port of each pod; without a sidecar it has the pod's own address."""
        for pod in self.world.pods:
            if pod.proxy == "router":
                continue
            for port in self._ports(pod):
                address = ("127.0.0.1", 0) if pod.proxy else (here(pod.addresses[0]), port)
                runner = web.AppRunner(_echo(pod.reference), access_log=None)
                await runner.setup()
                stack.push_async_callback(runner.cleanup)
                await web.TCPSite(runner, *address).start()
                self._programs[pod.reference, port] = runner.addresses[0][1]

    def entries(self, number: str) -> list[dict[str, Any]]:
        """The lines of the access logs about one request."""
        if self.log.exists():
            with self.log.open() as file:
                file.seek(self._read)
                for line in iter(file.readline, ""):
                    if not line.endswith("\n"):
                        break
                    entry = json.loads(line)
                    self._entries.setdefault(entry["id"], []).append(entry)
                    self._read += len(line.encode())
        return self._entries.get(number, [])


def _patient(action: dict[str, Any]) -> dict[str, Any]:
    """A route without time limits that matter: who is slow here is this machine, and no table foretells that."""
    retries = {name: value for name, value in action.get("retryPolicy", {}).items() if name != "perTryTimeout"}
    found = {**action, "retryPolicy": retries} if retries else action
    return {**found, "timeout": "60s"} if "timeout" in found else found


def _counts(fault: dict[str, Any]) -> bool:
    """Whether a fault is met often enough to be foretold; one in fifty would fail a table now and then."""
    share = fault.get("percentage")
    return share is None or share.get("numerator", 0) / _PARTS[share.get("denominator", "HUNDRED")] >= _SELDOM


def _untyped(resource: Any) -> dict[str, Any]:
    """The message as it stands in a field of its own type."""
    return {name: value for name, value in resource.items() if name != "@type"}


def _assignment(name: str, port: int) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": port}}}}
    return {"clusterName": name, "endpoints": [{"lbEndpoints": [endpoint]}]}


def _echo(who: str) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        headers: dict[str, str] = {}
        for name, value in request.headers.items():
            lowered = name.lower()
            headers[lowered] = f"{headers[lowered]},{value}" if lowered in headers else value
        asked = {"who": who, "path": request.raw_path, "headers": headers, "host": headers.get("host", "")}
        return web.json_response(asked)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    return app


@contextlib.asynccontextmanager
async def running(world: World, client: Workload, folder: pathlib.Path) -> AsyncIterator[Bench]:
    """The bench while its Envoy runs."""
    bench = Bench(world, client, folder)
    async with contextlib.AsyncExitStack() as stack:
        await bench.start_programs(stack)
        config, log = folder / "envoy.json", folder / "envoy.log"
        config.write_text(json.dumps(bench.bootstrap()))
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                str(find_envoy("", "")), "-c", str(config), "--concurrency", "1", "--disable-hot-restart",
                "--file-flush-interval-msec", "20", env={"MZ_PEER": "test"}, stdout=output, stderr=output,
            )  # fmt: skip
        try:
            await started(process, log)
            yield bench
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
