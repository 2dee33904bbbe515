"""The DNS proxy: what it answers itself, what it passes on, and how, by UDP and TCP."""

import asyncio
import contextlib
import socket

import dns.asyncquery
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest
from claims import own_port
from hypothesis import given
from hypothesis import strategies as st

from mizzen import protos
from mizzen.agent.dns.proxy import Proxy, serve_dns
from mizzen.errors import AgentError, DecodeError

_nds = protos.package("istio.networking.nds.v1")
_MANY = [f"10.1.{number // 250}.{number % 250 + 1}" for number in range(100)]


class Upstream:
    """Stands where the resolvers are: answers every question with one address."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.silent = False

    async def ask(self, query: bytes, *, tcp: bool) -> bytes | None:
        message = dns.message.from_wire(query)
        self.asked.append((str(message.question[0].name), tcp))
        if self.silent:
            return None
        response = dns.message.make_response(message)
        response.answer.append(dns.rrset.from_text(message.question[0].name, 60, "IN", "A", "192.0.2.9"))
        return response.to_wire()


def make(*, table: bool = True, **options) -> tuple[Proxy, Upstream]:
    upstream = Upstream()
    proxy = Proxy(upstream, domain="web.svc.cluster.local", search=("web.svc.cluster.local",), **options)
    if table:
        hosts = {
            "cart.shop.svc.cluster.local": {
                "ips": ["10.96.2.1"],
                "registry": "Kubernetes",
                "shortname": "cart",
                "namespace": "shop",
            },
            "six.example.com": {"ips": ["fd00::6"]},
            "many.example.com": {"ips": _MANY},
        }
        proxy.update([protos.encode(_nds.NameTable(table=hosts))])
    return proxy, upstream


async def ask(proxy: Proxy, name: str, kind: str = "A", *, tcp: bool = False, **options) -> dns.message.Message:
    query = dns.message.make_query(name, kind, **options)
    response = await proxy.answer(query.to_wire(), tcp=tcp)
    assert response is not None
    message = dns.message.from_wire(response)
    assert query.is_response(message)
    return message


def records(message: dns.message.Message) -> list[str]:
    return [f"{dns.rdatatype.to_text(rrset.rdtype)} {record}" for rrset in message.answer for record in rrset]


async def test_mesh_name_is_answered_with_authority_and_a_short_life() -> None:
    proxy, upstream = make()
    message = await ask(proxy, "cart.shop.svc.cluster.local")
    assert records(message) == ["A 10.96.2.1"]
    assert message.flags & dns.flags.AA
    assert message.answer[0].ttl == 30
    assert upstream.asked == []


async def test_letters_of_the_question_come_back_as_they_were() -> None:
    message = await ask(make()[0], "CaRt.Shop")
    assert str(message.answer[0].name) == "CaRt.Shop."


@pytest.mark.parametrize(("name", "kind"), [("cart.shop", "AAAA"), ("cart.shop", "TXT"), ("six.example.com", "A")])
async def test_host_without_an_address_of_the_kind_has_an_empty_answer(name: str, kind: str) -> None:
    proxy, upstream = make()
    message = await ask(proxy, name, kind)
    assert (message.rcode(), message.answer, upstream.asked) == (dns.rcode.NOERROR, [], [])


async def test_ipv6_addresses_are_answered() -> None:
    assert records(await ask(make()[0], "six.example.com", "AAAA")) == ["AAAA fd00::6"]


async def test_name_with_a_search_domain_is_an_alias() -> None:
    message = await ask(make()[0], "six.example.com.web.svc.cluster.local", "AAAA")
    assert records(message) == ["CNAME six.example.com.", "AAAA fd00::6"]
    assert str(message.answer[1].name) == "six.example.com."


async def test_other_names_go_to_the_resolvers() -> None:
    proxy, upstream = make()
    assert records(await ask(proxy, "www.example.org")) == ["A 192.0.2.9"]
    await ask(proxy, "www.example.org", tcp=True)
    assert upstream.asked == [("www.example.org.", False), ("www.example.org.", True)]
    upstream.silent = True
    assert (await ask(proxy, "www.example.org")).rcode() == dns.rcode.SERVFAIL


async def test_before_the_first_table_every_query_fails() -> None:
    proxy, upstream = make(table=False)
    assert not proxy.has_names
    assert (await ask(proxy, "www.example.org")).rcode() == dns.rcode.SERVFAIL
    assert upstream.asked == []
    early, upstream = make(table=False, forward_early=True)
    assert records(await ask(early, "www.example.org")) == ["A 192.0.2.9"]


async def test_new_table_is_in_force_at_once_and_a_broken_one_leaves_the_old() -> None:
    proxy, _ = make()
    proxy.update([protos.encode(_nds.NameTable(table={"new.example.com": {"ips": ["10.0.0.1"]}}))])
    assert records(await ask(proxy, "new.example.com")) == ["A 10.0.0.1"]
    with pytest.raises(DecodeError):
        proxy.update([b"\xff\xff"])
    assert records(await ask(proxy, "new.example.com")) == ["A 10.0.0.1"]


async def test_addresses_are_shuffled() -> None:
    proxy, _ = make()
    orders = {tuple(records(await ask(proxy, "many.example.com", tcp=True))) for _ in range(5)}
    assert len(orders) > 1
    assert {frozenset(order) for order in orders} == {frozenset(f"A {address}" for address in _MANY)}


@pytest.mark.parametrize(("options", "largest"), [({}, 512), ({"use_edns": 0, "payload": 1400}, 1400)])
async def test_long_answers_are_cut_to_what_the_client_takes(options, largest: int) -> None:
    proxy, _ = make()
    query = dns.message.make_query("many.example.com", "A", **options)
    response = await proxy.answer(query.to_wire(), tcp=False)
    message = dns.message.from_wire(response)
    assert len(response) <= largest
    assert message.flags & dns.flags.TC
    whole = await ask(proxy, "many.example.com", tcp=True)
    assert len(records(whole)) == 100
    assert not whole.flags & dns.flags.TC


async def test_odd_queries_are_refused_and_what_is_no_query_is_left() -> None:
    proxy, _ = make()
    query = dns.message.make_query("cart.shop", "A").to_wire()
    assert await proxy.answer(b"short", tcp=False) is None
    assert await proxy.answer(query[:2] + b"\x80" + query[3:], tcp=False) is None
    torn = await proxy.answer(query[:-3], tcp=False)
    assert torn[:2] == query[:2]
    assert dns.message.from_wire(torn).rcode() == dns.rcode.FORMERR
    empty = dns.message.Message(id=7)
    assert dns.message.from_wire(await proxy.answer(empty.to_wire(), tcp=False)).rcode() == dns.rcode.SERVFAIL
    update = dns.message.make_query("cart.shop", "A")
    update.set_opcode(dns.opcode.STATUS)
    assert dns.message.from_wire(await proxy.answer(update.to_wire(), tcp=False)).rcode() == dns.rcode.SERVFAIL


_proxy, _ = make()


@given(data=st.binary(max_size=80))
async def test_no_bytes_break_the_proxy(data: bytes) -> None:
    await _proxy.answer(data, tcp=False)


@contextlib.asynccontextmanager
async def serving(proxy: Proxy, address: str):
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(serve_dns(proxy, address, ready=ready))
        async with asyncio.timeout(60):
            await ready.wait()
        yield
        task.cancel()


async def test_server_answers_by_udp_and_by_tcp_several_on_a_connection() -> None:
    proxy, _ = make()
    port = own_port()
    async with serving(proxy, f"localhost:{port}"):
        query = dns.message.make_query("cart.shop", "A")
        answers = await asyncio.gather(
            *(dns.asyncquery.udp(query, "127.0.0.1", port=port, timeout=60) for _ in range(20))
        )
        assert all(records(answer) == ["A 10.96.2.1"] for answer in answers)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for name in ("cart.shop", "many.example.com"):
            wire = dns.message.make_query(name, "A").to_wire()
            writer.write(len(wire).to_bytes(2, "big") + wire)
            length = int.from_bytes(await reader.readexactly(2), "big")
            assert records(dns.message.from_wire(await reader.readexactly(length)))
        writer.close()


async def test_port_that_is_taken_is_an_error_that_names_it() -> None:
    proxy, _ = make()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.RaisesGroup(pytest.RaisesExc(AgentError, match=f"cannot serve DNS on localhost:{port}")):
            await serve_dns(proxy, f"localhost:{port}", ready=asyncio.Event())


async def test_slow_question_keeps_nobody_waiting() -> None:
    asked = asyncio.Event()

    class Slow(Upstream):
        async def ask(self, query: bytes, *, tcp: bool) -> bytes | None:
            asked.set()
            await asyncio.sleep(600)
            return await super().ask(query, tcp=tcp)

    proxy = Proxy(Slow(), domain="web.svc.cluster.local")
    proxy.update([protos.encode(_nds.NameTable(table={"new.example.com": {"ips": ["10.0.0.1"]}}))])
    port = own_port()
    async with serving(proxy, f"127.0.0.1:{port}"):
        slow = asyncio.ensure_future(
            dns.asyncquery.udp(dns.message.make_query("slow.org", "A"), "127.0.0.1", port=port, timeout=600)
        )
        await asked.wait()
        query = dns.message.make_query("new.example.com", "A")
        assert records(await dns.asyncquery.udp(query, "127.0.0.1", port=port, timeout=60)) == ["A 10.0.0.1"]
        slow.cancel()
