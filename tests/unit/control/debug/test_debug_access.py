"""Who may see which page."""

import pytest

from mizzen import settings
from mizzen.control.debug.access import Access, Denied
from mizzen.model.spiffe import Identity

SYSTEM = Identity("cluster.local", "istio-system", "istiod")
SHOP = Identity("cluster.local", "shop", "cart")


def access(**changes: object) -> Access:
    return Access(settings.Settings(http=settings.Http(**changes)))  # type: ignore[arg-type]


def test_caller_of_the_system_namespace_sees_everything() -> None:
    assert access().limit_on("syncz", [SYSTEM]) == ""
    assert access().limit_on("problems", [SHOP, SYSTEM]) == ""
    assert access().limit([SYSTEM]) == ""


@pytest.mark.parametrize("page", ["config_dump", "edsz", "ndsz"])
def test_caller_of_another_namespace_sees_dumps_of_its_own(page: str) -> None:
    assert access().limit_on(page, [SHOP]) == "shop"


@pytest.mark.parametrize(
    "page", ["syncz", "adsz", "connections", "problems", "list", "ecdsz", "configz", "", "nothing"]
)
def test_caller_of_another_namespace_sees_nothing_else(page: str) -> None:
    with pytest.raises(Denied):
        access().limit_on(page, [SHOP])


def test_caller_without_identity_sees_nothing() -> None:
    assert access().limit([]) is None
    with pytest.raises(Denied):
        access().limit_on("config_dump", [])


def test_further_namespaces_can_be_allowed() -> None:
    assert access(debug_namespaces=("shop",)).limit_on("syncz", [SHOP]) == ""


def test_authorization_can_be_switched_off() -> None:
    assert access(debug_authorization=False).limit_on("syncz", [SHOP]) == ""
    assert access(debug_authorization=False).limit([]) == ""
