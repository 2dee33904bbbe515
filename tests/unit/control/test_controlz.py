"""Log scopes and their levels as istioctl reads and changes them."""

import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient, TestServer

from mizzen import observe
from mizzen.control import controlz


@pytest.fixture
async def client() -> AsyncIterator[TestClient]:
    scope = observe.scope("ads")
    before = scope.level
    async with TestClient(TestServer(controlz.application())) as found:
        yield found
    scope.setLevel(before)


async def test_all_scopes_are_listed(client: TestClient) -> None:
    for path in ("/scopej", "/scopej/"):
        scopes = {scope["name"]: scope for scope in await (await client.get(path)).json()}
        assert {"default", "ads"} <= set(scopes)
        assert set(scopes["ads"]) == {"name", "description", "output_level", "stack_trace_level", "log_callers"}
        assert scopes["ads"]["description"]


async def test_a_level_is_changed_while_it_runs(client: TestClient) -> None:
    shown = await (await client.get("/scopej/ads")).json()
    for level in ("debug", "error"):
        answer = await client.put("/scopej/ads", json={**shown, "output_level": level})
        assert answer.status == 202
        assert (await (await client.get("/scopej/ads")).json())["output_level"] == level
    assert observe.scope("ads").level == logging.ERROR


@pytest.mark.parametrize(
    "body", [b"no json", b'{"output_level": "loud"}', b'{"output_level": "info,default:none"}', b"[]"]
)
async def test_what_is_no_level_changes_nothing(client: TestClient, body: bytes) -> None:
    before = observe.scopes()
    answer = await client.put("/scopej/ads", data=body)
    assert answer.status == 400
    assert observe.scopes() == before


async def test_unknown_scope_is_refused(client: TestClient) -> None:
    assert (await client.get("/scopej/nothing")).status == 400
    assert (await client.put("/scopej/nothing", json={"output_level": "info"})).status == 400
    assert "nothing" not in observe.scopes()
