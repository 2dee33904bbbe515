"""A container that runs: what its probes make of it."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from eventually import eventually

from mizzen.api.kube.pods import Container
from mizzen.errors import LocalError
from mizzen.local.pods.running import Running
from mizzen.local.processes import Command


def first_only(command: Command) -> Iterator[Command]:
    yield command
    while True:
        raise LocalError("ConfigMap shop/settings does not exist")


async def test_a_command_probes_the_container_as_it_was_started(tmp_path: Path) -> None:
    """What the manifests say by now may not even be complete."""
    argv = ["sh", "-c", "test $STARTED = as-this"]
    container = msgspec.convert({"name": "app", "readinessProbe": {"exec": {"command": argv}}}, Container)
    started = Command(
        argv=("sleep", "600"), environ={**os.environ, "STARTED": "as-this"}, directory=tmp_path, log=tmp_path / "log"
    )
    commands = first_only(started)
    running = Running(container, "127.0.0.1", lambda: next(commands), lambda: None, lambda _: None, "Always")
    task = asyncio.ensure_future(running.run())
    await eventually(lambda: running.ready or task.done())
    assert running.ready
    task.cancel()
    await asyncio.wait([task])


async def test_a_probe_that_cannot_be_run_has_failed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    probe = {"exec": {"command": ["true"]}, "failureThreshold": 1, "periodSeconds": 1}
    container = msgspec.convert({"name": "app", "readinessProbe": probe}, Container)
    command = Command(argv=("sleep", "600"), environ=dict(os.environ), directory=folder, log=tmp_path / "log")
    running = Running(container, "127.0.0.1", lambda: command, lambda: None, lambda _: None, "Always")
    task = asyncio.ensure_future(running.run())
    await eventually(lambda: running.ready)
    folder.rmdir()
    await eventually(lambda: not running.ready)
    assert running.supervisor.process is not None
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
