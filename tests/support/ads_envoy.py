"""A real Envoy on loopback that gets everything by ADS, and a small mesh for it: a cluster, a route, a listener."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import mesh_of_resources
from ads_server import Serving
from claims import own_port
from eventually import eventually

from mizzen import protos
from mizzen.agent.binaries import find_envoy
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE

NODE = "sidecar~127.0.0.1~front.shop~shop.svc.cluster.local"

_cluster_v3 = protos.package("envoy.config.cluster.v3")
_endpoint_v3 = protos.package("envoy.config.endpoint.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_route_v3 = protos.package("envoy.config.route.v3")
_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_router_v3 = protos.package("envoy.extensions.filters.http.router.v3")
_ADS = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": {"seconds": 0}}


class Mesh:
    """What is fed to the server: each method feeds one resource."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.port = own_port()
        """Where Envoy listens."""

    def feed(self, serving: Serving, type_url: str, name: str, message: Any) -> None:
        serving.discovery.pusher.feed(mesh_of_resources.key(type_url, name), protos.encode(protos.pack(message)))

    def everything(self, serving: Serving) -> None:
        """The whole mesh."""
        self.cluster(serving, "a", seconds=1)
        self.endpoints(serving, "a")
        self.listener(serving)
        self.route(serving, "a")

    def cluster(self, serving: Serving, name: str, *, seconds: int) -> None:
        message = _cluster_v3.Cluster(
            name=name, type="EDS", eds_cluster_config={"eds_config": _ADS}, connect_timeout={"seconds": seconds}
        )
        self.feed(serving, CLUSTER, name, message)

    def endpoints(self, serving: Serving, name: str) -> None:
        address = {"socket_address": {"address": "127.0.0.1", "port_value": self.upstream}}
        endpoint = {"lb_endpoints": [{"endpoint": {"address": address}}]}
        message = _endpoint_v3.ClusterLoadAssignment(cluster_name=name, endpoints=[endpoint])
        self.feed(serving, ENDPOINT, name, message)

    def route(self, serving: Serving, cluster: str) -> None:
        host = {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": cluster}}]}
        self.feed(serving, ROUTE, "r", _route_v3.RouteConfiguration(name="r", virtual_hosts=[host]))

    def listener(self, serving: Serving, *, chains: int = 1) -> None:
        """With two chains alike it is one that Envoy rejects."""
        router = {"name": "envoy.filters.http.router", "typed_config": protos.pack(_router_v3.Router())}
        manager = _hcm_v3.HttpConnectionManager(
            stat_prefix="in", rds={"route_config_name": "r", "config_source": _ADS}, http_filters=[router]
        )
        name = "envoy.filters.network.http_connection_manager"
        chain = {"filters": [{"name": name, "typed_config": protos.pack(manager)}]}
        message = _listener_v3.Listener(
            name="l",
            address={"socket_address": {"address": "127.0.0.1", "port_value": self.port}},
            filter_chains=[{**chain, "name": f"chain-{number}"} for number in range(chains)],
        )
        self.feed(serving, LISTENER, "l", message)


class Envoy:
    """A running Envoy."""

    def __init__(self, admin: int, port: int, session: aiohttp.ClientSession) -> None:
        self._admin = f"http://127.0.0.1:{admin}"
        self._url = f"http://127.0.0.1:{port}/"
        self._session = session

    async def stats(self) -> dict[str, int]:
        """Counters and gauges; empty while there is no admin interface."""
        try:
            async with self._session.get(f"{self._admin}/stats?format=json") as answer:
                found = (await answer.json(content_type=None))["stats"]
        except aiohttp.ClientError:
            return {}
        return {s["name"]: s["value"] for s in found if isinstance(s.get("value"), int)}

    async def until(self, **wanted: int) -> dict[str, int]:
        """Wait for these values; names with `__` for a dot."""
        names = {name.replace("__", "."): value for name, value in wanted.items()}
        found: dict[str, int] = {}
        for _ in range(2400):
            found = await self.stats()
            if all(found.get(name) == value for name, value in names.items()):
                return found
            await asyncio.sleep(0.025)
        raise AssertionError(f"wanted {names}, got { {name: found.get(name) for name in names} }")

    async def get(self) -> int:
        """The status of a request through it; 0 when there was no answer."""
        try:
            async with self._session.get(self._url) as answer:
                return answer.status
        except aiohttp.ClientError:
            return 0

    @contextlib.asynccontextmanager
    async def traffic(self) -> AsyncIterator[list[int]]:
        """Requests without pause; the statuses."""
        statuses: list[int] = []

        async def send() -> None:
            while True:
                statuses.append(await self.get())
                await asyncio.sleep(0.002)

        sending = asyncio.get_running_loop().create_task(send())
        try:
            yield statuses
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


@contextlib.asynccontextmanager
async def upstream() -> AsyncIterator[int]:
    """A server that answers every request with 200; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def envoy(folder: Path, mesh: Mesh, xds: int, *, delta: bool) -> AsyncIterator[Envoy]:
    """Start Envoy with a control plane at port `xds`."""
    admin = own_port()
    (folder / "bootstrap.json").write_text(json.dumps(_bootstrap(admin, xds, delta)))
    arguments = ("-c", str(folder / "bootstrap.json"), "--concurrency", "1", "--disable-hot-restart", "-l", "warning")
    with (folder / "envoy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(str(find_envoy("", "")), *arguments, stdout=log, stderr=log)
    try:
        async with aiohttp.ClientSession() as session:
            yield Envoy(admin, mesh.port, session)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _bootstrap(admin: int, xds: int, delta: bool) -> dict[str, Any]:
    def address(port: int) -> dict[str, Any]:
        return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

    http2 = {"explicit_http_config": {"http2_protocol_options": {}}}
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    cluster = {
        "name": "xds-grpc",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": "xds-grpc",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(xds)}}]}],
        },
        "typed_extension_protocol_options": {options: {"@type": f"type.googleapis.com/{options}", **http2}},
    }
    ads = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}
    return {
        "node": {"id": NODE, "cluster": "front.shop", "metadata": {"NAMESPACE": "shop"}},
        "admin": {"address": address(admin)},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC" if delta else "GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [{"envoy_grpc": {"cluster_name": "xds-grpc"}}],
            },
            "cds_config": ads,
            "lds_config": ads,
        },
        "static_resources": {"clusters": [cluster]},
    }


async def is_synced(serving: Serving) -> None:
    """Wait until the one proxy has accepted all of the four types."""

    def check() -> bool:
        states = [status.state.value for connection in serving.discovery.connections for status in connection.types()]
        return states == ["SYNCED"] * 4

    await eventually(check)
