"""ConfigMaps in every namespace: made, put right, changed with the content, removed, and fought over by nobody for long."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest
import virtual_loop
from virtual_loop import now

from mizzen.api.kube.cluster import Namespace
from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import Key, LabelSelector, Object, ObjectMeta, Timestamp
from mizzen.control.leader_requests import LeaderRequests
from mizzen.control.namespace_config_maps import ROOTS, NamespaceConfigMaps
from mizzen.sources.kube.client import Refused
from mizzen.sources.kube.selection import Selection

NAME = "istio-ca-root-cert"
OLD, NEW = b"old root\n", b"new root\n"


class Cluster:
    """A source and a server in one: what is written is seen a moment later."""

    def __init__(self, *namespaces: str) -> None:
        self.objects: dict[Key, Object] = {}
        self.versions: Counter[Key] = Counter()
        self.selection = Selection()
        self.writes: list[tuple[str, str, float]] = []
        self.after_write: Callable[[str], None] = lambda _: None
        self._listeners: list[Callable[[Key], None]] = []
        for name in namespaces:
            self.add(name)

    # -- the source -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def listening(self, told: Callable[[Key], None]) -> Iterator[None]:
        self._listeners.append(told)
        yield
        self._listeners.remove(told)

    def of_kind(self, kind: str) -> Iterator[Object]:
        return iter([found for key, found in self.objects.items() if key.kind == kind])

    def resource_version(self, key: Key) -> str:
        return str(self.versions[key])

    # -- what others do -------------------------------------------------------------------------------------------

    def add(self, name: str, *, going: bool = False, **labels: str) -> None:
        moment = msgspec.convert("2026-01-01T00:00:00Z", Timestamp) if going else None
        metadata = ObjectMeta(name=name, labels=labels, deletion_timestamp=moment)
        self.selection.see_namespace(name, labels)
        self._put(Key("Namespace", "", name), Namespace(metadata=metadata))

    def overwrite(self, namespace: str, text: str, **changes: Any) -> None:
        found = self.map(namespace)
        self._put(
            Key("ConfigMap", namespace, NAME), msgspec.structs.replace(found, data={"root-cert.pem": text}, **changes)
        )

    def remove(self, namespace: str) -> None:
        key = Key("ConfigMap", namespace, NAME)
        del self.objects[key]
        self._tell(key)

    def map(self, namespace: str) -> ConfigMap:
        found = self.objects[Key("ConfigMap", namespace, NAME)]
        assert isinstance(found, ConfigMap)
        return found

    def holders(self, text: bytes) -> set[str]:
        maps = (found for key, found in self.objects.items() if key.kind == "ConfigMap")
        return {
            m.metadata.namespace for m in maps if isinstance(m, ConfigMap) and m.data["root-cert.pem"] == text.decode()
        }

    # -- the server -----------------------------------------------------------------------------------------------

    async def call(self, method: str, path: str, body: Any, **_: Any) -> bytes:
        sent, namespace = json.loads(msgspec.json.encode(body)), path.split("/")[4]
        self.writes.append((method, namespace, now()))
        key = Key("ConfigMap", namespace, NAME)
        held = self.objects.get(key)
        if method == "POST" and held is not None:
            raise Refused(409, "exists")
        if method == "DELETE":
            assert sent == {"preconditions": {"resourceVersion": self.resource_version(key)}}
            self.remove(namespace)
            return b"{}"
        if method == "PATCH" and sent["metadata"]["resourceVersion"] != self.resource_version(key):
            raise Refused(409, "modified")
        kept = held if isinstance(held, ConfigMap) else ConfigMap()
        labels = {**kept.metadata.labels, **sent["metadata"]["labels"]}
        data = {**kept.data, **sent["data"]}
        self._put(key, ConfigMap(metadata=ObjectMeta(name=NAME, namespace=namespace, labels=labels), data=data))
        asyncio.get_running_loop().call_later(0.01, self.after_write, namespace)
        return b"{}"

    def _put(self, key: Key, found: Object) -> None:
        self.objects[key] = found
        self.versions[key] += 1
        self._tell(key)

    def _tell(self, key: Key) -> None:
        for told in self._listeners:
            told(key)


class Kept:
    """A term over a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.leads = cluster, True
        self.content: bytes | None = OLD


def play(cluster: Cluster, scenario: Callable[[Kept], Awaitable[None]]) -> None:
    async def run() -> None:
        kept = Kept(cluster)
        maps = NamespaceConfigMaps(
            cluster,
            LeaderRequests(cluster, lambda: kept.leads),
            ROOTS,
            NAME,
            content=lambda: kept.content,
            clock=now,
        )
        task = asyncio.ensure_future(maps.run())
        await asyncio.sleep(1)
        await scenario(kept)
        assert not task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    virtual_loop.run(run())


def test_every_namespace_but_three_has_the_roots_and_nothing_is_written_twice():
    cluster = Cluster("default", "kube-system", "shop", "kube-public", "kube-node-lease", "local-path-storage")

    async def scenario(kept: Kept) -> None:
        assert cluster.holders(OLD) == {"default", "kube-system", "shop"}
        assert cluster.map("shop").metadata.labels == {"istio.io/config": "true"}
        await asyncio.sleep(300)
        assert len(cluster.writes) == 3

    play(cluster, scenario)


def test_a_namespace_that_comes_later_has_them_at_once_and_one_that_goes_is_left():
    cluster = Cluster()

    async def scenario(kept: Kept) -> None:
        cluster.add("late")
        cluster.add("ending", going=True)
        await asyncio.sleep(0.3)
        assert cluster.holders(OLD) == {"late"}
        assert [namespace for _, namespace, _ in cluster.writes] == ["late"]

    play(cluster, scenario)


def test_what_somebody_removes_or_edits_is_put_right_and_what_is_theirs_stays():
    cluster = Cluster("shop")

    async def scenario(kept: Kept) -> None:
        cluster.remove("shop")
        await asyncio.sleep(1)
        assert cluster.holders(OLD) == {"shop"}
        await asyncio.sleep(100)
        cluster.overwrite("shop", "forged", metadata=ObjectMeta(name=NAME, namespace="shop", labels={"team": "a"}))
        await asyncio.sleep(1)
        assert cluster.holders(OLD) == {"shop"}
        assert cluster.map("shop").metadata.labels == {"team": "a", "istio.io/config": "true"}

    play(cluster, scenario)


def test_new_roots_reach_a_thousand_namespaces_at_a_bounded_rate():
    names = [f"n{number}" for number in range(1000)]
    cluster = Cluster(*names)

    async def scenario(kept: Kept) -> None:
        await asyncio.sleep(60)
        assert cluster.holders(OLD) == set(names)
        cluster.writes.clear()
        kept.content = NEW
        await asyncio.sleep(60)
        assert cluster.holders(NEW) == set(names)
        assert len(cluster.writes) == 1000
        per_second = Counter(int(at) for _, _, at in cluster.writes)
        assert max(per_second.values()) <= 130
        assert sorted(per_second.values())[len(per_second) // 2] <= 41

    play(cluster, scenario)


def test_two_who_overwrite_each_other_write_more_and_more_rarely(caplog: pytest.LogCaptureFixture):
    cluster = Cluster("shop", "calm")

    async def scenario(kept: Kept) -> None:
        cluster.after_write = lambda namespace: cluster.overwrite(namespace, "theirs") if namespace == "shop" else None
        cluster.overwrite("shop", "theirs")
        await asyncio.sleep(3600)
        fought = [at for _, namespace, at in cluster.writes if namespace == "shop"]
        assert 60 < len(fought) < 75
        assert fought[-1] - fought[-2] == pytest.approx(60, abs=1.5)
        assert [each[:2] for each in cluster.writes if each[1] == "calm"] == [("POST", "calm")]
        cluster.after_write = lambda _: None
        await asyncio.sleep(70)
        assert cluster.holders(OLD) == {"shop", "calm"}

    play(cluster, scenario)
    assert 1 <= caplog.text.count("somebody overwrites the ConfigMap shop/istio-ca-root-cert") <= 7


def test_one_that_is_immutable_is_left_alone_and_told_of_once(caplog: pytest.LogCaptureFixture):
    cluster = Cluster("shop")

    async def scenario(kept: Kept) -> None:
        cluster.overwrite("shop", "theirs", immutable=True)
        await asyncio.sleep(600)
        assert len(cluster.writes) == 1

    play(cluster, scenario)
    assert caplog.text.count("is immutable") == 1


def test_only_namespaces_that_the_mesh_serves_get_them():
    cluster = Cluster("plain")
    cluster.add("meshed", mesh="yes")

    async def scenario(kept: Kept) -> None:
        selectors = [LabelSelector(match_labels={"mesh": each}) for each in ("yes", "too")]
        cluster.selection.set_selectors(selectors)
        kept.content = NEW
        await asyncio.sleep(1)
        assert cluster.holders(NEW) == {"meshed"}
        cluster.add("plain", mesh="too")
        await asyncio.sleep(1)
        assert cluster.holders(NEW) == {"meshed", "plain"}
        cluster.add("plain")
        kept.content = OLD
        await asyncio.sleep(1)
        assert cluster.holders(OLD) == {"meshed"}
        cluster.selection.set_selectors(())
        await asyncio.sleep(1)
        assert cluster.holders(OLD) == {"meshed", "plain"}

    play(cluster, scenario)


def test_nobody_writes_after_its_term():
    cluster = Cluster("shop")

    async def scenario(kept: Kept) -> None:
        kept.leads = False
        cluster.remove("shop")
        await asyncio.sleep(100)
        assert cluster.holders(OLD) == set()

    play(cluster, scenario)


def test_no_content_removes_what_a_control_plane_wrote_and_nothing_else():
    cluster = Cluster("shop", "own")

    async def scenario(kept: Kept) -> None:
        cluster.overwrite("own", "theirs", metadata=ObjectMeta(name=NAME, namespace="own"), immutable=True)
        kept.content = b""
        await asyncio.sleep(1)
        assert cluster.holders(b"theirs") == {"own"}
        assert cluster.holders(OLD) == set()
        cluster.add("late")
        await asyncio.sleep(300)
        assert [each[:2] for each in cluster.writes if each[0] == "DELETE"] == [("DELETE", "shop")]
        assert "late" not in {namespace for _, namespace, _ in cluster.writes}
        kept.content = NEW
        await asyncio.sleep(1)
        assert cluster.holders(NEW) == {"shop", "late"}

    play(cluster, scenario)


def test_while_the_content_is_not_known_everything_stays_as_it_is():
    cluster = Cluster("shop")

    async def scenario(kept: Kept) -> None:
        kept.content = None
        cluster.add("late")
        cluster.overwrite("shop", "theirs")
        await asyncio.sleep(300)
        assert cluster.holders(b"theirs") == {"shop"}
        assert len(cluster.writes) == 1
        kept.content = NEW
        await asyncio.sleep(1)
        assert cluster.holders(NEW) == {"shop", "late"}

    play(cluster, scenario)
