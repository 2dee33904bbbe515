"""The way of a new root from the operator's files to a running agent."""

import time

import msgspec
from adsclient import Client
from control_planes import FAST, control_plane
from eventually import eventually
from plugged_authority import Node, make_node, write_authority

from mizzen import protos, settings
from mizzen.compile.resource import TRUST_BUNDLE


def roots_in(client: Client) -> list[str]:
    (data,) = client.held[TRUST_BUNDLE].values()
    message = protos.unpack(protos.message_class("google.protobuf.Any").FromString(data))
    return list(message.ca_certificates_pem)


def texts(*nodes: Node) -> list[str]:
    return [node.pem.decode() for node in nodes]


async def test_a_root_is_pushed_before_it_signs_and_taken_back_after_its_last_certificate(tmp_path) -> None:
    old, new = make_node("old", time.time()), make_node("new", time.time())
    write_authority(tmp_path / "cacerts", old, [], [old])
    authority = settings.Authority(
        directory=str(tmp_path / "cacerts"), max_ttl=1.0, root_overlap=5.0, root_check_interval=0.1
    )
    tuned = msgspec.structs.replace(FAST, authority=authority)
    async with control_plane(tmp_path, tuned) as plane, Client(plane.target("--grpcAddr")) as client:
        await client.subscribe(TRUST_BUNDLE)
        await client.read_acked()
        assert roots_in(client) == texts(old)
        write_authority(tmp_path / "cacerts", new, [], [new])
        await client.read_acked()
        assert roots_in(client) == texts(old, new)
        state = plane.control_plane.authority.state
        assert state.current.certificate == old.certificate, "the new root does not sign before it was pushed"
        await eventually(lambda: plane.control_plane.authority.state.current.certificate == new.certificate)
        await client.read_acked()
        assert roots_in(client) == texts(new, old), "who still shows the old one is trusted"
