"""What a proxy would be told, looked at piece by piece: no other than all of it at once, and no more of it."""

import msgspec
import pytest
from traced_mesh import DOOR, SHOP, pod, service, world_of

from mizzen.compile import snapshot as compiled
from mizzen.diagnose import nodes, snapshot
from mizzen.diagnose.trace.world import World
from mizzen.model import objects, proxy

MESH = (SHOP, pod("other"), service("other", port="{name: tcp, port: 9000}"), DOOR)


@pytest.fixture
def world() -> World:
    return world_of(*MESH)


def proxies(world: World) -> list[proxy.Proxy]:
    assert world.db is not None
    found = [world.db.input(key) for key in objects.of_kind(world.db, "Pod")]
    described = (proxy.parse_node(nodes.build_node(each)) for each in found if nodes.has_proxy(each))
    return [msgspec.structs.replace(who, dialect="envoy") for who in described]


def test_all_pieces_are_what_a_snapshot_has(world):
    known = proxies(world)
    assert {who.kind for who in known} == {"sidecar", "router"}
    for who in known:
        assert world.db is not None
        whole = snapshot.take_snapshot(world.db, who).printed
        held = world.holdings(world.find(f"{who.name}.{who.namespace}"))
        for kind in snapshot.KINDS:
            pieces = getattr(held, kind)
            assert list(pieces.items()) == list(whole[kind].items())
            assert len(pieces) == len(whole[kind])
            assert {name: pieces[name] for name in whole[kind]} == whole[kind]
            assert "nobody" not in pieces


def test_listeners_are_found_by_address_like_those_of_a_dump(world):
    for who in proxies(world):
        held = world.holdings(world.find(f"{who.name}.{who.namespace}"))
        dumped = msgspec.structs.replace(held, listeners=dict(held.listeners))
        places = {
            (socket["address"], socket["portValue"])
            for listener in held.listeners.values()
            for socket in [listener["address"]["socketAddress"]]
        }
        assert places
        for address, port in (*places, ("192.0.2.1", 1)):
            assert held.listening(address, port) == dumped.listening(address, port)


def test_one_look_compiles_one_kind(world, monkeypatch):
    asked: list[tuple[str, object]] = []
    compile_kind = compiled.resources

    def count(db, who, type_url, names):
        asked.append((type_url.rpartition(".")[2], names))
        return compile_kind(db, who, type_url, names)

    monkeypatch.setattr(compiled, "resources", count)
    held = world.holdings(world.find("client.web"))
    assert asked == []
    assert held.listening("0.0.0.0", 15006)
    assert held.routes["80"]
    assert held.routes["80"]
    assert asked == [("Listener", None), ("RouteConfiguration", {"80"})]


def test_what_two_proxies_are_told_alike_is_printed_once(world):
    first, second = (world.holdings(world.find(name)) for name in ("client.web", "other.web"))
    shared = "outbound|80||server.web.svc.cluster.local"
    assert first.clusters[shared] is second.clusters[shared]
    assert first.routes["80"] is second.routes["80"]
