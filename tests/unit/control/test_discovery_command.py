"""`mizzen discovery` as a process: exit codes, messages, signals."""

import asyncio
import contextlib
import os
import pathlib
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator

import pytest
from eventually import eventually

LOOPBACK = [
    *("--grpcAddr", "127.0.0.1:0"),
    *("--secureGRPCAddr", "127.0.0.1:0"),
    *("--mutualGRPCAddr", ""),
    *("--monitoringAddr", ""),
    *("--httpAddr", "127.0.0.1:0"),
]


class Process:
    """One run of the program and its log."""

    def __init__(self, process: asyncio.subprocess.Process, log: pathlib.Path) -> None:
        self.process = process
        self._log = log

    @property
    def text(self) -> str:
        return self._log.read_text()

    async def end(self) -> int:
        async with asyncio.timeout(60):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def run(folder: pathlib.Path, *arguments: str, **environ: str) -> AsyncIterator[Process]:
    log = folder / "log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mizzen", "discovery", *arguments),
            cwd=folder,
            env={"PATH": os.environ["PATH"], **environ},
            stdout=file,
            stderr=file,
        )
    try:
        yield Process(process, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
def config(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "config").mkdir()
    return tmp_path / "config"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_it_with_success(tmp_path: pathlib.Path, config: pathlib.Path, number: int) -> None:
    async with run(tmp_path, "--config", str(config), *LOOPBACK) as process:
        await eventually(lambda: "delivered its first list" in process.text)
        process.process.send_signal(number)
        assert await process.end() == 0
        assert process.text.splitlines()[-1].endswith("stopped")
        assert "Traceback" not in process.text


async def test_port_in_use_is_one_line_with_the_remedy(tmp_path: pathlib.Path, config: pathlib.Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        async with run(tmp_path, "--config", str(config), *LOOPBACK, "--grpcAddr", address) as process:
            assert await process.end() == 1
            assert process.text.splitlines()[-1] == (
                f"Error: cannot listen on {address}: Address already in use; "
                "stop what uses it, or choose another with --grpcAddr"
            )
            assert "Traceback" not in process.text


async def test_missing_folder_and_missing_flag_are_errors(tmp_path: pathlib.Path) -> None:
    async with run(tmp_path, "--config", str(tmp_path / "nowhere"), *LOOPBACK) as process:
        assert await process.end() == 1
        assert process.text.splitlines()[-1].endswith("nowhere: No such file or directory")
    async with run(tmp_path, *LOOPBACK) as process:
        assert await process.end() == 64
        assert "name files by --config PATH or an API server by --kubeconfig FILE" in process.text


async def test_environment_is_read_and_what_is_not_followed_warns(tmp_path: pathlib.Path, config: pathlib.Path) -> None:
    variables = {"PILOT_ENABLE_AMBIENT": "true", "PILOT_HTTP10": "perhaps"}
    async with run(tmp_path, "--config", str(config), *LOOPBACK, **variables) as process:
        await eventually(lambda: "delivered its first list" in process.text)
        warnings = re.findall(r"\twarn\tdefault\t(.*)", process.text)
        assert "PILOT_ENABLE_AMBIENT is not supported and has no effect" in warnings
        assert "PILOT_HTTP10: 'perhaps' is neither true nor false; the default stays" in warnings


async def test_log_is_json_when_asked_for(tmp_path: pathlib.Path, config: pathlib.Path) -> None:
    arguments = (
        "--config",
        str(config),
        *LOOPBACK,
        "--log_as_json=true",
        "--log_output_level",
        "default:info,ads:none",
    )
    async with run(tmp_path, *arguments) as process:
        await eventually(lambda: "delivered its first list" in process.text)
        assert all(line.startswith("{") for line in process.text.splitlines())
        assert '"scope": "ads"' not in process.text
