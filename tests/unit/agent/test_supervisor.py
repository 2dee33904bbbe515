"""Envoy's life without Envoy: its command line, where it is found, how long it may drain, how it is ended."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from eventually import eventually, eventually_blocking

from mizzen.agent import launch, supervisor
from mizzen.agent.supervisor import Command, Ending, Supervisor
from mizzen.errors import AgentError


class Admin:
    """Stands where the admin interface is; gives the recorded counts of connections in turn."""

    def __init__(self, *counts, reachable: bool = True) -> None:
        self.counts = list(counts)
        self.reachable = reachable
        self.drains: list[tuple[bool, bool]] = []

    async def drain(self, *, inbound_only: bool, skip_exit: bool) -> None:
        if not self.reachable:
            raise AgentError("nobody there")
        self.drains.append((inbound_only, skip_exit))

    async def active_connections(self) -> int | None:
        count = self.counts.pop(0)
        if isinstance(count, Exception):
            raise count
        return count


def program(folder: Path, text: str) -> Path:
    """An executable that stands for Envoy; it is called with Envoy's arguments."""
    path = folder / "envoy"
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}")
    path.chmod(0o755)
    return path


def make(folder: Path, text: str = "", admin: Admin | None = None, **ending) -> Supervisor:
    """Without a text the program leaves a file `running` and goes on for a while."""
    running = f"import pathlib, time; pathlib.Path({str(folder / 'running')!r}).touch(); time.sleep(60)"
    command = Command(binary=program(folder, text or running), bootstrap=folder / "envoy-rev.json")
    return Supervisor(
        command, Ending(**{"inbound_only": True, "drain_seconds": 0, "look_seconds": 0.01, **ending}), admin or Admin()
    )


async def run(made: Supervisor, **environ: str) -> int:
    async with asyncio.timeout(60):
        return await made.run(environ={**os.environ, **environ}, uid=None, gid=None)


def test_command_line_is_istios() -> None:
    command = Command(binary=Path("/envoy"), bootstrap=Path("etc/istio/proxy/envoy-rev.json"), concurrency=2)
    assert " ".join(command.arguments()) == (
        "/envoy -c etc/istio/proxy/envoy-rev.json --drain-time-s 45 --drain-strategy immediate "
        "--parent-shutdown-time-s 60 --local-address-ip-version v4 --file-flush-interval-msec 1000 "
        "--disable-hot-restart --allow-unknown-static-fields -l warning --component-log-level misc:error "
        "--concurrency 2"
    )


def test_command_line_of_a_pod_with_wishes(tmp_path) -> None:
    override = tmp_path / "custom.json"
    override.write_text('{"admin": {}}')
    arguments = Command(
        binary=Path("/envoy"),
        bootstrap=Path("b"),
        ipv6=True,
        log_level="debug",
        component_log_level="",
        override=override,
    ).arguments()
    assert arguments[arguments.index("--local-address-ip-version") + 1] == "v6"
    assert arguments[arguments.index("--config-yaml") + 1] == '{"admin": {}}'
    assert "--component-log-level" not in arguments
    assert "--concurrency" not in arguments


@pytest.mark.parametrize(
    ("explicit", "configured", "limit", "threads"),
    [
        (None, None, "", None),
        (None, None, "2", 2),
        (None, None, "0", None),
        (None, 3, "2", 3),
        (None, 0, "2", None),
        (1, 3, "2", 1),
        (0, 3, "2", None),
        (None, None, "two", None),
    ],
)
def test_worker_threads(explicit, configured, limit: str, threads) -> None:
    assert supervisor.choose_concurrency(explicit, configured, limit) == threads


async def test_exit_status_and_environment_are_the_programs(tmp_path) -> None:
    made = make(tmp_path, "import os, sys; sys.exit(int(os.environ['CODE']))")
    assert await run(made, CODE="7") == 7


async def test_program_that_cannot_be_run_ends_at_once(tmp_path) -> None:
    command = Command(binary=tmp_path / "missing", bootstrap=tmp_path / "b")
    assert await run(Supervisor(command, Ending(inbound_only=True), Admin())) != 0


async def test_order_to_stop_drains_waits_and_ends(tmp_path) -> None:
    admin = Admin()
    made = make(tmp_path, admin=admin, drain_seconds=0.3)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run(made))
        await eventually((tmp_path / "running").exists)
        began = time.monotonic()
        await made.stop()
        assert time.monotonic() - began > 0.25
    assert running.result() == -signal.SIGTERM
    assert admin.drains == [(True, False)]


async def test_program_that_ignores_the_order_is_killed(tmp_path) -> None:
    ready = tmp_path / "ready"
    text = f"""
        import pathlib, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pathlib.Path({str(ready)!r}).touch()
        time.sleep(60)
    """
    made = make(tmp_path, text, end_seconds=0.3)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run(made))
        await eventually(ready.exists)
        await made.end()
    assert running.result() == -signal.SIGKILL


async def test_connections_are_waited_for_where_asked(tmp_path) -> None:
    admin = Admin(2, 1, AgentError("busy"), 1, 0)
    made = make(tmp_path, admin=admin, on_zero_connections=True, minimum_seconds=0)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run(made))
        await eventually((tmp_path / "running").exists)
        await made.stop()
    assert admin.counts == []
    assert running.result() == -signal.SIGTERM


async def test_connections_that_nobody_counts_are_not_waited_for(tmp_path) -> None:
    admin = Admin(None, 5)
    made = make(tmp_path, admin=admin, on_zero_connections=True, minimum_seconds=0)
    async with asyncio.timeout(60):
        await made.stop()
    assert admin.counts == [5]


async def test_envoy_that_cannot_drain_is_not_waited_for(tmp_path) -> None:
    made = make(tmp_path, admin=Admin(reachable=False), drain_seconds=600)
    async with asyncio.timeout(60):
        await made.stop()


async def test_envoy_that_has_drained_before_ends_at_once(tmp_path) -> None:
    admin = Admin()
    made = make(tmp_path, admin=admin, drain_seconds=600)
    assert await made.drain(skip_exit=True)
    async with asyncio.timeout(60):
        await made.stop()
    assert admin.drains == [(True, True)]


async def test_order_that_comes_before_the_start_counts(tmp_path) -> None:
    made = make(tmp_path)
    await made.end()
    assert await run(made) in (-signal.SIGTERM, -signal.SIGKILL)


@pytest.mark.parametrize("steps", range(5))
async def test_cancellation_is_not_lost_when_it_meets_the_end_of_envoy(tmp_path, monkeypatch, steps: int) -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    class Process:
        returncode: int | None = None

        def send_signal(self, order: int) -> None:
            pass

        async def wait(self) -> int:
            await gone
            return 0

    process = Process()

    async def start(*_arguments, **_options) -> Process:
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    made = make(tmp_path)
    running = asyncio.create_task(run(made))
    await asyncio.sleep(0.05)
    ending = asyncio.create_task(made.end())
    await asyncio.sleep(0.05)
    process.returncode = 0
    gone.set_result(None)
    for _ in range(steps):
        await asyncio.sleep(0)
    is_taken = ending.cancel()
    await asyncio.wait((ending,))
    assert ending.cancelled() == is_taken
    assert await running == 0


def test_launch_gives_up_root_and_dies_with_its_parent() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give itself another user")
    shown = "echo $(id -u):$(id -g):$(id -G); sleep 60"
    middle = (
        "import os, subprocess, sys, time\n"
        f"command = [sys.executable, '-I', '-S', {launch.__file__!r}, str(os.getpid()), '1337', '1337']\n"
        f"child = subprocess.Popen([*command, '/bin/sh', '-c', {shown!r}], stdout=subprocess.PIPE)\n"
        "print(child.pid, child.stdout.readline().decode().strip(), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", middle], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, identity = parent.stdout.readline().split()
        assert identity == "1337:1337:1337"
        parent.kill()
    eventually_blocking(lambda: has_ended(Path(f"/proc/{pid}/status")))


def has_ended(status: Path) -> bool:
    try:
        return "zombie" in status.read_text()
    except OSError:
        return True


def test_launch_does_not_start_for_a_parent_that_has_gone() -> None:
    command = [sys.executable, "-I", "-S", launch.__file__, "1", "-", "-", "/bin/echo", "started"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "started" not in done.stdout
