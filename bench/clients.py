"""Simulated sidecars: delta ADS as an Envoy speaks it, so lean that thousands run in one process.

In: the address of any control plane and a Node. Out: what each sidecar holds (names and versions, no bodies), when it
was told, and how many bytes that took. A sidecar asks for clusters, their endpoints, listeners and their routes in
Envoy's order, acknowledges each response or rejects it (`rejects`), and opens a stream again that has ended, with the
versions that it holds. It can be told to let its stream go (`reconnect`) and to stop reading (`reading`).

Sidecars of one `Reader` share what they hold: equal responses are looked into once, equal histories are one `Held`.
"""

import asyncio
import functools
import itertools
import random
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import grpc

from mizzen import protos
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
FOLLOWING = {CLUSTER: ENDPOINT, LISTENER: ROUTE}
"""The type of what a resource makes Envoy ask for by name."""

_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
_SERVER = "istiod.istio-system.svc"
_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.ssl_target_name_override", _SERVER),
)
_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_KEPT_CONTENTS, _KEPT_RECENT, _KEPT_RESOURCES = 256, 32, 1 << 14
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0

_discovery_v3 = protos.package("envoy.service.discovery.v3")
_cluster_v3 = protos.package("envoy.config.cluster.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_core_v3 = protos.package("envoy.config.core.v3")

K = TypeVar("K")
V = TypeVar("V")
Names = frozenset[str]
_NO_NAMES: Names = frozenset()


def encode_node(node: Mapping[str, Any], **metadata: Any) -> bytes:
    """A Node of protobuf JSON, with what a sidecar of today tells about itself."""
    told = {"ISTIO_VERSION": "1.32.0", "INTERCEPTION_MODE": "REDIRECT", **node["metadata"], **metadata}
    version = {"version": {"majorNumber": 1, "minorNumber": 40}}
    whole = {"userAgentName": "envoy", "userAgentBuildVersion": version, **node, "metadata": told}
    return protos.encode(protos.from_json(_core_v3.Node, whole))


# -- what responses hold ----------------------------------------------------------------------------------------------


class Contents:
    """One response without its nonce: what every sidecar that gets it has to know."""

    __slots__ = ("__weakref__", "removed", "resources", "type_url")

    def __init__(self, response: Any) -> None:
        self.type_url: str = response.type_url
        asks = _ASKS.get(self.type_url, _ask_nothing)
        self.resources = {each.name: (each.version, asks(each.resource.value)) for each in response.resources}
        """Version of each, and the names that it makes Envoy ask for."""
        self.removed: tuple[str, ...] = tuple(response.removed_resources)


def _ask_nothing(_: bytes) -> Names:
    return _NO_NAMES


@functools.lru_cache(maxsize=_KEPT_RESOURCES)
def _asks_of_cluster(value: bytes) -> Names:
    cluster: Any = _cluster_v3.Cluster.FromString(value)
    if not cluster.HasField("eds_cluster_config"):
        return _NO_NAMES
    return frozenset((cluster.eds_cluster_config.service_name or cluster.name,))


@functools.lru_cache(maxsize=_KEPT_RESOURCES)
def _asks_of_listener(value: bytes) -> Names:
    listener: Any = _listener_v3.Listener.FromString(value)
    chains = [*listener.filter_chains]
    if listener.HasField("default_filter_chain"):
        chains.append(listener.default_filter_chain)
    configs = (each.typed_config for chain in chains for each in chain.filters)
    managers: list[Any] = [protos.unpack(each) for each in configs if each.type_url.endswith(_MANAGER)]
    return frozenset(each.rds.route_config_name for each in managers if each.HasField("rds"))


_ASKS = {CLUSTER: _asks_of_cluster, LISTENER: _asks_of_listener}


class Reader:
    """Looks into responses, into equal ones only once."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[int, int, int], Contents] = OrderedDict()
        self._recent: OrderedDict[int, tuple[bytes, bytes, Contents]] = OrderedDict()
        """The newest response of each length: what stands before and after its nonce, and what it says."""
        self.nothing = Held({})
        """What a sidecar that has just started holds."""

    def read(self, data: bytes) -> tuple[Contents, str]:
        """What a response says, and its nonce."""
        before, after, contents = self._recent.get(len(data), _NEVER)
        if contents is not None and data.startswith(before) and data.endswith(after):
            return contents, data[len(before) : len(data) - len(after)].decode()
        response = _discovery_v3.DeltaDiscoveryResponse.FromString(data)
        nonce: str = response.nonce
        view, start = memoryview(data), data.rfind(nonce.encode())
        end = start + len(nonce)
        key = len(data), hash(view[:start]), hash(view[end:])
        contents = self._seen.get(key) or Contents(response)
        _keep(self._seen, key, contents, _KEPT_CONTENTS)
        _keep(self._recent, len(data), (data[:start], data[end:], contents), _KEPT_RECENT)
        return contents, nonce


_NEVER = (b"", b"", None)


def _keep(found: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Let the newest of so many be this."""
    found[key] = value
    found.move_to_end(key)
    if len(found) > most:
        found.popitem(last=False)


class Held:
    """All that a sidecar holds of one type. Never changed: `after` is what it holds after another response."""

    __slots__ = ("__weakref__", "_asked", "_next", "_versions", "resources")

    def __init__(self, resources: Mapping[str, tuple[str, Names]]) -> None:
        self.resources = resources
        self._asked: Names | None = None
        self._versions: bytes | None = None
        self._next: weakref.WeakValueDictionary[Contents | Names, Held] = weakref.WeakValueDictionary()

    @property
    def versions(self) -> dict[str, str]:
        """Version by name."""
        return {name: version for name, (version, _) in self.resources.items()}

    @property
    def asked(self) -> Names:
        """The names that these resources make Envoy ask for."""
        if self._asked is None:
            self._asked = frozenset(itertools.chain.from_iterable(asks for _, asks in self.resources.values()))
        return self._asked

    def after(self, contents: Contents) -> "Held":
        """With the resources of a response, without those that it removes."""
        found = self._next.get(contents)
        if found is None:
            resources = {**self.resources, **contents.resources}
            for name in contents.removed:
                resources.pop(name, None)
            found = self._next[contents] = Held(resources)
        return found

    def without(self, names: Names) -> "Held":
        """Without what nobody asks for any more."""
        found = self._next.get(names)
        if found is None:
            resources = {name: each for name, each in self.resources.items() if name not in names}
            found = self._next[names] = Held(resources)
        return found

    def encode_versions(self) -> bytes:
        """`initial_resource_versions`, to append to a request."""
        if self._versions is None:
            request = _discovery_v3.DeltaDiscoveryRequest(initial_resource_versions=self.versions)
            self._versions = request.SerializeToString()
        return self._versions


# -- requests ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=_KEPT_CONTENTS)
def _subscribe(type_url: str, names: Names, gone: Names = _NO_NAMES) -> bytes:
    request = _discovery_v3.DeltaDiscoveryRequest(
        type_url=type_url, resource_names_subscribe=sorted(names), resource_names_unsubscribe=sorted(gone)
    )
    encoded: bytes = request.SerializeToString()
    return encoded


def _acknowledge(type_url: str, nonce: str, error: str = "") -> bytes:
    request = _discovery_v3.DeltaDiscoveryRequest(type_url=type_url, response_nonce=nonce)
    if error:
        request.error_detail.code, request.error_detail.message = 13, error
    encoded: bytes = request.SerializeToString()
    return encoded


# -- sidecars ---------------------------------------------------------------------------------------------------------


class Sidecar:
    """One proxy: one connection, one stream. `run` it as a task; cancelling that ends it."""

    def __init__(
        self,
        target: str,
        node: bytes,
        reader: Reader,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`node` is an encoded Node, as `encode_node` makes it."""
        self.target = target
        self._node = protos.length_delimited(1, node)
        self._reader = reader
        self._credentials = credentials
        self._metadata = metadata
        self._call: Any = None
        self._leaving = False
        self._forgets = False
        self.held: dict[str, Held] = dict.fromkeys(TYPES, reader.nothing)
        self.asked: dict[str, Names] = {}
        """The types that are asked for, and the names; those that are asked for as a whole have none."""
        self.reading = asyncio.Event()
        self.reading.set()
        self.rejects: set[str] = set()
        """Types whose responses are rejected; what they hold is not taken."""
        self.ready = asyncio.Event()
        """Set once everything that was asked for has been answered once."""
        self.streams = 0
        self.failures = 0
        """Streams that the control plane or the network ended."""
        self.answered: set[str] = set()
        self.bytes: Counter[str] = Counter()
        """Bytes received by type since somebody cleared it."""
        self.opened_at = 0.0
        """`time.monotonic()` when the newest stream had told all that it asks for."""
        self.told_at = 0.0
        """`time.monotonic()` of the last response."""
        self.watched_at = 0.0
        """`time.monotonic()` of the last `watch`."""
        self.marker = b""
        """What a response is looked through for."""
        self.reached_at = 0.0
        """`time.monotonic()` of the first response with the marker; 0 before."""

    async def run(self) -> None:
        """One stream after another, as an Envoy reconnects: with a pause that grows, if it did not leave itself."""
        pause = _FIRST_PAUSE
        while True:
            self._leaving = False
            try:
                await self._stream()
            except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError, ConnectionError):
                pass
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
            if self._leaving:
                pause = _FIRST_PAUSE
                continue
            pause = _FIRST_PAUSE if self.answered else min(2 * pause, _LONGEST_PAUSE)
            self.failures += 1
            await asyncio.sleep(random.uniform(pause / 2, pause))

    def reconnect(self, *, forget: bool = False) -> None:
        """Let the stream go and open another at once; with `forget` as an Envoy that was started anew."""
        self._leaving, self._forgets = True, forget
        self.ready.clear()
        self.answered.clear()
        if self._call is not None:
            self._call.cancel()

    def watch(self, marker: bytes = b"") -> None:
        """From now on count anew, and look for the marker."""
        self.bytes.clear()
        self.marker, self.reached_at, self.told_at = marker, 0.0, 0.0
        self.watched_at = time.monotonic()

    async def _stream(self) -> None:
        if self._credentials is None:
            channel = grpc.aio.insecure_channel(self.target, options=_OPTIONS)
        else:
            channel = grpc.aio.secure_channel(self.target, self._credentials, options=_OPTIONS)
        async with channel:
            self._call = channel.stream_stream(_METHOD)(metadata=self._metadata)
            self.streams += 1
            if self._forgets:
                self.held, self.asked, self._forgets = dict.fromkeys(TYPES, self._reader.nothing), {}, False
            self.answered.clear()
            for request in self._opening():
                await self._call.write(request)
            self.opened_at = time.monotonic()
            while True:
                await self.reading.wait()
                data = await self._call.read()
                if data is grpc.aio.EOF:
                    raise ConnectionError("the control plane ended the stream")
                await self._take(data)

    def _opening(self) -> Iterator[bytes]:
        """All that was asked for before, with the versions that are held; who has just started asks for clusters."""
        self.asked.setdefault(CLUSTER, _NO_NAMES)
        node = self._node
        for type_url in TYPES:
            names = self.asked.get(type_url)
            if names or (names is not None and type_url in FOLLOWING):
                yield node + _subscribe(type_url, names) + self.held[type_url].encode_versions()
                node = b""

    async def _take(self, data: bytes) -> None:
        self.told_at = time.monotonic()
        contents, nonce = self._reader.read(data)
        type_url = contents.type_url
        self.bytes[type_url] += len(data)
        if self.marker and not self.reached_at and self.marker in data:
            self.reached_at = self.told_at
        self.answered.add(type_url)
        if type_url in self.rejects:
            await self._call.write(_acknowledge(type_url, nonce, "rejected by a simulated sidecar"))
            return
        await self._call.write(_acknowledge(type_url, nonce))
        if type_url in self.held:
            self.held[type_url] = self.held[type_url].after(contents)
            if type_url not in FOLLOWING:
                # What was on its way when it was unsubscribed from is let go, as an Envoy does that watches it no more.
                stray = contents.resources.keys() - self.asked.get(type_url, _NO_NAMES)
                if stray:
                    self.held[type_url] = self.held[type_url].without(frozenset(stray))
            await self._follow(type_url)

    async def _follow(self, type_url: str) -> None:
        """Ask for what the response makes an Envoy ask for."""
        follower = FOLLOWING.get(type_url)
        if follower is not None:
            before, names = self.asked.get(follower, _NO_NAMES), self.held[type_url].asked
            if before is not names and before != names:
                gone = before - names
                await self._call.write(_subscribe(follower, names - before, gone))
                if gone:
                    self.held[follower] = self.held[follower].without(gone)
            self.asked[follower] = names
        if LISTENER not in self.asked and not self._waits_for(ENDPOINT):
            self.asked[LISTENER] = _NO_NAMES
            await self._call.write(_subscribe(LISTENER, _NO_NAMES))
        if not self.ready.is_set() and LISTENER in self.answered and not self._waits_for(ROUTE):
            self.ready.set()

    def _waits_for(self, type_url: str) -> bool:
        return bool(self.asked.get(type_url)) and type_url not in self.answered
