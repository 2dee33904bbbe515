"""A headless Chromium, driven over WebDriver as plain HTTP.

`browser()` starts chromedriver on a port of its own choice and opens one session. What the page logged as an error,
violations of its policy among it, is in `complaints`.
"""

import asyncio
import base64
import contextlib
import pathlib
import re
import shutil
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from eventually import eventually

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP mesh.example 127.0.0.1",
)
KEYS = {"Up": "\ue013", "Down": "\ue015", "Left": "\ue012", "Right": "\ue014", "Home": "\ue011", "End": "\ue010"}
KEYS |= {"Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c"}


class Replaced(Exception):
    """An element that was found is no longer on the page."""


class Browser:
    """One window."""

    def __init__(self, http: aiohttp.ClientSession, session: str) -> None:
        self._http = http
        self._session = session

    async def _ask(self, method: str, path: str, **body: Any) -> Any:
        sent = {"json": body} if method == "POST" else {}
        async with self._http.request(method, f"{self._session}{path}", **sent) as answer:
            value = (await answer.json())["value"]
            if answer.status != 200 and value.get("error") == "stale element reference":
                raise Replaced(path)
            assert answer.status == 200, value
            return value

    async def open(self, url: str) -> None:
        """Load a page."""
        await self._ask("POST", "/url", url=url)

    async def run(self, script: str, *arguments: Any) -> Any:
        """What the body of a function returns."""
        return await self._ask("POST", "/execute/sync", script=script, args=list(arguments))

    async def text(self, selector: str) -> str:
        """What a reader sees of the first element; empty where there is none."""
        return str(await self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    async def texts(self, selector: str) -> list[str]:
        """The same for all of them."""
        found = await self.run(
            "return [...document.querySelectorAll(arguments[0])].map(each => each.innerText)", selector
        )
        return list(found)

    async def until(self, selector: str, holds: Callable[[str], object], seconds: float = 60.0) -> str:
        """Wait for the text of an element; fails with what it was at last."""
        end = asyncio.get_running_loop().time() + seconds
        while not holds(seen := await self.text(selector)):
            assert asyncio.get_running_loop().time() < end, f"{selector} is {seen!r}"
            await asyncio.sleep(0.05)
        return seen

    async def press(self, *keys: str) -> None:
        """Keys one after the other: names of `KEYS`, or characters."""
        values = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": value} for value in values for kind in ("keyDown", "keyUp")]
        await self._ask("POST", "/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    async def type(self, selector: str, text: str) -> None:
        """Into a field, as a person would."""
        await self._act(selector, "value", text=text)

    async def click(self, selector: str) -> None:
        """The first element."""
        await self._act(selector, "click")

    async def _act(self, selector: str, action: str, **body: Any) -> None:
        """On the first element; on the one in its place if the page is drawn anew meanwhile."""
        for last in (False, False, True):
            found = await self._ask("POST", "/element", using="css selector", value=selector)
            try:
                await self._ask("POST", f"/element/{found[_ELEMENT]}/{action}", **body)
                return
            except Replaced:
                if last:
                    raise

    async def focused(self) -> str:
        """What a screen reader would say of the element that has the focus."""
        script = (
            "const e = document.activeElement; return e.getAttribute('aria-label') || e.innerText || e.name || e.id"
        )
        return str(await self.run(script))

    async def prefer(self, scheme: str) -> None:
        """`light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self._ask("POST", "/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": features})

    async def resize(self, width: int, height: int) -> None:
        """The window."""
        await self._ask("POST", "/window/rect", width=width, height=height)

    async def shoot(self, path: pathlib.Path) -> None:
        """A picture of what is seen."""
        picture = base64.b64decode(await self._ask("GET", "/screenshot"))
        await asyncio.to_thread(path.write_bytes, picture)

    async def complaints(self) -> list[str]:
        """Errors of the page since the last call."""
        found = await self._ask("POST", "/se/log", type="browser")
        return [entry["message"] for entry in found if entry["level"] == "SEVERE"]

    async def complaints_until(self, text: str) -> list[str]:
        """The same once one of them says this: they may come later than what the page shows of them."""
        found: list[str] = []

        async def says_so() -> bool:
            found.extend(await self.complaints())
            return any(text in each for each in found)

        await eventually(says_so)
        return found


@contextlib.asynccontextmanager
async def browser(folder: pathlib.Path) -> AsyncIterator[Browser]:
    """A browser with its profile in that folder, until the block ends."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("needs chromium and chromium-driver: scripts/test-browser installs them")
    log = folder / "chromedriver.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(driver, "--port=0", stdout=output, stderr=output)
    try:
        started = await eventually(lambda: re.search(r"started successfully on port (\d+)", log.read_text()))
        options = {"binary": chromium, "args": [*_ARGUMENTS, f"--user-data-dir={folder / 'profile'}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        base = f"http://127.0.0.1:{started[1]}/session"
        async with aiohttp.ClientSession() as http:
            async with http.post(base, json={"capabilities": {"alwaysMatch": wanted}}) as answer:
                value = (await answer.json())["value"]
                assert answer.status == 200, value
            session = f"{base}/{value['sessionId']}"
            try:
                yield Browser(http, session)
            finally:
                async with http.delete(session):
                    pass
    finally:
        process.terminate()
        await process.wait()
