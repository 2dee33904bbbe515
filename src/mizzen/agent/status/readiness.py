"""Whether the workload is healthy, for those whom the control plane tells of it: a probe of the agent's own.

In: the `readinessProbe` of ProxyConfig, which a WorkloadGroup brings; Envoy's readiness, without which the workload is
not healthy either. Out: a call for each change of the verdict, none while it stays. Pods have the kubelet for this;
workloads outside Kubernetes have their agent.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from mizzen import observe
from mizzen.agent.status.probes import Probe, Prober
from mizzen.errors import DecodeError

_log = observe.scope("health")

_PATH = "/readiness"
_BAD_STATUS = 400
_LONGEST_OUTPUT = 512

Check = Callable[[], Awaitable[str]]
"""Says why not; nothing where all is well."""


class Command(msgspec.Struct, frozen=True):
    """Success is an exit code of 0."""

    command: tuple[str, ...] = ()


class ReadinessProbe(Probe, frozen=True, rename="camel"):
    """What to probe, how often, and how often it has to be the same."""

    exec: Command | None = None
    initial_delay_seconds: float = 0.0
    period_seconds: float = 10.0
    success_threshold: int = 1
    failure_threshold: int = 1


def parse_readiness_probe(config: Mapping[str, Any]) -> ReadinessProbe | None:
    """The probe of a ProxyConfig; None where there is none. Raises DecodeError for one that cannot be understood."""
    given = config.get("readinessProbe")
    if not given:
        return None
    try:
        # A zero means the default, as protobuf cannot tell it from nothing.
        probe = msgspec.convert({name: value for name, value in given.items() if value}, ReadinessProbe, strict=False)
    except (msgspec.ValidationError, AttributeError) as bad:
        raise DecodeError(str(bad), "readinessProbe") from bad
    if not (probe.http_get or probe.tcp_socket or probe.grpc or (probe.exec and probe.exec.command)):
        raise DecodeError("one of httpGet, tcpSocket, exec and grpc is needed", "readinessProbe")
    return probe


class Application:
    """The workload, as a probe finds it."""

    def __init__(self, probe: ReadinessProbe, *, address: str, environ: Mapping[str, str]) -> None:
        self._probe, self._environ = probe, environ
        self._prober = Prober({_PATH: probe}, address=address)

    async def check(self) -> str:
        """Probe it once."""
        if self._probe.exec is not None:
            return await self._execute(self._probe.exec.command)
        status, text = await self._prober.check(_PATH, {})
        return "" if status < _BAD_STATUS else text or f"status {status}"

    async def _execute(self, command: Sequence[str]) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=dict(self._environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except (OSError, ValueError) as failed:
            return f"{command[0]}: {getattr(failed, 'strerror', '') or failed}"
        try:
            async with asyncio.timeout(self._probe.timeout_seconds):
                _, errors = await process.communicate()
        except TimeoutError:
            return f"{command[0]}: no end within {self._probe.timeout_seconds:g} s"
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode == 0:
            return ""
        said = errors.decode(errors="replace").strip()[:_LONGEST_OUTPUT]
        return f"{command[0]} ended with {process.returncode}" + (f": {said}" if said else "")


class Watcher:
    """Probes for as long as somebody runs it."""

    def __init__(self, probe: ReadinessProbe, checks: Sequence[Check], report: Callable[[str], None]) -> None:
        """The workload is healthy if no check has anything to say; `report` takes why not, or nothing."""
        self._probe, self._checks, self._report = probe, checks, report
        self._healthy: bool | None = None
        self._in_a_row = 0

    async def run(self) -> None:
        """Ends only when cancelled."""
        await asyncio.sleep(self._probe.initial_delay_seconds)
        last: bool | None = None
        while True:
            why = await self._check()
            self._in_a_row = self._in_a_row + 1 if last is (not why) else 1
            last = not why
            self._judge(why)
            await asyncio.sleep(self._probe.period_seconds)

    async def _check(self) -> str:
        for check in self._checks:
            why = await check()
            if why:
                return why
        return ""

    def _judge(self, why: str) -> None:
        healthy = not why
        needed = self._probe.success_threshold if healthy else self._probe.failure_threshold
        if healthy is self._healthy or self._in_a_row < needed:
            return
        self._healthy = healthy
        _log.info("the workload is %s", "healthy" if healthy else f"not healthy: {why}")
        self._report(why)
