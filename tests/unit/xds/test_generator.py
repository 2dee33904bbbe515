"""The engine behind the generator."""

import contextlib

import mesh_of_resources
import pytest
from mesh_of_resources import build, key

from mizzen.compile.resource import CLUSTER
from mizzen.incremental import Engine, Index, Key, query
from mizzen.model.proxy import Proxy
from mizzen.xds import metrics
from mizzen.xds.generator import EngineGenerator

PROXY = Proxy(id="x", kind="sidecar", ip_addresses=(), name="x", namespace="shop")


def test_proxies_alike_share_a_root_until_the_last_lets_go():
    engine = Engine()
    generator = mesh_of_resources.generator(engine, [(CLUSTER, "a", "1")])
    one, two = (generator.root(PROXY, CLUSTER, None) for _ in range(2))
    assert one is two
    assert one.value().names == ("a",)
    one.release()
    generator.collect()
    assert len(engine) > 0
    two.release()
    generator.collect()
    assert len(engine) == 0


def test_changes_are_taken_in_together_and_none_is_a_removal():
    engine = Engine()
    generator = mesh_of_resources.generator(engine, [(CLUSTER, "a", "1"), (CLUSTER, "b", "1")])
    root = generator.root(PROXY, CLUSTER, None)
    assert root.value().names == ("a", "b")
    generator.apply({key(CLUSTER, "a"): None, key(CLUSTER, "c"): build(CLUSTER, "c", "1")})
    assert list(generator.take_stale_roots()) == [root]
    assert root.value().names == ("b", "c")


def test_an_object_that_cannot_be_indexed_keeps_nobody_else_out(caplog):
    index = Index("Resource", "length", lambda _, value: (value.count(b"poison") and 1 / 0,))

    @query
    def harmless(db: Engine) -> int:
        return len(db.lookup(index, 0))

    engine = Engine()
    generator = mesh_of_resources.generator(engine)
    root = engine.root(harmless)
    root.value()
    before = metrics.INTERNAL_ERRORS.value()
    generator.apply({key(CLUSTER, "bad"): b"poison", key(CLUSTER, "good"): build(CLUSTER, "good", "1")})
    assert root.value() == 1
    assert metrics.INTERNAL_ERRORS.value() == before + 1
    assert "bad cannot be taken in" in caplog.text


@query
def _fussy(db: Engine, key: Key) -> int:
    value = db.input(key)
    if value == "bad":
        raise ValueError("no such thing")
    return 1


def test_what_fails_to_compile_is_reported_once_and_again_when_it_fails_again(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    generator = EngineGenerator(engine, _fussy, ())
    key = ("Service", "web", "front")
    root = engine.root(_fussy, key)

    def reports(value: str) -> list[str]:
        caplog.clear()
        generator.apply({key: value})
        with contextlib.suppress(ValueError):
            root.value()
        for _ in range(2):
            generator.collect()
        return [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]

    assert reports("good") == []
    assert reports("bad") == ["_fussy(('Service', 'web', 'front')) is left out: no such thing"]
    assert reports("good") == []
    assert len(reports("bad")) == 1
