"""Virtual addresses: who gets which, and who keeps it."""

import ipaddress

from mizzen.api.meta import Key
from mizzen.control.entry_pools import Pools
from mizzen.model.entry_addresses import Wish

V4, V6 = ipaddress.ip_network("240.240.0.0/16"), ipaddress.ip_network("2001:2::/48")


def key(name: str) -> Key:
    return Key("ServiceEntry", "default", name)


def wish(*hosts: str, **more: tuple) -> Wish:
    return Wish(hosts=hosts, **more)


def test_each_host_gets_one_of_each_family_in_order():
    pools = Pools((V4, V6))
    assert pools.assign({key("b"): wish("x", "y"), key("a"): wish("z")}) == set()
    assert pools.plans[key("b")] == (
        ("x", "240.240.0.1"),
        ("x", "2001:2::1"),
        ("y", "240.240.0.2"),
        ("y", "2001:2::2"),
    )
    assert pools.plans[key("a")] == (("z", "240.240.0.3"), ("z", "2001:2::3"))


def test_what_was_given_stays_given_whatever_changes():
    pools = Pools((V4,))
    pools.assign({key("a"): wish("x")})
    pools.assign({key("a"): wish("w", "x")})
    assert pools.plans[key("a")] == (("w", "240.240.0.2"), ("x", "240.240.0.1"))
    fresh = Pools((V4,))
    fresh.assign({key("new"): wish("n"), key("a"): wish("x", given=(("x", "240.240.0.1"),))})
    assert fresh.plans[key("a")] == (("x", "240.240.0.1"),)
    assert fresh.plans[key("new")] == (("n", "240.240.0.2"),)


def test_the_older_keeps_what_two_have():
    pools = Pools((V4,))
    both = (("x", "240.240.0.9"),)
    pools.assign({key("older"): wish("x", given=both), key("younger"): wish("x", given=both)})
    assert pools.plans[key("older")] == both
    assert pools.plans[key("younger")] == (("x", "240.240.0.1"),)


def test_an_address_that_a_user_writes_is_the_users():
    pools = Pools((V4,))
    pools.assign({key("a"): wish("x")})
    assert pools.assign({key("mine"): Wish(stated=("240.240.0.1", "10.0.0.0/8"))}) == {key("a")}
    assert pools.assign({key("a"): wish("x", given=(("x", "240.240.0.1"),))}) == set()
    assert pools.plans[key("a")] == (("x", "240.240.0.2"),)


def test_what_was_given_up_is_not_given_at_once_but_in_the_end():
    pools = Pools((ipaddress.ip_network("10.0.0.0/29"),))
    pools.assign({key("a"): wish("x")})
    pools.assign({key("a"): None})
    pools.assign({key("b"): wish("x")})
    assert pools.plans[key("b")] == (("x", "10.0.0.2"),)
    pools.assign({key("c"): wish("1", "2", "3", "4", "5", "6")})
    assert [address for _, address in pools.plans[key("c")]] == [f"10.0.0.{n}" for n in (3, 4, 5, 6, 1)]
    assert key("a") not in pools.plans


def test_addresses_outside_the_pools_are_replaced():
    pools = Pools((V4,))
    pools.assign({key("a"): wish("x", given=(("x", "192.0.2.1"), ("x", "nonsense"), ("gone", "240.240.0.1")))})
    assert pools.plans[key("a")] == (("x", "240.240.0.1"),)
