"""Who may see which debug page."""

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from mizzen import settings
from mizzen.ca.identity import Call, Caller, bearer_token
from mizzen.control.http import Pages, _is_local
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


def pages(**changes: Any) -> Pages:
    config = settings.Settings(http=settings.Http(**changes))
    connections: Any = ()
    inputs: Any = None
    return Pages(connections, inputs, Tokens(), config, lambda: True)


def request(identity: str = "", scheme: str = "Bearer") -> web.Request:
    headers = {"Authorization": f"{scheme} {identity}"} if identity else {}
    return make_mocked_request("GET", "/debug/x", headers=headers)


async def limit(identity: str, page: str, **changes: Any) -> str:
    return await pages(**changes)._limit(request(identity), page)


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


async def test_stranger_without_credentials_gets_401_without_details() -> None:
    for identity in ("", "rubbish"):
        with pytest.raises(web.HTTPUnauthorized) as caught:
            await limit(identity, "syncz")
        assert caught.value.text == ""


async def test_caller_of_the_system_namespace_sees_everything() -> None:
    assert await limit(SYSTEM, "syncz") == ""
    assert await pages()._limit(request(SYSTEM, "Istio"), "problems") == ""


@pytest.mark.parametrize("page", ["config_dump", "edsz", "ndsz"])
async def test_caller_of_another_namespace_sees_dumps_of_its_own(page: str) -> None:
    assert await limit(SHOP, page) == "shop"


@pytest.mark.parametrize("page", ["syncz", "adsz", "connections", "problems", "list", "ecdsz", "", "nothing"])
async def test_caller_of_another_namespace_sees_nothing_else(page: str) -> None:
    with pytest.raises(web.HTTPForbidden):
        await limit(SHOP, page)


async def test_further_namespaces_can_be_allowed() -> None:
    assert await limit(SHOP, "syncz", debug_namespaces=("shop",)) == ""


async def test_authorization_can_be_switched_off_but_not_authentication() -> None:
    assert await limit(SHOP, "syncz", debug_authorization=False) == ""
    with pytest.raises(web.HTTPUnauthorized):
        await limit("", "syncz", debug_authorization=False)
