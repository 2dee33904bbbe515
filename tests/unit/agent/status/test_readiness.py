"""The workload's health as its agent finds it: every kind of probe, thresholds, and changes alone."""

import asyncio
import os
import sys

import pytest
from aiohttp import web
from eventually import eventually

from mizzen.agent.status.readiness import Application, Watcher, parse_readiness_probe
from mizzen.errors import DecodeError


def probe(**fields):
    return parse_readiness_probe({"readinessProbe": fields})


def application(given) -> Application:
    return Application(given, address="127.0.0.1", environ={"GREETING": "hello"})


def test_without_a_probe_there_is_nothing_to_do():
    assert parse_readiness_probe({}) is None


def test_zero_means_the_default():
    found = probe(tcpSocket={"port": 80}, periodSeconds=0, timeoutSeconds=0, failureThreshold=0, successThreshold=0)
    assert (found.period_seconds, found.timeout_seconds) == (10, 1)
    assert (found.failure_threshold, found.success_threshold, found.initial_delay_seconds) == (1, 1, 0)


@pytest.mark.parametrize("bad", [{"periodSeconds": 5}, {"tcpSocket": {"port": "http"}}, "often", {"exec": {}}])
def test_a_probe_that_says_nothing_is_no_probe(bad):
    with pytest.raises(DecodeError):
        parse_readiness_probe({"readinessProbe": bad})


@pytest.fixture
async def server():
    """An application whose answer a test chooses, and what it was asked."""
    asked: list[web.Request] = []
    status = {"now": 200}

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        return web.Response(status=status["now"])

    site = web.Application()
    site.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(site)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1], status, asked
    await runner.cleanup()


async def test_http_is_healthy_from_200_to_399(server):
    port, status, asked = server
    told = {"path": "/ready", "port": port, "httpHeaders": [{"name": "x-from", "value": "agent"}]}
    checked = application(probe(httpGet=told, timeoutSeconds=60))
    for number in (200, 302):
        status["now"] = number
        assert await checked.check() == ""
    status["now"] = 503
    assert await checked.check() != ""
    assert (asked[0].path, asked[0].headers["x-from"]) == ("/ready", "agent")


@pytest.mark.parametrize(
    "senseless",
    [
        {"tcpSocket": {"port": 99999}},
        {"tcpSocket": {"port": 80, "host": "a..b"}},
        {"httpGet": {"port": 80, "host": "a..b"}},
        {"httpGet": {"port": 99999}},
        {"exec": {"command": ["a\0b"]}},
    ],
)
async def test_what_cannot_be_asked_is_not_healthy(senseless):
    assert await application(probe(**senseless)).check() != ""


async def test_a_header_that_is_none_is_not_healthy(server):
    told = {"port": server[0], "httpHeaders": [{"name": "x", "value": "two\nlines"}]}
    assert await application(probe(httpGet=told)).check() != ""


async def test_tcp_is_healthy_when_somebody_listens(server, unused_tcp_port):
    assert await application(probe(tcpSocket={"port": server[0]}, timeoutSeconds=60)).check() == ""
    assert await application(probe(tcpSocket={"port": unused_tcp_port})).check() != ""


@pytest.fixture
def unused_tcp_port():
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def test_grpc_is_unhealthy_when_nobody_serves(unused_tcp_port):
    assert "probe failed" in await application(probe(grpc={"port": unused_tcp_port})).check()


async def test_a_command_is_healthy_when_it_succeeds():
    script = "import os, sys; sys.exit(os.environ['GREETING'] != 'hello')"
    given = probe(exec={"command": [sys.executable, "-c", script]}, timeoutSeconds=60)
    assert await application(given).check() == ""


async def test_a_command_that_fails_says_why():
    script = "import sys; sys.exit('no disk')"
    why = await application(probe(exec={"command": [sys.executable, "-c", script]}, timeoutSeconds=60)).check()
    assert "ended with 1: no disk" in why


async def test_a_command_that_does_not_end_is_killed(tmp_path):
    noted = tmp_path / "pid"
    script = f"echo $$ > {noted}.new; mv {noted}.new {noted}; exec sleep 600"
    found = application(probe(exec={"command": ["/bin/sh", "-c", script]}, timeoutSeconds=1))

    async def is_noted() -> bool:
        assert "no end within 1 s" in await found.check()
        return noted.exists()

    # On a busy machine one may be killed before it has begun.
    await eventually(is_noted)
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)


async def test_a_command_that_is_not_there_is_no_success():
    assert "No such file" in await application(probe(exec={"command": ["/no/such/program"]})).check()


class Watched:
    """A watcher of answers in a row; the last one goes on."""

    def __init__(self, answers, envoy=(), **fields):
        self.answers, self.envoy = list(answers), list(envoy)
        self.reports: list[str] = []
        self.asked = 0
        given = probe(tcpSocket={"port": 1}, periodSeconds=0.01, **fields)
        self._watcher = Watcher(given, (self._application, self._envoy), self.reports.append)

    async def _application(self) -> str:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def _envoy(self) -> str:
        return self.envoy.pop(0) if self.envoy else ""

    async def run(self, asked: int) -> list[str]:
        running = asyncio.create_task(self._watcher.run())
        await eventually(lambda: self.asked >= asked)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return self.reports


async def test_only_changes_are_told():
    assert await Watched(["", "", "down", "down", "down still", ""]).run(10) == ["", "down", ""]


async def test_who_begins_unhealthy_is_told_of_too():
    assert await Watched(["down"]).run(5) == ["down"]


async def test_a_verdict_needs_as_many_in_a_row_as_its_threshold_says():
    watched = Watched(["", "", "a", "", "a", "b", "c", "", "a", "", ""], failureThreshold=3, successThreshold=2)
    assert await watched.run(15) == ["", "c", ""]


async def test_without_envoy_nothing_is_healthy():
    assert await Watched([""], envoy=["not live", "not live"]).run(6) == ["not live", ""]
