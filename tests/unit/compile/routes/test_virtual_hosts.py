"""Virtual hosts of one route configuration: every name and domain belongs to one of them."""

import weakref

import pytest

from mizzen.compile.routes.virtual_hosts import (
    VirtualHost,
    encode_virtual_host,
    encoded,
    join_apart,
    part_of,
    with_domains,
    without_duplicates,
)


def host(name: str, *domains: str) -> VirtualHost:
    return VirtualHost(name=name, domains=domains, routes=())


def left(*hosts: VirtualHost) -> list[tuple[str, tuple[str, ...]]]:
    return [(kept.name, kept.domains) for kept in without_duplicates(hosts)]


def test_hosts_that_share_nothing_stay_as_they_are() -> None:
    hosts = [host("a.x:80", "a.x", "a"), host("b.x:80", "b.x", "b"), host("b.x:81", "b.x:81")]
    assert all(kept is given for kept, given in zip(without_duplicates(hosts), hosts, strict=True))


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (host("a.x:80", "other"), []),
        (host("c.x:80", "A", "c"), [("c.x:80", ("c",))]),
        (host("c.x:80", "a"), []),
        (host("c.x:80"), []),
        (host("c.x:80", "a.x:80", "c"), [("c.x:80", ("c",))]),
    ],
    ids=["the same name", "a domain in other letters", "no domain of its own", "no domain", "another's full name"],
)
def test_the_first_keeps_what_two_have(second: VirtualHost, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert left(host("a.x:80", "a.x", "a"), second) == [("a.x:80", ("a.x", "a")), *expected]


def test_a_full_name_is_left_to_whom_it_names_even_if_that_comes_later() -> None:
    assert left(host("a.b:80", "a.b", "a"), host("a:80", "a")) == [("a.b:80", ("a.b",)), ("a:80", ("a",))]


def test_what_is_encoded_once_is_encoded_anew_under_other_domains() -> None:
    made = encoded(host("a.x:80", "a.x", "a"))
    assert made.encoded == encode_virtual_host(host("a.x:80", "a.x", "a"))
    assert with_domains(made, ("a.x", "a")) is made
    assert encode_virtual_host(with_domains(made, ("a",))) == encode_virtual_host(host("a.x:80", "a"))


def test_equal_parts_are_one_as_long_as_somebody_holds_them() -> None:
    made = part_of([encoded(host("a.x:80", "a.x")), host("b.x:80", "b.x")])
    assert part_of([encoded(host("a.x:80", "a.x")), host("b.x:80", "b.x")]) is made
    assert part_of([encoded(host("a.x:80", "a.x"))]) is not made
    known = weakref.ref(made)
    del made
    assert known() is None


def test_equal_hosts_are_one_as_long_as_somebody_holds_them() -> None:
    made = encoded(host("a.x:80", "a.x", "a"))
    assert encoded(host("a.x:80", "a.x", "a")) is made
    assert encoded(host("a.x:80", "a.x")) != made
    known = weakref.ref(made)
    del made
    assert known() is None


def test_domains_that_envoy_refuses_are_not_taken_for_encoded() -> None:
    assert encoded(host("a.x:80", "a.x", "")).encoded == b""


def joined(*hosts: VirtualHost) -> list[str] | None:
    """The names of hosts that are put together from a part for each, and from one part."""
    one, each = join_apart([part_of(hosts)]), join_apart([part_of([host]) for host in hosts])
    assert one == each
    return [host.name for host in one] if one is not None else None


def test_parts_that_share_nothing_are_joined_by_name() -> None:
    hosts = [
        encoded(host("b.x:80", "b.x", "b")),
        encoded(host("A.x:80", "A.x", "a")),
        encoded(host("c.x:81", "c.x:81")),
    ]
    assert joined(*hosts) == ["A.x:80", "b.x:80", "c.x:81"]
    assert {each.name: each for each in without_duplicates(hosts)} == {each.name: each for each in hosts}


@pytest.mark.parametrize(
    "second",
    [
        encoded(host("a.x:80", "other")),
        encoded(host("c.x:80", "A", "c")),
        encoded(host("c.x:80")),
        encoded(host("c.x:80", "a.x:80", "c")),
        encoded(host("c.x:80", "")),
        encoded(host("c.x:80", "*")),
        host("c.x:80", "c"),
    ],
    ids=["name", "domain in other letters", "no domain", "full name", "domain in vain", "everything", "not encoded"],
)
def test_parts_of_which_that_is_not_certain_are_not(second: VirtualHost) -> None:
    assert joined(encoded(host("a.x:80", "a.x", "a")), second) is None
