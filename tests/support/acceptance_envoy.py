"""A real Envoy alone with its configuration: in a network that lets it bind any address, under a root of its own.

In: the node and the sockets' places. Out: a running process and its admin interface, on a Unix socket. The root is a
folder of the test's own, with the host's libraries and devices mounted in it, so that every path that configuration
names (certificates, log files, sockets) is the test's. Nothing is left when the process ends.
"""

import asyncio
import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import acceptance_material
import aiohttp

from mizzen.agent.binaries import find_envoy
from mizzen.agent.bootstrap import document, node
from mizzen.agent.bootstrap.proxy_config import parse_proxy_config

XDS, SDS, ADMIN = "run/xds.sock", "run/sds.sock", "run/admin.sock"
_FILENAME = re.compile(r'"(?:file://)?(/[^"]+\.(?:pem|crl|key|wasm))"')
_STATS = r".*\.(update_\w+|init_fetch_timeout|\w*warming\w*),runtime\..*"
_SECONDS_TO_END = 5.0
_ENVIRON = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OTEL_RESOURCE_ATTRIBUTES": "service.version=1"}

_ENTER = """set -e
root=$1 binary=$2
shift 2
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_nonlocal_bind
[ ! -d /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind
for place in lib lib64; do if [ -L /$place ]; then cp -d /$place $root; elif [ -d /$place ]; then
  mkdir $root/$place; mount --rbind /$place $root/$place; fi; done
for place in dev proc usr; do mkdir $root/$place; mount --rbind /$place $root/$place; done
touch $root/envoy
mount --bind $binary $root/envoy
exec setpriv --pdeathsig KILL chroot $root /envoy "$@"
"""


class Envoy:
    """One Envoy and the ways to ask it."""

    def __init__(self, root: Path, process: asyncio.subprocess.Process, session: aiohttp.ClientSession) -> None:
        self.root = root
        self._process = process
        self._session = session

    @property
    def log(self) -> str:
        """What it has said so far."""
        return (self.root / "envoy.log").read_text()

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def get(self, path: str) -> str:
        """An answer of the admin interface; empty as long as there is none."""
        try:
            async with self._session.get(f"http://envoy{path}") as answer:
                return await answer.text()
        except aiohttp.ClientError:
            return ""

    async def stats(self) -> dict[str, int]:
        """The counters and gauges that are kept."""
        found = json.loads(await self.get("/stats?format=json") or '{"stats": []}')["stats"]
        return {s["name"]: s["value"] for s in found if isinstance(s.get("value"), int)}

    async def config_dump(self) -> list[dict[str, Any]]:
        """Its configuration as it stands, endpoints included."""
        return json.loads(await self.get("/config_dump?include_eds"))["configs"]


def build_bootstrap(identity: Mapping[str, Any], *, ipv6: bool) -> dict[str, Any]:
    """The agent's bootstrap, with the admin interface on a socket and the statistics that the tests read."""
    facts = document.Facts(
        xds_socket=f"/{XDS}",
        sds_socket=f"/{SDS}",
        ipv6=ipv6,
        annotations={"sidecar.istio.io/statsInclusionRegexps": _STATS},
    )
    bootstrap = document.build_bootstrap(identity, parse_proxy_config(), facts)
    bootstrap["admin"]["address"] = {"pipe": {"path": f"/{ADMIN}"}}
    return bootstrap


def _furnish(root: Path, identity: Mapping[str, Any], objects: Iterable[Any], *, ipv6: bool) -> None:
    for name in set(_FILENAME.findall(json.dumps(list(objects)))):
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(acceptance_material.file_content(name))
    (root / "bootstrap.json").write_text(json.dumps(build_bootstrap(identity, ipv6=ipv6)))


def _command(root: Path, *, ipv6: bool) -> list[str]:
    return [
        *("unshare", "--net", "--mount", "--propagation", "private"),
        *("sh", "-c", _ENTER, "sh", str(root), str(find_envoy("", ""))),
        *("-c", "/bootstrap.json", "--concurrency", "1", "--disable-hot-restart", "--drain-time-s", "1"),
        *("--local-address-ip-version", "v6" if ipv6 else "v4"),
        *("--reject-unknown-dynamic-fields", "-l", "warning"),
    ]


@contextlib.contextmanager
def room() -> Iterator[Path]:
    """A folder to be the root, at a path short enough for sockets."""
    root = Path(tempfile.mkdtemp(prefix="envoy-"))
    for folder in ("etc", "run", "tmp", "var/log"):
        (root / folder).mkdir(parents=True)
    (root / "var/run").symlink_to("/run")
    try:
        yield root
    finally:
        shutil.rmtree(root)


@contextlib.asynccontextmanager
async def running(root: Path, identity: Mapping[str, Any], objects: Iterable[Any]) -> AsyncIterator[Envoy]:
    """An Envoy for the length of a test; it finds the files that these objects of users name."""
    ipv6 = all(":" in address for address in identity["metadata"]["INSTANCE_IPS"].split(","))
    _furnish(root, identity, objects, ipv6=ipv6)
    pod = node.Pod(
        name=identity["metadata"]["NAME"],
        namespace=identity["metadata"]["NAMESPACE"],
        domain="",
        addresses=(),
    )
    with (root / "envoy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *_command(root, ipv6=ipv6),
            env={**_ENVIRON, **node.build_identity_variables(pod, identity["metadata"])},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(root / ADMIN))) as session:
            yield Envoy(root, process, session)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
