"""A client of ADS for tests: raw bytes over grpc.aio, both variants, holding what an Envoy would hold.

It does nothing by itself but read: tests subscribe, ACK and NACK as they mean to. `held` follows the protocol: delta
upserts and removals; state of the world replaces clusters and listeners and merges the rest. A rejected response
changes nothing.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

from mizzen import protos
from mizzen.compile.resource import CLUSTER, LISTENER

_discovery = protos.package("envoy.service.discovery.v3")
_SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
CHANNEL_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))


def node(
    name: str = "app-0",
    namespace: str = "default",
    *,
    kind: str = "sidecar",
    ip: str = "10.0.0.1",
    service_account: str = "default",
    **metadata: Any,
) -> dict[str, Any]:
    """A mesh proxy's node as protobuf JSON."""
    return {
        "id": f"{kind}~{ip}~{name}.{namespace}~{namespace}.svc.cluster.local",
        "cluster": f"{name}.{namespace}",
        "metadata": {
            "NAMESPACE": namespace,
            "SERVICE_ACCOUNT": service_account,
            "ISTIO_VERSION": "1.32.0",
            **metadata,
        },
    }


@dataclass(frozen=True)
class Answer:
    """One response, decoded."""

    type_url: str
    nonce: str
    version: str
    resources: dict[str, bytes]
    """Name → encoded Any."""
    versions: dict[str, str]
    removed: tuple[str, ...]
    size: int

    @property
    def names(self) -> list[str]:
        """The resources that were sent."""
        return sorted(self.resources)


@dataclass
class Client:
    """One stream. `delta` chooses the variant."""

    target: str
    delta: bool = True
    node: Mapping[str, Any] = field(default_factory=node)
    credentials: grpc.ChannelCredentials | None = None
    token: str = ""
    held: dict[str, dict[str, bytes]] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    options: tuple[tuple[str, Any], ...] = CHANNEL_OPTIONS
    reads: bool = True
    """False: nothing is read until `start_reading`."""
    headers_first: bool = True
    """Whether the server sends headers before it reads, as Mizzen's does once it lets a stream in."""

    async def __aenter__(self) -> "Client":
        if self.credentials is None:
            self._channel = grpc.aio.insecure_channel(self.target, options=self.options)
        else:
            self._channel = grpc.aio.secure_channel(self.target, self.credentials, options=self.options)
        metadata = (("authorization", f"Bearer {self.token}"),) if self.token else ()
        method = "DeltaAggregatedResources" if self.delta else "StreamAggregatedResources"
        self.call: Any = self._channel.stream_stream(_SERVICE + method)(metadata=metadata)
        self._inbox: asyncio.Queue[Answer | ConnectionError] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None
        if self.reads:
            self.start_reading()
        self._first = True
        self._sotw_versions: dict[str, str] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        return self

    async def __aexit__(self, *_: object) -> None:
        self.call.cancel()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._channel.close()

    # -- requests -------------------------------------------------------------------------------------------------

    async def subscribe(self, type_url: str, *names: str, unsubscribe: Iterable[str] = (), nonce: str = "") -> None:
        """Delta: change the subscription. State of the world: ask for exactly these names."""
        if self.delta:
            await self._write(
                type_url=type_url,
                resource_names_subscribe=names,
                resource_names_unsubscribe=tuple(unsubscribe),
                response_nonce=nonce,
            )
        else:
            self._names[type_url] = names
            await self._write(
                type_url=type_url,
                resource_names=names,
                response_nonce=nonce,
                version_info=self._sotw_versions.get(type_url, ""),
            )

    async def resume(self, type_url: str, *names: str) -> None:
        """Delta: the first request of a stream after a reconnect, with the versions held."""
        await self._write(
            type_url=type_url,
            resource_names_subscribe=names,
            initial_resource_versions=self.versions.get(type_url, {}),
        )

    async def ack(self, answer: Answer) -> None:
        """Accept a response and hold what it says."""
        held = self.held.setdefault(answer.type_url, {})
        versions = self.versions.setdefault(answer.type_url, {})
        if not self.delta and answer.type_url in (CLUSTER, LISTENER):
            held.clear()
        held.update(answer.resources)
        versions.update(answer.versions)
        for name in answer.removed:
            held.pop(name, None)
            versions.pop(name, None)
        self._sotw_versions[answer.type_url] = answer.version
        await self._respond(answer)

    async def nack(self, answer: Answer, message: str = "bad") -> None:
        """Reject a response."""
        await self._respond(answer, error_detail={"code": 13, "message": message})

    async def _respond(self, answer: Answer, **more: Any) -> None:
        if not self.delta:
            more["resource_names"] = self._names.get(answer.type_url, ())
            more["version_info"] = self._sotw_versions.get(answer.type_url, "")
        await self._write(type_url=answer.type_url, response_nonce=answer.nonce, **more)

    async def _write(self, **fields: Any) -> None:
        request = (_discovery.DeltaDiscoveryRequest if self.delta else _discovery.DiscoveryRequest)(**fields)
        if self._first:
            self._first = False
            if self.headers_first:
                # Else a stream that is refused meanwhile ends with a status of gRPC's own, not the server's.
                await self.call.initial_metadata()
            request.node.CopyFrom(protos.from_json(protos.message_class("envoy.config.core.v3.Node"), self.node))
        # A stream that has ended says so to whoever reads.
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self.call.write(request.SerializeToString())

    # -- responses ------------------------------------------------------------------------------------------------

    async def read(self, within: float = 30.0) -> Answer:
        """The next response; raises ConnectionError when the stream ended."""
        async with asyncio.timeout(within):
            found = await self._inbox.get()
        if isinstance(found, Answer):
            return found
        self._inbox.put_nowait(found)
        raise found

    async def read_acked(self, within: float = 30.0) -> Answer:
        """The next response, accepted."""
        answer = await self.read(within)
        await self.ack(answer)
        return answer

    async def read_nothing(self, seconds: float = 0.2) -> None:
        """Assert that no response comes for a while."""
        try:
            answer = await self.read(seconds)
        except TimeoutError:
            return
        raise AssertionError(f"unexpected response: {answer}")

    def start_reading(self) -> None:
        """Take what the server sends, from now on."""
        self._reader = asyncio.get_running_loop().create_task(self._fill())

    async def _fill(self) -> None:
        try:
            while (data := await self.call.read()) is not grpc.aio.EOF:
                self._inbox.put_nowait(self._decode(data))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # The code below says the same.
        code, details = await self.call.code(), await self.call.details()
        self._inbox.put_nowait(ConnectionError(f"{code.name}: {details}"))

    def _decode(self, data: bytes) -> Answer:
        if self.delta:
            message = _discovery.DeltaDiscoveryResponse.FromString(data)
            resources = {r.name: protos.encode(r.resource) for r in message.resources}
            versions = {r.name: r.version for r in message.resources}
            removed, version = tuple(message.removed_resources), message.system_version_info
        else:
            message = _discovery.DiscoveryResponse.FromString(data)
            resources = {_name(packed): protos.encode(packed) for packed in message.resources}
            versions, removed, version = {}, (), message.version_info
        return Answer(message.type_url, message.nonce, version, resources, versions, removed, len(data))


def _name(packed: Any) -> str:
    message: Any = protos.unpack(packed)
    return str(getattr(message, "cluster_name", "") or message.name)
