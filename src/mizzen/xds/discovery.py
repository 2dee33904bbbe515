"""The AggregatedDiscoveryService: who is let in, and one `Stream` for each client that is.

In: RPCs in bytes, from whichever port. Out: streams at work, registered in `Connections`. The parts that serving needs
(pusher, roots, responses) are made here, once, and shared by all streams. Ports and TLS are `server`'s.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc
import msgspec

from mizzen import observe, transport
from mizzen import settings as settings_module
from mizzen.compile.resource import SECRET
from mizzen.errors import AuthorityError, DecodeError, SessionError
from mizzen.model.proxy import Proxy
from mizzen.model.spiffe import Identity
from mizzen.transport import Transport, read_chain
from mizzen.xds import identity, kinds, metrics
from mizzen.xds.admission import Admission
from mizzen.xds.debugging import Console, DebugAnswers, NoConsole
from mizzen.xds.delta import DeltaSession
from mizzen.xds.generator import Generator
from mizzen.xds.identity import Authenticator, Credentials, Refused
from mizzen.xds.pace import Pace
from mizzen.xds.push import Pusher, Throttle
from mizzen.xds.registration import NoRegistrar, Registrar, read_health
from mizzen.xds.requests import Received, Request, decode_request
from mizzen.xds.responses import Responses
from mizzen.xds.roots import Roots
from mizzen.xds.sotw import SotwSession
from mizzen.xds.status import Connection, Connections
from mizzen.xds.stream import Stream

_log = observe.scope("ads")

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
_FIRST_REQUEST_WAIT = 30.0
"""Seconds that a client has to say who it is."""

ParseNode = Callable[[Mapping[str, Any]], Proxy]


class Discovery:
    """The service and what all its streams share."""

    def __init__(
        self,
        *,
        generator: Generator,
        parse_node: ParseNode,
        authenticator: Authenticator,
        settings: settings_module.Settings,
    ) -> None:
        self.console: Console = NoConsole()
        """Who answers debug requests; whoever knows the control plane's state sets it before anything is served."""
        self.registrar: Registrar = NoRegistrar()
        """Who is told of every proxy; set likewise."""
        self._parse_node = parse_node
        self._authenticator = authenticator
        self._settings = settings.xds
        self._admission = Admission(settings.xds.max_requests_per_second)
        self._throttle = Throttle(settings.push.throttle)
        self._pace = Pace()
        self._roots = Roots(generator)
        self._served = frozenset(generator.type_urls)
        self._served_to_anybody = self._served - {SECRET}
        self.pusher = Pusher(generator, self._roots, settings.push, self._pace)
        self.connections = Connections()
        self.responses = Responses()

    def handler(self) -> grpc.GenericRpcHandler:
        """Both variants of the protocol."""

        methods = {
            "StreamAggregatedResources": transport.method(functools.partial(self._serve, delta=False)),
            "DeltaAggregatedResources": transport.method(functools.partial(self._serve, delta=True)),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _serve(self, client: Transport, *, delta: bool) -> None:
        address = _address(client.context.peer())
        try:
            await self._run(client, address, delta)
        except Refused as refused:
            _log.warning('ADS: "%s" refused: %s: %s', address, refused.code, refused)
            await client.abort(grpc.StatusCode[refused.code], str(refused))

    async def _run(self, client: Transport, address: str, delta: bool) -> None:
        if not self.pusher.ready:
            raise Refused("UNAVAILABLE", "server is not ready to serve discovery information")
        await self._admission.enter()
        identities = await self._authenticate(client.context, address)
        # Else the first message brings it, and a stream that is closed in the middle of that one sends it twice, which
        # grpcio refuses: the client would not learn of the end.
        await client.begin()
        answers = DebugAnswers(self.console, identities, delta=delta)
        first = await self._read_first(client, answers, delta=delta)
        if first is None:
            return
        connection = self._connect(first, identities, address, delta)
        try:
            await self.registrar.admit(connection)
            connection.stream.take(first.request)
            # This frame lives as long as the stream; what a client said it holds, and its whole node, need not.
            del first
            await self._serve_connection(connection, client, answers)
        finally:
            connection.stream.leave()
            self.registrar.leave(connection)

    async def _serve_connection(self, connection: Connection, client: Transport, answers: DebugAnswers) -> None:
        _log.info("ADS: new connection for node:%s", connection.id)
        metrics.count_connected(connection.version, 1)
        self.connections.add(connection)
        try:
            await connection.stream.run(lambda: _read(client), client.write, answers.answer)
        finally:
            self.connections.remove(connection)
            metrics.count_connected(connection.version, -1)
            _log.info('ADS: "%s" %s terminated', connection.address, connection.id)

    async def _authenticate(self, context: Any, address: str) -> Sequence[Identity]:
        secure = _is_secure(context)
        if not (self._settings.authenticate if secure else self._settings.authenticate_plaintext):
            return ()
        try:
            return await self._authenticator.authenticate(_credentials(context, address))
        except AuthorityError as error:
            raise Refused("UNAUTHENTICATED", f"authentication failure: {error}") from error

    async def _read_first(self, client: Transport, answers: DebugAnswers, *, delta: bool) -> Received | None:
        """The first request that counts; None when the client ends the stream before.

        Debug requests before it are answered: whoever sends nothing else is no proxy, and is not listed as one.
        """
        node: dict[str, Any] | None = None
        while (data := await self._read_in_time(client, bounded=node is None)) is not None:
            await self._pace.turn()
            try:
                request, told = decode_request(data, delta=delta)
            except DecodeError as broken:
                raise Refused("INVALID_ARGUMENT", str(broken)) from broken
            node = node or told
            if kinds.is_debug(request.type_url):
                _require_node(node)
                await client.write(await answers.answer(request))
            elif request.type_url != kinds.HEALTH:
                return Received(request, node)
        return None

    async def _read_in_time(self, client: Transport, *, bounded: bool) -> bytes | None:
        """The next message; whoever has not said who it is has to hurry."""
        try:
            async with asyncio.timeout(_FIRST_REQUEST_WAIT if bounded else None):
                return await _read(client)
        except TimeoutError:
            raise Refused("INVALID_ARGUMENT", "missing node information: no request came") from None

    def _connect(self, first: Received, identities: Sequence[Identity], address: str, delta: bool) -> Connection:
        node = _require_node(first.node)
        try:
            proxy = self._parse_node(node)
        except SessionError as error:
            raise Refused("INVALID_ARGUMENT", str(error)) from error
        proved = self._identify(proxy, identities)
        proxy = _as_proved(proxy, proved)
        if not delta:
            proxy = msgspec.structs.replace(proxy, on_demand=False)
        served = self._served if proved is not None else self._served_to_anybody
        connection_id = self.connections.next_id(proxy)
        session = (DeltaSession if delta else SotwSession)(
            self.responses, served, f"{connection_id}/", on_demand=proxy.on_demand
        )

        def take_health(request: Request) -> None:
            self.registrar.hear(connection, read_health(request))

        stream = Stream(connection_id, proxy, session, self._roots, self._throttle, self._pace, take_health)
        connection = Connection(
            id=connection_id,
            proxy=proxy,
            version=str((node.get("metadata") or {}).get("ISTIO_VERSION", "unknown")),
            address=address,
            connected_at=time.time(),
            delta=delta,
            identity=proved,
            session=session,
            stream=stream,
        )
        return connection

    def _identify(self, proxy: Proxy, identities: Sequence[Identity]) -> Identity | None:
        """The identity that fits the node; None where nothing was proved or, on request, nothing is compared."""
        if not identities or not self._settings.identity_check:
            return None
        return identity.check_claims(proxy, identities)


def _as_proved(proxy: Proxy, proved: Identity | None) -> Proxy:
    """The proxy under the account that it has proved, which its node may leave out."""
    if proved is None:
        return msgspec.structs.replace(proxy, is_verified=False)
    return msgspec.structs.replace(proxy, service_account=proxy.service_account or proved.service_account)


def _require_node(node: dict[str, Any] | None) -> dict[str, Any]:
    if node is None or not node.get("id"):
        raise Refused("INVALID_ARGUMENT", "missing node information")
    return node


async def _read(client: Transport) -> bytes | None:
    data = await client.read()
    if data is not None:
        metrics.count_request(len(data))
    return data


def _is_secure(context: Any) -> bool:
    return b"insecure" not in context.auth_context().get("transport_security_type", (b"insecure",))


def _credentials(context: Any, address: str) -> Credentials:
    known = context.auth_context()
    return Credentials(
        metadata={key: value for key, value in context.invocation_metadata() if isinstance(value, str)},
        certificates=read_chain(known),
        certificate_uris=tuple(uri.decode() for uri in known.get("peer_uri", ())),
        address=address,
    )


def _address(peer: str) -> str:
    """`ipv4:10.0.0.1:4000` and `ipv6:%5B::1%5D:4000` as people write them."""
    return peer.removeprefix("ipv4:").removeprefix("ipv6:").replace("%5B", "[").replace("%5D", "]")
