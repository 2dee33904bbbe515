"""Who is let in to the debug pages over HTTP."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from mizzen import settings
from mizzen.ca.identity import Call, Caller, bearer_token
from mizzen.control.debug.access import Access
from mizzen.control.debug.console import Console
from mizzen.control.http import Pages, _is_called_local, _is_local
from mizzen.control.release import Release
from mizzen.errors import AuthorityError

SYSTEM = "spiffe://cluster.local/ns/istio-system/sa/istiod"
SHOP = "spiffe://cluster.local/ns/shop/sa/cart"


class Tokens:
    """Believes a token that is an identity."""

    async def authenticate(self, call: Call) -> Caller:
        token = bearer_token(call.metadata)
        if not token or not token.startswith("spiffe://"):
            raise AuthorityError("no")
        return Caller(identities=(token,), method="token")


async def refresh() -> None:
    """Nothing is worked out."""


async def limit(identity: str, page: str, scheme: str = "Bearer", *, enforced: bool = True) -> str:
    """What a caller from elsewhere may see."""
    config = settings.Settings(http=settings.Http(debug_authorization=enforced))
    release = Release(version="1", instance="here")
    pages = Pages(Console({}), Access(config), Tokens(), config.http, release, lambda: True, refresh)
    headers = {"Authorization": f"{scheme} {identity}"} if identity else {}
    return await pages.limit(make_mocked_request("GET", "/debug/x", headers=headers), page)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("", False),
        (None, False),
        ("localhost", False),
    ],
)
def test_only_loopback_addresses_are_local(address: str | None, local: bool) -> None:
    assert _is_local(address) is local


@pytest.mark.parametrize(
    ("host", "local"),
    [
        (None, True),
        ("localhost", True),
        ("LOCALHOST:15014", True),
        ("mesh.localhost:15014", True),
        ("127.0.0.1:15014", True),
        ("[::1]:15014", True),
        ("[::1]", True),
        ("10.0.0.1:15014", False),
        ("evil.example:15014", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:80", False),
        ("", False),
    ],
)
def test_a_caller_on_this_machine_that_calls_it_by_a_foreign_name_is_a_foreign_page(
    host: str | None, local: bool
) -> None:
    assert _is_called_local(host) is local


async def test_stranger_without_credentials_gets_401_without_details() -> None:
    for identity in ("", "rubbish"):
        with pytest.raises(web.HTTPUnauthorized) as caught:
            await limit(identity, "syncz")
        assert caught.value.text == ""


async def test_caller_with_a_token_sees_what_its_identity_may() -> None:
    assert await limit(SYSTEM, "syncz") == ""
    assert await limit(SYSTEM, "problems", "Istio") == ""
    assert await limit(SHOP, "config_dump") == "shop"


async def test_page_that_is_not_for_the_caller_is_refused_without_details() -> None:
    with pytest.raises(web.HTTPForbidden) as caught:
        await limit(SHOP, "syncz")
    assert caught.value.text == ""


async def test_authorization_can_be_switched_off_but_not_authentication() -> None:
    assert await limit(SHOP, "syncz", enforced=False) == ""
    with pytest.raises(web.HTTPUnauthorized):
        await limit("", "syncz", enforced=False)
