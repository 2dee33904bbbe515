"""A real Envoy with everything that a proxy would be told in its bootstrap, on this machine's network.

Routes stand in their listeners, endpoints in their clusters, secrets beside them; so no control plane is needed, and
ports are those of the listeners.
"""

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncIterator
from typing import Any

from traffic_certificates import OTHER, ROOT

from mizzen import protos
from mizzen.agent.binaries import find_envoy
from mizzen.compile import resource, snapshot
from mizzen.incremental import Engine
from mizzen.model.proxy import Proxy


class _Inliner:
    """Puts resources where others refer to them."""

    def __init__(self, db: Engine, who: Proxy) -> None:
        self._found = {
            kind: {r.name: protos.to_json(r.message()) for r in resources}
            for kind, resources in snapshot.everything(db, who).items()
        }
        self._secrets: set[str] = set()
        self._db, self._who = db, who

    def resources(self) -> dict[str, Any]:
        listeners = [self._inline(one) for one in self._found["listeners"].values()]
        clusters = [self._inline(self._cluster(one)) for one in self._found["clusters"].values()]
        return {"listeners": listeners, "clusters": clusters, "secrets": list(self._secret_values())}

    def _cluster(self, cluster: dict[str, Any]) -> dict[str, Any]:
        if cluster.get("type") != "EDS":
            return cluster
        kept = {name: value for name, value in cluster.items() if name != "edsClusterConfig"}
        return {**kept, "type": "STATIC", "loadAssignment": self._found["endpoints"][cluster["name"]]}

    def _inline(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._inline(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "rds" in value:
            name = value["rds"]["routeConfigName"]
            value = {**{k: v for k, v in value.items() if k != "rds"}, "routeConfig": self._found["routes"][name]}
        if "sdsConfig" in value:
            self._secrets.add(value["name"])
            value = {"name": value["name"]}
        return {name: self._inline(part) for name, part in value.items()}

    def _secret_values(self) -> Any:
        told = snapshot.resources(self._db, self._who, resource.SECRET, frozenset(self._secrets))
        known = {r.name: protos.to_json(r.message()) for r in told}
        certificate, key = ROOT.issue("spiffe://cluster.local/ns/x/sa/x")
        for name in sorted(self._secrets):
            if name in known:
                yield known[name]
            elif name == "default":
                pair = {"certificateChain": {"inlineString": certificate}, "privateKey": {"inlineString": key}}
                yield {"name": name, "tlsCertificate": pair}
            else:
                # One that never comes trusts nobody; Envoy would not start without it.
                trusted = ROOT.pem if name == "ROOTCA" else OTHER.pem
                yield {"name": name, "validationContext": {"trustedCa": {"inlineString": trusted}}}


@contextlib.asynccontextmanager
async def running(db: Engine, who: Proxy, folder: pathlib.Path) -> AsyncIterator[pathlib.Path]:
    """The Envoy while it runs; gives its log."""
    bootstrap = {
        "node": {"id": who.id, "cluster": "test"},
        "admin": {"address": {"pipe": {"path": str(folder / "admin.sock")}}},
        "staticResources": _Inliner(db, who).resources(),
    }
    config, log = folder / "envoy.json", folder / "envoy.log"
    config.write_text(json.dumps(bootstrap))
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(find_envoy("", "")), "-c", str(config), "--concurrency", "1", "--disable-hot-restart",
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        await started(process, log)
        yield log
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def started(process: asyncio.subprocess.Process, log: pathlib.Path) -> None:
    """Waits until Envoy serves; fails if it ends."""
    for _ in range(1800):
        if "starting main dispatch loop" in _read(log):
            return
        assert process.returncode is None, _read(log)[-3000:]
        await asyncio.sleep(0.1)
    raise AssertionError(_read(log)[-3000:])


def _read(log: pathlib.Path) -> str:
    return log.read_text()
