"""The page in a real browser, beside a control plane with proxies of which one refuses what it is sent.

Everything is done by keyboard where a reader could. Pictures of the views are kept in the folder that
MIZZEN_SCREENSHOTS names.
"""

import asyncio
import os
import pathlib
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from browser import Browser, browser
from control_planes import Plane, control_plane
from crowds import crowd, member
from ui_mesh import BROKEN, HOSTILE, RULES, SUBSET, Proxies, connected, write

from mizzen.compile.resource import CLUSTER

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


class Bench(msgspec.Struct, frozen=True):
    """What the tests work with."""

    plane: Plane
    proxies: Proxies
    window: Browser
    pictures: pathlib.Path

    async def show(self, view: str) -> None:
        """Load the page anew at a view."""
        await self.window.open("about:blank")
        await self.window.open(f"http://{self.plane.target('--monitoringAddr')}/ui/#{view}")
        await self.window.until("#status", lambda text: text.startswith("live"))

    async def picture(self, name: str) -> None:
        """Keep what is seen, in light and dark."""
        for scheme in ("dark", "light"):
            await self.window.prefer(scheme)
            await self.window.shoot(self.pictures / f"{name}-{scheme}.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("ui")
    write(made)
    return made


@pytest.fixture(scope="module")
def pictures(folder: pathlib.Path) -> pathlib.Path:
    chosen = pathlib.Path(os.environ.get("MIZZEN_SCREENSHOTS") or folder / "pictures")
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(folder: pathlib.Path, pictures: pathlib.Path) -> AsyncIterator[Bench]:
    async with control_plane(folder) as plane, connected(plane) as proxies, browser(folder) as window:
        await window.resize(1280, 900)
        yield Bench(plane, proxies, window, pictures)


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def quiet(bench: Bench) -> AsyncIterator[None]:
    """The browser complains about nothing: no error, and nothing that the page's policy forbids."""
    await bench.window.complaints()
    yield
    assert await bench.window.complaints() == []
    assert "broken" not in await bench.window.run("return document.title")


async def test_matrix_shows_who_has_what_and_a_refusal_in_the_proxys_words(bench: Bench) -> None:
    await bench.show("sync")
    words = await bench.window.until("#sync-table .detail", lambda text: "refuses CDS" in text)
    assert SUBSET in words
    assert HOSTILE in words
    assert await bench.window.texts("#sync-table tbody th a") == ["cart-v1-0.shop", "cart-v2-0.shop", "front-0.shop"]
    assert "1 NACK" in await bench.window.text("#view-sync .summary")
    assert await bench.window.run("return document.querySelectorAll('main img, main script').length") == 0
    await bench.picture("sync")


async def test_matrix_follows_what_proxies_say(bench: Bench) -> None:
    await bench.show("sync")
    await bench.window.until("#sync-table .detail", lambda text: "refuses CDS" in text)
    words = bench.proxies.refusing.pop(CLUSTER)
    rules = bench.plane.config / "rules.yaml"
    try:
        rules.write_text(RULES.replace("name: v2, labels", "name: v3, labels"))
        await bench.window.until("#sync-table .detail", lambda text: not text)
        await bench.window.until("#view-sync .summary", lambda text: "NACK" not in text)
    finally:
        bench.proxies.refusing[CLUSTER] = words
        rules.write_text(RULES)
    await bench.window.until("#sync-table .detail", lambda text: "refuses CDS" in text)


async def test_chain_is_walked_from_listener_to_endpoint_by_keyboard(bench: Bench) -> None:
    await bench.show("sync")
    await bench.window.until("#sync-table tbody th a", bool)
    await bench.window.run("document.querySelectorAll('#sync-table tbody th a')[2].focus()")
    await bench.window.press("Enter")
    await bench.window.until("#view-chain .summary", lambda text: "front-0.shop: 3 listeners" in text)
    await bench.window.run("document.querySelector('#tree [tabindex=\"0\"]').focus()")
    await bench.window.press("End")
    assert "0.0.0.0_8080" in await bench.window.focused()
    for expected in ("raw_buffer", "routes, 8080", "host, cart.shop", "route, /*; header x-tester", SUBSET, "10.0.0.3"):
        await step_in(bench.window, expected)
    await bench.picture("chain")
    await bench.window.press("Left")
    assert SUBSET in await bench.window.focused()
    await bench.window.press("Left")
    assert "false" in await bench.window.run("return document.activeElement.getAttribute('aria-expanded')")
    await bench.window.press("Home")
    assert "virtualOutbound" in await bench.window.focused()
    assert await bench.window.run("return document.querySelectorAll('#tree [tabindex=\"0\"]').length") == 1


async def step_in(window: Browser, expected: str) -> None:
    """Open the focused node, and go to its first branch."""
    await window.press("Right")
    opened = "#tree [role=treeitem]:focus > [role=group]"
    await window.until(opened, bool)
    await window.press("Right")
    assert expected in await window.focused()


async def test_refused_cluster_is_marked_in_the_chain(bench: Bench) -> None:
    place = '["route", "rds", "8080", "", "cart.shop.svc.cluster.local:8080", "0"]'
    status, text = await bench.plane.get(f"/ui/data/chain?proxyID=cart-v2-0.shop&at={place}")
    assert status == 200
    assert HOSTILE in msgspec.json.decode(text)["nodes"][0]["error"]


async def test_trace_gives_the_verdict_with_its_picture(bench: Bench) -> None:
    await bench.show("trace/front-0.shop")
    await bench.window.type("[name=url]", "http://cart.shop:8080/admin")
    await bench.window.press("Enter")
    words = await bench.window.until("#verdict", lambda text: "DENIED" in text, 60)
    assert "403" in words
    assert "AuthorizationPolicy shop/no-admin" in words
    sides = await bench.window.texts("#picture .side > h3")
    assert sides[0] == "front-0.shop"
    assert sides[-1].startswith("cart-v")
    assert "policy" in await bench.window.text("#picture .step.fails")
    await bench.picture("trace")


async def test_trace_that_cannot_be_asked_says_why(bench: Bench) -> None:
    await bench.show("trace/nobody.nowhere")
    await bench.window.type("[name=url]", "http://cart.shop:8080/")
    await bench.window.press("Enter")
    await bench.window.until("#alarm", lambda text: "there is no pod nobody.nowhere" in text)
    await bench.window.complaints_until("422")


async def test_findings_appear_and_go_while_they_are_watched(bench: Bench) -> None:
    broken = bench.plane.config / "broken.yaml"
    await bench.show("findings")
    await bench.window.until("#view-findings .summary", bool)
    assert "broken.yaml" not in await bench.window.text("#findings-table")
    await asyncio.to_thread(broken.write_text, BROKEN)
    try:
        words = await bench.window.until("#findings-table tbody", lambda text: "broken.yaml" in text)
        assert f"VirtualService shop/{HOSTILE}" in words
        assert "expected list" in words
        assert await bench.window.run("return document.querySelectorAll('main img, main script').length") == 0
        await bench.picture("findings")
    finally:
        broken.unlink()
    await bench.window.until("#findings-table tbody", lambda text: "broken.yaml" not in text)


async def test_pushes_name_the_object_that_caused_them(bench: Bench) -> None:
    rules = bench.plane.config / "rules.yaml"
    await bench.show("pushes")
    try:
        rules.write_text(RULES.replace("weight: 90", "weight: 80").replace("weight: 10", "weight: 20"))
        await bench.window.until("#pushes-tables div:nth-of-type(2)", lambda text: "VirtualService shop/cart" in text)
        await bench.window.until("#pushes-tables > div", lambda text: "VirtualService shop/cart" in text)
        await bench.picture("pushes")
    finally:
        rules.write_text(RULES)


async def test_single_keys_lead_through_the_views_and_can_be_switched_off(bench: Bench) -> None:
    await bench.show("sync")
    await bench.window.press("4")
    await bench.window.until("nav [aria-current]", lambda text: text.startswith("Findings"))
    await bench.window.until("h2:focus", lambda text: text == "What is not in force")
    await bench.window.press("/")
    assert await bench.window.run("return document.activeElement.matches('#view-findings .filter')")
    await bench.window.press("1")
    assert await bench.window.run("return document.activeElement.value") == "1"
    await bench.window.press("Tab", "?")
    await bench.window.until("#help[open]", lambda text: "to the filter of the view" in text)
    await bench.picture("keys")
    await bench.window.click("#single-keys")
    await bench.window.press("Escape", "2")
    await bench.window.until("nav [aria-current]", lambda text: text.startswith("Findings"))


async def test_thousand_proxies_stay_fifty_rows(bench: Bench) -> None:
    with crowd(bench.plane, *map(member, range(1000))):
        await bench.show("sync")
        await bench.window.until("#view-sync .pager", lambda text: "1–50 of 1,003" in text)
        assert await bench.window.run("return document.querySelectorAll('#sync-table tbody tr').length") <= 51
        await bench.picture("crowd")
        await bench.window.press("]")
        await bench.window.until("#view-sync .pager", lambda text: "51–100 of 1,003" in text)
        await bench.window.type("#view-sync .filter", "crowd-0777")
        await bench.window.until("#view-sync .pager", lambda text: "1–1 of 1" in text)
        assert await bench.window.texts("#sync-table tbody th a") == ["crowd-0777.crowd"]
        assert await bench.window.run("return document.getElementsByTagName('*').length") < 1500


async def test_name_of_a_proxy_is_text_and_leads_to_its_chain(bench: Bench) -> None:
    with crowd(bench.plane, member(0, name=HOSTILE)):
        await bench.show("sync")
        await bench.window.type("#view-sync .filter", "onerror")
        await bench.window.until("#sync-table tbody th a", lambda text: text == f"{HOSTILE}.crowd")
        await bench.window.click("#sync-table tbody th a")
        await bench.window.until("#view-chain .summary", lambda text: text == f"{HOSTILE}.crowd: 0 listeners")
        await bench.window.click("#chain-trace")
        await bench.window.until("h2:focus", lambda text: text == "What will a request meet")
        assert await bench.window.run("return document.querySelector('[name=source]').value") == f"{HOSTILE}.crowd"
        assert await bench.window.run("return document.querySelectorAll('main img, main script').length") == 0


async def test_who_comes_by_a_foreign_name_is_asked_for_a_token(bench: Bench) -> None:
    _, _, port = bench.plane.target("--monitoringAddr").rpartition(":")
    await bench.window.open(f"http://mesh.example:{port}/ui/")
    await bench.window.until("#login", lambda text: "asks for a token" in text)
    assert await bench.window.text("#sync-table tbody") == ""
    await bench.window.complaints_until("401")
    await bench.picture("token")
    assert await bench.window.run("return document.activeElement.id") == "token"
    await bench.window.press(*bench.plane.token("istio-system", "operator"), "Enter")
    await bench.window.until("#sync-table tbody", lambda text: "front-0.shop" in text)
    await bench.window.until("#status", lambda text: text.startswith("live"))
    assert await bench.window.run("return document.querySelector('#login').hidden")
    await bench.window.complaints()


async def test_token_of_a_namespace_opens_the_chains_of_its_proxies_alone(bench: Bench) -> None:
    _, _, port = bench.plane.target("--monitoringAddr").rpartition(":")
    await bench.window.open("about:blank")
    await bench.window.open(f"http://mesh.example:{port}/ui/#chain/front-0.shop")
    await bench.window.until("#login", lambda text: "asks for a token" in text)
    await bench.window.press(*bench.plane.token("shop", "front"), "Enter")
    await bench.window.until("#view-chain .summary", lambda text: text == "front-0.shop: 3 listeners")
    await bench.window.until("#status", lambda text: text.startswith("live"))
    await bench.window.press("1")
    await bench.window.until("#alarm", lambda text: text == "this identity may not see this")
    # The page asks anew every few seconds, and is refused each time.
    await bench.window.open("about:blank")
    complaints = await bench.window.complaints_until("403")
    assert all("401" in each or "403" in each for each in complaints), complaints


async def test_page_fits_a_narrow_window(bench: Bench) -> None:
    await bench.window.resize(520, 900)
    try:
        for view in ("sync", "trace", "findings", "pushes"):
            await bench.show(view)
            script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert await bench.window.run(script) <= 0, view
        await bench.picture("narrow")
    finally:
        await bench.window.resize(1280, 900)
