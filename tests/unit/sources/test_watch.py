"""A watched folder as a stream of batches, with real files and a real inotify."""

import asyncio
import contextlib
import gc
import os
import pathlib
import time
from collections.abc import AsyncIterator, Callable

import pytest
import whole_files
from eventually import eventually

from mizzen.api.meta import Key
from mizzen.errors import SourceError
from mizzen.sources.batches import Batch
from mizzen.sources.watch import FileSource, Timing

CART, FRONT = Key("Service", "default", "cart"), Key("Service", "default", "front")
FAST = Timing(look_every=0.3, poll_every=0.05)


def service(name: str = "cart", port: object = 80) -> str:
    return f"apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  ports:\n  - port: {port}\n"


class Watch:
    """Reads batches with a time limit."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.batches = source.watch()

    async def next(self) -> Batch:
        async with asyncio.timeout(60):
            return await anext(self.batches)

    async def until(self, key: Key, port: int) -> None:
        while True:
            batch = await self.next()
            if key in batch.sets and batch.sets[key].spec.ports[0].port == port:  # type: ignore[attr-defined]
                return


@contextlib.asynccontextmanager
async def watching(
    *paths: pathlib.Path, timing: Timing = FAST, clock: Callable[[], float] = time.time
) -> AsyncIterator[Watch]:
    watch = Watch(FileSource([str(path) for path in paths], timing, clock))
    try:
        yield watch
    finally:
        await watch.batches.aclose()  # type: ignore[attr-defined]


async def test_first_batch_is_everything(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text(service() + "---\n" + service("front"))
    async with watching(tmp_path) as watch:
        assert set((await watch.next()).sets) == {CART, FRONT}


async def test_empty_folder_has_a_first_batch_too(tmp_path: pathlib.Path) -> None:
    async with watching(tmp_path) as watch:
        assert await watch.next() == Batch()


async def test_later_batches_are_differences(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text(service() + "---\n" + service("front"))
    # No look comes by itself in time.
    async with watching(tmp_path, timing=Timing(look_every=600.0)) as watch:
        await watch.next()
        whole_files.put(tmp_path / "a.yaml", service(port=81) + "---\n" + service("front"))
        batch = await watch.next()
        assert set(batch.sets) == {CART}
        (tmp_path / "a.yaml").unlink()
        assert set((await watch.next()).removes) == {CART, FRONT}


async def test_file_replaced_by_renaming_is_seen(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text(service())
    async with watching(tmp_path) as watch:
        await watch.next()
        (tmp_path / ".new").write_text(service(port=82))
        os.replace(tmp_path / ".new", tmp_path / "a.yaml")
        await watch.until(CART, 82)


async def test_new_folder_is_watched_too(tmp_path: pathlib.Path) -> None:
    async with watching(tmp_path) as watch:
        await watch.next()
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/a.yaml").write_text(service())
        await watch.until(CART, 80)
        (tmp_path / "sub/a.yaml").write_text(service(port=81))
        await watch.until(CART, 81)


async def test_half_written_file_is_waited_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text(service() + "---\n" + service("front"))
    text = service(port=81) + "---\n" + service("front", 91)
    written = now = float(int(time.time()))  # Whole, so that the file system and Python round it alike.
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return now

    async with watching(tmp_path, timing=Timing(longest_wait=600.0), clock=clock) as watch:
        await watch.next()
        looking = asyncio.ensure_future(watch.next())
        for end in range(0, len(text) + 50, 50):
            (tmp_path / ".part").write_text(text[:end])
            os.utime(tmp_path / ".part", (written, written))
            os.replace(tmp_path / ".part", tmp_path / "a.yaml")
            # The second look from here on began after the file was this long.
            await eventually(lambda wanted=looks + 2: looks >= wanted or looking.done())
        now += 60
        batch = await looking
        assert (set(batch.sets), batch.removes, batch.findings) == ({CART, FRONT}, (), ())


async def test_root_that_is_exchanged_is_followed(tmp_path: pathlib.Path) -> None:
    for number in (1, 2):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}/a.yaml").write_text(service(port=80 + number))
    root = tmp_path / "current"
    root.symlink_to("v1")
    async with watching(root) as watch:
        await watch.next()
        (tmp_path / "next").symlink_to("v2")
        os.replace(tmp_path / "next", root)
        await watch.until(CART, 82)
        (tmp_path / "v2/a.yaml").write_text(service(port=83))
        await watch.until(CART, 83)


async def test_root_that_vanishes_leaves_everything_and_is_reported(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "config"
    root.mkdir()
    (root / "a.yaml").write_text(service())
    async with watching(root) as watch:
        await watch.next()
        root.rename(tmp_path / "away")
        batch = await watch.next()
        assert (batch.sets, batch.removes) == ({}, ())
        assert [problem.code for _, problem in batch.findings] == ["missing"]
        (tmp_path / "away").rename(root)
        assert (await watch.next()).findings == ()


async def test_broken_file_gives_a_batch_with_its_finding_only(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text(service())
    async with watching(tmp_path) as watch:
        await watch.next()
        whole_files.put(tmp_path / "a.yaml", service(port="eighty"))
        batch = await watch.next()
        assert (batch.sets, batch.removes) == ({}, ())
        assert [problem.code for _, problem in batch.findings] == ["invalid-field", "stale"]


async def test_later_root_uncovers_what_it_replaced(tmp_path: pathlib.Path) -> None:
    for name, port in (("low", 80), ("high", 81)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(service(port=port))
    async with watching(tmp_path / "low", tmp_path / "high") as watch:
        first = await watch.next()
        assert first.sets[CART].spec.ports[0].port == 81  # type: ignore[attr-defined]
        (tmp_path / "high/a.yaml").unlink()
        await watch.until(CART, 80)


async def test_without_inotify_the_source_polls(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr("mizzen.sources.watch.RustNotify", refuse)
    (tmp_path / "a.yaml").write_text(service())
    async with watching(tmp_path) as watch:
        await watch.next()
        (tmp_path / "a.yaml").write_text(service(port=81))
        await watch.until(CART, 81)


async def test_missing_path_at_the_start_is_an_error(tmp_path: pathlib.Path) -> None:
    async with watching(tmp_path / "missing") as watch:
        with pytest.raises(SourceError):
            await watch.next()


async def test_reading_does_not_hold_the_loop(tmp_path: pathlib.Path) -> None:
    """In CPU time, which a busy machine does not stretch: what the loop's own thread spends in one go is little."""
    for number in range(300):
        (tmp_path / f"{number}.yaml").write_text("---\n".join(service(f"s{number}-{n}") for n in range(20)))
    longest, stop = 0.0, False

    async def tick() -> None:
        nonlocal longest
        while not stop:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - before)

    gc.disable()  # What all tests before have left is looked through by whichever thread comes to it.
    try:
        async with watching(tmp_path) as watch:
            ticking = asyncio.ensure_future(tick())
            started = time.process_time()
            assert len((await watch.next()).sets) == 6000
            took = time.process_time() - started
            stop = True
            await ticking
    finally:
        gc.enable()
    assert longest < took / 3
