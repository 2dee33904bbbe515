"""Which updates of a listener a real Envoy makes in place, and what `mizzen diff` says of the same."""

import asyncio
import contextlib
import copy
import json
import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from claims import own_port
from eventually import eventually

from mizzen.agent.binaries import find_envoy
from mizzen.diagnose.change import disruption

pytestmark = pytest.mark.envoy

TYPES = "type.googleapis.com/envoy.extensions"
TCP = f"{TYPES}.filters.network.tcp_proxy.v3.TcpProxy"
TLS_INSPECTOR = {
    "name": "tls",
    "typedConfig": {"@type": f"{TYPES}.filters.listener.tls_inspector.v3.TlsInspector"},
}
ORIGINAL = {
    "name": "dst",
    "typedConfig": {"@type": f"{TYPES}.filters.listener.original_dst.v3.OriginalDst"},
}

Listener = dict[str, Any]
Edit = Callable[[Listener], None]


def chain(name: str, port: int = 0, prefix: str = "one") -> dict[str, Any]:
    proxy = {"name": "tcp", "typedConfig": {"@type": TCP, "statPrefix": prefix, "cluster": "none"}}
    match = {"filterChainMatch": {"destinationPort": port}} if port else {}
    return {"name": name, **match, "filters": [proxy]}


def base(port: int) -> Listener:
    return {
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        "name": "one",
        "address": {"socketAddress": {"address": "127.0.0.1", "portValue": port}},
        "listenerFilters": [TLS_INSPECTOR, ORIGINAL],
        "filterChains": [chain("a", 1), chain("b", 2)],
        "defaultFilterChain": chain("rest"),
        "trafficDirection": "OUTBOUND",
    }


def setting(field: str, value: Any) -> Edit:
    return lambda listener: listener.update({field: value})


EDITS: dict[str, Edit] = {
    "a chain changes": lambda listener: listener["filterChains"].__setitem__(0, chain("a", 1, "two")),
    "a chain comes": lambda listener: listener["filterChains"].append(chain("c", 3)),
    "a chain goes": lambda listener: listener["filterChains"].pop(),
    "chains change places": lambda listener: listener["filterChains"].reverse(),
    "the default chain changes": setting("defaultFilterChain", chain("rest", prefix="two")),
    "the default chain goes": lambda listener: listener.pop("defaultFilterChain"),
    "no chain is left": setting("filterChains", []),
    "listener filters change places": lambda listener: listener["listenerFilters"].reverse(),
    "a listener filter goes": lambda listener: listener["listenerFilters"].pop(),
    "a listener filter gets an empty setting": lambda listener: listener.update(
        {
            "listenerFilters": [
                {**TLS_INSPECTOR, "filterDisabled": {"destinationPortRange": {"start": 9, "end": 10}}},
                ORIGINAL,
            ]
        }
    ),
    "an empty message is stated": setting("metadata", {}),
    "metadata": setting("metadata", {"filterMetadata": {"istio": {"a": "b"}}}),
    "a default is stated": setting("transparent", False),
    "limit of the buffer": setting("perConnectionBufferLimitBytes", 4096),
    "direction": setting("trafficDirection", "INBOUND"),
    "prefix of statistics": setting("statPrefix", "other"),
    "timeout of listener filters": setting("listenerFiltersTimeout", "3s"),
}


class Updated:
    """An Envoy that takes its listeners from a file."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._version = 0
        self.admin = folder / "admin.sock"

    def write(self, listener: Listener) -> None:
        self._version += 1
        partial = self._folder / "partial.json"
        partial.write_text(json.dumps({"versionInfo": str(self._version), "resources": [listener]}))
        partial.rename(self._folder / "lds.json")

    async def update(self, listener: Listener) -> str:
        """How it took this listener."""
        before = await self.stats()
        self.write(listener)

        async def is_taken() -> bool:
            now = await self.stats()
            assert now["lds.update_rejected"] == 0
            return now["lds.update_success"] > before["lds.update_success"] and not now["total_listeners_warming"]

        await eventually(is_taken)
        after = await self.stats()
        if after["listener_in_place_updated"] > before["listener_in_place_updated"]:
            return "in place"
        return "replaced" if after["listener_modified"] > before["listener_modified"] else "the same"

    async def stats(self) -> dict[str, int]:
        reader, writer = await asyncio.open_unix_connection(str(self.admin))
        writer.write(b"GET /stats?filter=^listener_manager HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        pairs = (line.removeprefix("listener_manager.").rpartition(": ") for line in text.splitlines())
        return {name: int(value) for name, _, value in pairs if value.isdecimal()}


@contextlib.asynccontextmanager
async def running(folder: pathlib.Path, first: Listener) -> AsyncIterator[Updated]:
    envoy = Updated(folder)
    envoy.write(first)
    bootstrap = {
        "node": {"id": "one", "cluster": "test"},
        "admin": {"address": {"pipe": {"path": str(envoy.admin)}}},
        "dynamicResources": {"ldsConfig": {"pathConfigSource": {"path": str(folder / "lds.json")}}},
        "staticResources": {"clusters": [{"name": "none", "type": "STATIC", "connectTimeout": "1s"}]},
    }
    (folder / "bootstrap.json").write_text(json.dumps(bootstrap))
    options = ("--concurrency", "1", "--drain-time-s", "1", "--disable-hot-restart", "-l", "warning")
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(find_envoy("", "")), "-c", str(folder / "bootstrap.json"), *options, stdout=log, stderr=log
        )
        try:

            async def is_live() -> bool:
                with contextlib.suppress(OSError, KeyError):
                    return (await envoy.stats())["workers_started"] == 1
                return False

            await eventually(is_live)
            yield envoy
        finally:
            process.kill()
            await process.wait()


async def test_the_forecast_says_how_a_listener_is_taken(tmp_path: pathlib.Path) -> None:
    port = own_port()
    first = base(port)
    foretold, found = {}, {}
    async with running(tmp_path, first) as envoy:
        for name, edit in EDITS.items():
            later = copy.deepcopy(first)
            edit(later)
            foretold[name] = disruption.update_listener("one", first, later).update
            found[name] = await envoy.update(later)
            await envoy.update(first)
    assert found == foretold
    assert {"in place", "replaced"} <= set(found.values())
