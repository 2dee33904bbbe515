"""Upstream resolvers: who is asked, what is believed, how long it may take."""

import asyncio
import contextlib

import dns.message
import dns.rcode
import pytest
from claims import own_port
from eventually import eventually

from mizzen.agent.dns import resolvers
from mizzen.agent.dns.resolvers import ResolverConfig, Resolvers, parse_resolver_config


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("nameserver 10.96.0.10\nsearch a.b c.d\n", ResolverConfig(("10.96.0.10",), ("a.b", "c.d"))),
        ("nameserver 10.0.0.1 # first\nnameserver fe80::1%eth0\n", ResolverConfig(("10.0.0.1", "fe80::1%eth0"), ())),
        ("domain old\nsearch new ; comment\n", ResolverConfig((), ("new",))),
        ("nameserver nonsense\nnameserver\noptions ndots:5\n", ResolverConfig()),
        ("", ResolverConfig()),
    ],
)
def test_resolv_conf_is_read_as_the_c_library_does(text: str, config: ResolverConfig) -> None:
    assert parse_resolver_config(text) == config


def test_first_file_that_exists_counts(tmp_path) -> None:
    (tmp_path / "b").write_text("nameserver 10.0.0.2")
    paths = [tmp_path / "a", tmp_path / "b"]
    assert resolvers.read_resolver_config(paths).servers == ("10.0.0.2",)
    (tmp_path / "a").write_text("nameserver 10.0.0.1")
    assert resolvers.read_resolver_config(paths).servers == ("10.0.0.1",)
    assert resolvers.read_resolver_config([]) == ResolverConfig()


class Upstream(asyncio.DatagramProtocol):
    """A resolver on one loopback address; `replies` turns a query into the datagrams that it sends."""

    def __init__(self, replies) -> None:
        self.replies = replies
        self.queries: list[bytes] = []

    def connection_made(self, transport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr) -> None:
        self.queries.append(data)
        for reply in self.replies(data):
            self.transport.sendto(reply, addr)


@contextlib.asynccontextmanager
async def upstreams(**replies):
    """Resolvers by loopback address (`a2` is 127.0.0.2) on one port; yields the port and the resolvers."""
    loop = asyncio.get_running_loop()
    port = own_port()
    opened = {}
    for name, function in replies.items():
        _, server = await loop.create_datagram_endpoint(
            lambda function=function: Upstream(function), local_addr=(f"127.0.0.{name[1:]}", port)
        )
        opened[name] = server
    try:
        yield port, opened
    finally:
        for server in opened.values():
            server.transport.close()
        await asyncio.sleep(0.01)


def answer(query: bytes, address: str = "192.0.2.1", code: dns.rcode.Rcode = dns.rcode.NOERROR) -> bytes:
    message = dns.message.from_wire(query)
    response = dns.message.make_response(message)
    response.set_rcode(code)
    if code == dns.rcode.NOERROR:
        response.answer.append(dns.rrset.from_text(message.question[0].name, 60, "IN", "A", address))
    return response.to_wire()


def nothing(query: bytes) -> list[bytes]:
    return []


def addresses(response: bytes | None) -> list[str]:
    assert response is not None
    return [str(record) for rrset in dns.message.from_wire(response).answer for record in rrset]


QUERY = dns.message.make_query("www.example.org", "A").to_wire()


async def test_answer_carries_the_querys_own_id() -> None:
    async with upstreams(a2=lambda query: [answer(query)]) as (port, opened):
        response = await Resolvers(["127.0.0.2"], port=port).ask(QUERY, tcp=False)
        assert addresses(response) == ["192.0.2.1"]
        assert response[:2] == QUERY[:2]
        assert opened["a2"].queries[0][2:] == QUERY[2:]


async def test_every_question_has_another_id_and_port() -> None:
    async with upstreams(a2=lambda query: [answer(query)]) as (port, opened):
        asking = Resolvers(["127.0.0.2"], port=port)
        await asyncio.gather(*(asking.ask(QUERY, tcp=False) for _ in range(20)))
        assert len({query[:2] for query in opened["a2"].queries}) > 15


async def test_answers_to_another_question_or_id_are_not_believed() -> None:
    other = dns.message.make_query("www.evil.example", "A").to_wire()

    def replies(query: bytes) -> list[bytes]:
        forged_id = bytes([query[0] ^ 1]) + answer(query, "192.0.2.66")[1:]
        forged_name = query[:2] + answer(other, "192.0.2.66")[2:]
        return [b"", b"\0" * 5, query, forged_id, forged_name, answer(query)]

    async with upstreams(a2=replies) as (port, _):
        assert addresses(await Resolvers(["127.0.0.2"], port=port).ask(QUERY, tcp=False)) == ["192.0.2.1"]


async def test_case_of_letters_in_the_answer_does_not_matter() -> None:
    def replies(query: bytes) -> list[bytes]:
        return [answer(query).replace(b"\3www\7example", b"\3WwW\7eXaMple", 1)]

    async with upstreams(a2=replies) as (port, _):
        assert addresses(await Resolvers(["127.0.0.2"], port=port).ask(QUERY, tcp=False)) == ["192.0.2.1"]


async def test_next_server_is_asked_when_one_is_silent_or_does_not_help() -> None:
    def failing(query: bytes) -> list[bytes]:
        return [answer(query, code=dns.rcode.SERVFAIL)]

    async with upstreams(a2=nothing, a3=failing, a4=lambda query: [answer(query)]) as (port, _):
        servers = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
        response = await Resolvers(servers, port=port, timeout=6.0).ask(QUERY, tcp=False)
        assert addresses(response) == ["192.0.2.1"], "the silent one had no more than its part of the time"


async def test_unhelpful_answer_is_better_than_none() -> None:
    def refusing(query: bytes) -> list[bytes]:
        return [answer(query, code=dns.rcode.REFUSED)]

    # Nobody listens at the second one's port.
    async with upstreams(a2=refusing) as (port, _), asyncio.timeout(60):
        response = await Resolvers(["127.0.0.2", "127.0.0.3"], port=port, timeout=600.0).ask(QUERY, tcp=False)
        assert dns.message.from_wire(response).rcode() == dns.rcode.REFUSED


async def test_name_error_is_an_answer() -> None:
    async with upstreams(a2=lambda query: [answer(query, code=dns.rcode.NXDOMAIN)], a3=nothing) as (port, opened):
        response = await Resolvers(["127.0.0.2", "127.0.0.3"], port=port).ask(QUERY, tcp=False)
        assert dns.message.from_wire(response).rcode() == dns.rcode.NXDOMAIN
        assert opened["a3"].queries == []


async def test_all_are_asked_at_once_where_told() -> None:
    async with upstreams(a2=nothing, a3=lambda query: [answer(query)]) as (port, opened):
        asking = Resolvers(["127.0.0.2", "127.0.0.3"], port=port, parallel=True, timeout=600.0)
        async with asyncio.timeout(60):
            assert addresses(await asking.ask(QUERY, tcp=False)) == ["192.0.2.1"]
        await eventually(lambda: len(opened["a2"].queries) == 1)


async def test_silence_and_closed_ports_end_in_time() -> None:
    async with upstreams(a2=nothing) as (port, _):
        async with asyncio.timeout(60):
            assert await Resolvers(["127.0.0.2"], port=port, timeout=0.1).ask(QUERY, tcp=False) is None
    async with asyncio.timeout(60):
        assert await Resolvers(["127.0.0.2"], port=port, timeout=600.0).ask(QUERY, tcp=False) is None
        assert await Resolvers(["127.0.0.2"], port=port, timeout=600.0).ask(QUERY, tcp=True) is None
    assert await Resolvers([]).ask(QUERY, tcp=False) is None


async def test_open_questions_are_bounded() -> None:
    async with upstreams(a2=nothing) as (port, opened):
        asking = Resolvers(["127.0.0.2"], port=port, timeout=0.2, most=3)
        answers = await asyncio.gather(*(asking.ask(QUERY, tcp=False) for _ in range(10)))
        assert answers == [None] * 10
        # What was sent may come after whoever asked has given up.
        await eventually(lambda: len(opened["a2"].queries) == 3)
        await asking.ask(QUERY, tcp=False)
        await eventually(lambda: len(opened["a2"].queries) == 4)


async def test_question_by_tcp_is_passed_on_by_tcp() -> None:
    async def serve(reader, writer) -> None:
        query = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        response = answer(query)
        writer.write(len(response).to_bytes(2, "big") + response[:7])
        await writer.drain()
        writer.write(response[7:])
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.2", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert addresses(await Resolvers(["127.0.0.2"], port=port).ask(QUERY, tcp=True)) == ["192.0.2.1"]
