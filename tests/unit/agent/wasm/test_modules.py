"""Which modules are fetched, which are here already, and which are thrown away."""

import asyncio
import contextlib
import hashlib
import os

import msgspec
import pytest
from module_servers import MODULE, MODULE_LAYER, Files, Registry, serving

from mizzen.agent.wasm.downloads import Downloads
from mizzen.agent.wasm.modules import Modules, Wanted
from mizzen.errors import AgentError

CHECKSUM = hashlib.sha256(MODULE).hexdigest()
DAY = 24 * 3600.0


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Case:
    """A folder of modules and a server with one."""

    def __init__(self, address: str, server: Files, modules: Modules, clock: Clock) -> None:
        self.server, self.modules, self.clock = server, modules, clock
        self.wanted = Wanted(plugin="p", version="1", url=f"http://{address}/m")

    async def get(self, **changes):
        return await self.modules.get(msgspec.structs.replace(self.wanted, **changes))

    @property
    def fetched(self) -> int:
        return len(self.server.requests)


@pytest.fixture
async def case(tmp_path):
    server, clock = Files({"/m": MODULE, "/other": MODULE + b"\0"}), Clock()
    async with serving(server) as (address, session):
        downloads = Downloads(session, retries=0)
        yield Case(address, server, Modules(tmp_path / "lib" / "data", downloads, expiry=DAY, clock=clock), clock)


@pytest.fixture(params=[0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
async def test_a_module_is_fetched_once_and_lies_in_a_file_that_everybody_may_read(case):
    path = await case.get()
    assert path.read_bytes() == MODULE
    assert path.is_absolute()
    assert path.stat().st_mode & 0o777 == 0o644
    assert [path.parents[up].stat().st_mode & 0o777 for up in (0, 1)] == [0o755] * 2
    assert await case.get(version="2") == await case.get(plugin="q") == path
    assert case.fetched == 1


async def test_plugins_that_want_it_at_the_same_time_wait_for_one_download(case):
    paths = await asyncio.gather(*(case.get(plugin=name) for name in "abc"))
    assert (len(set(paths)), case.fetched) == (1, 1)


async def test_always_means_once_for_each_version_of_the_plugin(case):
    for version in ("1", "1", "2", "2"):
        await case.get(policy="Always", version=version)
    assert case.fetched == 2
    await case.get(policy="Always", version="2", plugin="another")
    assert case.fetched == 3


async def test_a_checksum_is_compared_and_makes_a_module_unchanging(case):
    for version in "12":
        assert await case.get(checksum=CHECKSUM, policy="Always", version=version)
    assert case.fetched == 1
    with pytest.raises(AgentError, match=f"has the checksum {CHECKSUM}, not {'0' * 64}"):
        await case.get(checksum="0" * 64)


async def test_what_is_not_there_is_asked_for_again_next_time(case):
    for _ in range(2):
        with pytest.raises(AgentError, match="answers 404"):
            await case.get(url=case.wanted.url + "issing")
    assert case.fetched == 2


async def test_a_file_that_somebody_removed_is_fetched_again(case):
    (await case.get()).unlink()
    assert (await case.get()).exists()
    assert case.fetched == 2


async def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path):
    (tmp_path / "data").write_bytes(b"in the way")
    async with serving(Files({"/m": MODULE})) as (address, session):
        modules = Modules(tmp_path / "data", Downloads(session, retries=0), expiry=DAY)
        with pytest.raises(AgentError, match="cannot be kept"):
            await modules.get(Wanted(plugin="p", version="1", url=f"http://{address}/m"))


async def test_old_modules_are_removed_unless_they_are_used(case):
    used, unused = await case.get(), await case.get(url=case.wanted.url.replace("/m", "/other"))
    case.clock.now += DAY / 2
    case.modules.purge(set())
    assert used.exists()
    assert unused.exists()
    case.clock.now += DAY
    case.modules.purge({used})
    assert used.exists()
    assert not unused.exists()
    await case.get(url=case.wanted.url.replace("/m", "/other"))
    assert case.fetched == 3


async def test_what_cannot_be_removed_is_left(case, caplog):
    (case.modules._folder / "old.wasm").mkdir(parents=True)
    os.utime(case.modules._folder / "old.wasm", (1.0, 1.0))
    unused = await case.get()
    case.clock.now += 2 * DAY
    case.modules.purge(set())
    assert not unused.exists()
    assert "old.wasm cannot be removed" in caplog.text


@pytest.mark.parametrize(
    ("policy", "tag", "fetches"), [("", "v1", 1), ("", "latest", 2), ("IfNotPresent", "latest", 1), ("Always", "v1", 2)]
)
async def test_images_that_move_are_pulled_for_each_version(tmp_path, policy, tag, fetches):
    registry = Registry()
    digest = registry.push(tag, MODULE, MODULE_LAYER).removeprefix("sha256:")
    async with contextlib.AsyncExitStack() as stack:
        address, session = await stack.enter_async_context(serving(registry))
        modules = Modules(tmp_path, Downloads(session, insecure=(address,), retries=0), expiry=DAY)
        wanted = Wanted(plugin="p", version="1", url=f"oci://{address}/team/plugin:{tag}", policy=policy)
        for version in ("1", "2", "2"):
            await modules.get(msgspec.structs.replace(wanted, version=version))
        assert registry.requests.count(f"/v2/team/plugin/manifests/{tag}") == fetches
        assert await modules.get(msgspec.structs.replace(wanted, checksum=digest))
        with pytest.raises(AgentError, match="has the checksum"):
            await modules.get(msgspec.structs.replace(wanted, checksum=CHECKSUM))
