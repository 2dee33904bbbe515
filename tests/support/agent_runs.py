"""Runs `mizzen agent` as a process with its real Envoy, every port on a loopback address of the test's own."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import aiohttp
import tiny_control
from claims import own_number

POD = {"POD_NAME": "front-0", "POD_NAMESPACE": "demo", "SERVICE_ACCOUNT": "front", "INSTANCE_IP": "10.1.1.10"}


class AgentRun:
    """One pod's folder and the agent that runs in it; it may be run several times."""

    def __init__(self, folder: Path, control: tiny_control.TinyControl, environ: dict[str, str] | None = None) -> None:
        number = own_number("address of an agent", range(250 * 250))
        self.address = f"127.89.{number // 250}.{number % 250 + 1}"
        self.folder = folder
        self.process: asyncio.subprocess.Process | None = None
        self.environ = {
            "PATH": os.environ["PATH"],
            **POD,
            "PROXY_CONFIG": f"discoveryAddress: {control.address}\nterminationDrainDuration: 0s\nconcurrency: 1\n",
            "ISTIOD_SAN": tiny_control.SERVER_NAME,
            "MIZZEN_BIND_ADDRESS": self.address,
            **(environ or {}),
        }
        secrets = folder / "var/run/secrets"
        for path in (secrets / "tokens", secrets / "istio"):
            path.mkdir(parents=True)
        (secrets / "tokens/istio-token").write_text(tiny_control.TOKEN)
        self.root_file.write_bytes(control.root.pem)

    @property
    def root_file(self) -> Path:
        return self.folder / "var/run/secrets/istio/root-cert.pem"

    @property
    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    async def start(self) -> None:
        with (self.folder / "agent.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mizzen", "agent", "proxy", "sidecar"),
                cwd=self.folder,
                env=self.environ,
                stdout=log,
                stderr=log,
            )

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        if self.process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 60)

    async def get(self, port: int, path: str = "/", **options) -> tuple[int, str]:
        """Status and body of a request to one of the pod's ports; (0, reason) where nobody answers."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.request(
                    options.pop("method", "GET"), f"http://{self.address}:{port}{path}", **options
                ) as answer,
            ):
                return answer.status, await answer.text()
        except aiohttp.ClientError as failed:
            return 0, str(failed)

    async def until_gone(self) -> None:
        """Wait until Envoy serves no more; the agent may have ended."""
        async with asyncio.timeout(60):
            while (await self.get(15000))[0]:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.05)

    async def stat(self, name: str) -> int:
        """One of Envoy's statistics."""
        _, text = await self.get(15000, "/stats", params={"filter": f"^{name}$"})
        return int(text.rpartition(":")[2] or -1)

    async def until(self, check, what: str, seconds: float = 60.0):
        """Wait until the coroutine function `check` gives something true, and return that."""
        try:
            async with asyncio.timeout(seconds):
                while not (result := await check()):
                    if self.process is not None and self.process.returncode is not None:
                        raise AssertionError(f"the agent has ended: {self.log}")
                    await asyncio.sleep(0.05)
                return result
        except TimeoutError:
            raise AssertionError(f"not within {seconds} s: {what}\n{self.log}") from None

    async def until_ready(self) -> None:
        async def check() -> bool:
            return (await self.get(15021, "/healthz/ready"))[0] == 200

        await self.until(check, "ready")


@contextlib.asynccontextmanager
async def running(folder: Path, control: tiny_control.TinyControl, environ: dict[str, str] | None = None):
    """An agent for the length of a test."""
    run = AgentRun(folder, control, environ)
    await run.start()
    try:
        yield run
    finally:
        await run.stop(signal.SIGKILL)
