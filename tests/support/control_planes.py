"""A whole control plane in this process, on loopback ports of its own, over a folder of manifests."""

import asyncio
import contextlib
import pathlib
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import grpc
import msgspec
from eventually import eventually

from mizzen import settings
from mizzen.ca import tokens
from mizzen.control.main import ControlPlane, keep_authority
from mizzen.control.options import Address, Options

HOST = "istiod.istio-system.svc"
ANY_PORT = Address("127.0.0.1", 0)
FAST = settings.Settings(push=settings.Push(debounce_after=0.02, debounce_max=0.5), xds=settings.Xds(stop_grace=0.2))


class Plane:
    """One control plane at work, and ways to ask it."""

    def __init__(self, folder: pathlib.Path, control_plane: ControlPlane, key: tokens.PrivateKey) -> None:
        self.folder = folder
        self.control_plane = control_plane
        self._issuer = tokens.TokenIssuer(key, time.time)

    def target(self, flag: str) -> str:
        return f"127.0.0.1:{self.control_plane.ports[flag]}"

    @property
    def config(self) -> pathlib.Path:
        return self.folder / "config"

    def token(self, namespace: str = "default", account: str = "default", **options: Any) -> str:
        return self._issuer.issue(tokens.ServiceAccount(namespace=namespace, name=account), **options)

    def credentials(self, key: bytes | None = None, chain: bytes | None = None) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(self.control_plane.authority.bundle, key, chain)

    async def leads(self, *leases: str) -> bool:
        """Whether it holds all of these Leases; each of them it stands for by itself."""
        _, text = await self.get("/metrics")
        return all(f'mizzen_leader{{lease="{name}"}} 1' in text for name in leases)

    async def get(self, path: str, port: str = "--monitoringAddr", **headers: str) -> tuple[int, str]:
        """Status and text of an HTTP answer."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{self.target(port)}{path}", headers=headers) as answer,
        ):
            return answer.status, await answer.text()


def options_for(folder: pathlib.Path, **changes: Any) -> Options:
    """Loopback ports chosen by the system, the authority and the token key in the folder."""
    options = Options(
        config=(str(folder / "config"),),
        plain=ANY_PORT,
        secure=ANY_PORT,
        mutual=ANY_PORT,
        monitoring=ANY_PORT,
        http=ANY_PORT,
        ca_dir=str(folder / "ca"),
        token_keys=(str(folder / "token-key.pem"),),
    )
    return msgspec.structs.replace(options, **changes)


@contextlib.asynccontextmanager
async def control_plane(
    folder: pathlib.Path, tuned: settings.Settings = FAST, *, held: bool = False, **changes: Any
) -> AsyncIterator[Plane]:
    """Run until the block ends; ready when it begins, unless `held`: then a source named so has yet to deliver."""
    (folder / "config").mkdir(exist_ok=True)
    key_file = folder / "token-key.pem"
    if not key_file.exists():
        key_file.write_bytes(tokens.encode_private_key(tokens.generate_key()))
    options = options_for(folder, **changes)
    async with contextlib.AsyncExitStack() as stack:
        plane = ControlPlane(options, tuned, kept_authority=await keep_authority(options, tuned, stack))
        if held:
            plane.inputs.expect("held")
        running = asyncio.ensure_future(plane.run())
        try:
            await eventually(lambda: running.done() or plane.is_ready() or (held and "--grpcAddr" in plane.ports))
            if running.done():
                await running
            yield Plane(folder, plane, tokens.decode_private_key(key_file.read_bytes()))
        finally:
            plane.stop()
            await running
