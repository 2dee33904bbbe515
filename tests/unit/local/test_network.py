"""Commands that lay the network, and sockets from the other side of a namespace."""

import asyncio
import socket
import sys
import threading
from ipaddress import IPv4Address

import pytest

from mizzen.errors import LocalError
from mizzen.local.net import broker, network
from mizzen.local.net.network import Subnets


def test_addresses_have_their_places():
    subnets = Subnets()
    assert [str(a) for a in (subnets.hub, subnets.control_plane, subnets.resolver)] == [
        "10.44.0.1",
        "10.96.0.1",
        "10.96.0.10",
    ]


def test_a_pod_has_no_neighbour_but_the_hub():
    commands = network.build_pod_commands(Subnets(), IPv4Address("10.44.0.12"))
    assert "addr add 10.44.0.12/32 dev eth0" in commands
    assert commands[-2:] == ("route add 10.44.0.1 dev eth0 scope link", "route add default via 10.44.0.1")


def test_service_addresses_that_nobody_serves_are_unreachable():
    assert "route add unreachable 10.96.0.0/16" in network.build_hub_commands(Subnets())


def test_a_tool_that_fails_is_quoted_and_one_that_is_missing_is_named_with_its_package():
    with pytest.raises(LocalError, match="no luck"):
        network.run_tool((sys.executable, "-c", "import sys; sys.exit('no luck')"))
    with pytest.raises(LocalError, match="no-such-tool is not installed: install the package no-such-tool"):
        network.run_tool(("no-such-tool",))


async def test_the_broker_hands_out_listening_sockets_of_its_side():
    outer, inner = broker.make_pair()
    thread = threading.Thread(target=broker.serve, args=(outer,))
    thread.start()
    client = broker.Client(inner)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        with pytest.raises(LocalError, match=f"port {busy} of 127.0.0.1 is in use"):
            await client.listen("127.0.0.1", (busy,))
        listener = await client.listen("127.0.0.1", (busy, 0))
    with listener, socket.create_connection(listener.getsockname()):
        accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
        accepted.close()
    outer.shutdown(socket.SHUT_RDWR)
    await asyncio.wait_for(client.gone.wait(), 60)
    with pytest.raises(LocalError, match="ending"):
        await client.listen("127.0.0.1", (0,))
    thread.join(60)
    outer.close()
    inner.close()


def test_a_port_that_needs_root_says_so():
    text = broker._explain("127.0.0.1", 80, PermissionError(13, "Permission denied"))
    assert text == "port 80 of 127.0.0.1 needs root: choose one from 1024 on with --port"
