"""Answers of the mesh's resolver."""

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest

from mizzen.local.net.dns import Records, Resolver, Service, answer

ZONE = {
    "cart.shop.svc.cluster.local": Records(addresses=("10.96.1.1", "fd00::1")),
    "db.shop.svc.cluster.local": Records(alias="cart.shop.svc.cluster.local"),
    "far.shop.svc.cluster.local": Records(alias="far.example.org"),
    "loop.shop.svc.cluster.local": Records(alias="loop.shop.svc.cluster.local"),
    "_http._tcp.cart.shop.svc.cluster.local": Records(services=(Service(80, "cart.shop.svc.cluster.local"),)),
    "many.example.com": Records(addresses=tuple(f"192.0.2.{number}" for number in range(200))),
}


def ask(name: str, kind: str = "A") -> dns.message.Message:
    return answer(ZONE, dns.message.make_query(name, kind))


def texts(reply: dns.message.Message) -> list[str]:
    return sorted(str(item) for found in reply.answer for item in found)


def test_a_name_answers_with_the_addresses_of_the_family_asked_for():
    assert texts(ask("CART.shop.svc.cluster.local")) == ["10.96.1.1"]
    assert texts(ask("cart.shop.svc.cluster.local", "AAAA")) == ["fd00::1"]
    assert ask("cart.shop.svc.cluster.local").flags & dns.flags.AA


def test_a_known_name_without_a_record_of_that_type_is_empty_and_an_unknown_one_does_not_exist():
    empty = ask("_http._tcp.cart.shop.svc.cluster.local", "A")
    assert (empty.rcode(), texts(empty)) == (dns.rcode.NOERROR, [])
    assert ask("nobody.shop.svc.cluster.local").rcode() == dns.rcode.NXDOMAIN


def test_an_alias_is_followed_within_the_zone_and_told_where_it_leaves_it():
    assert texts(ask("db.shop.svc.cluster.local")) == ["10.96.1.1", "cart.shop.svc.cluster.local."]
    far = ask("far.shop.svc.cluster.local")
    assert (far.rcode(), texts(far)) == (dns.rcode.NOERROR, ["far.example.org."])


def test_an_alias_of_itself_ends_in_failure():
    assert ask("loop.shop.svc.cluster.local").rcode() == dns.rcode.SERVFAIL


def test_services_name_port_and_host():
    assert texts(ask("_http._tcp.cart.shop.svc.cluster.local", "SRV")) == ["0 100 80 cart.shop.svc.cluster.local."]


@pytest.mark.parametrize("wire", [b"", b"\x00" * 11, b"\xff" * 40, bytes(range(256))])
def test_what_is_no_query_gets_no_reply(wire):
    assert Resolver(lambda: ZONE).reply(wire, 1232) is None


def test_a_reply_is_never_answered():
    wire = ask("cart.shop.svc.cluster.local").to_wire()
    assert Resolver(lambda: ZONE).reply(wire, 1232) is None


def test_an_answer_too_long_for_a_datagram_is_cut_and_whole_over_a_stream():
    query = dns.message.make_query("many.example.com", "A").to_wire()
    resolver = Resolver(lambda: ZONE)
    short, long = resolver.reply(query, 1232), resolver.reply(query, 65535)
    assert short is not None
    assert long is not None
    assert dns.message.from_wire(short).flags & dns.flags.TC
    assert len(texts(dns.message.from_wire(long))) == 200
