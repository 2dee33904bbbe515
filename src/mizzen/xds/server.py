"""The gRPC server: ports and limits.

Three kinds of port share one server: plain (no credentials, hence no secrets; bind it to loopback), TLS with a bearer
token, mutual TLS. grpcio can require a client certificate or never ask for one, hence two secure ports. Credentials
come from `ca.serving`, which renews certificates without closing a port. What is served comes in as handlers:
`Discovery`'s, and others (the certificate service) beside it.
"""

from collections.abc import Sequence

import grpc

from mizzen import settings as settings_module
from mizzen.errors import MizzenError
from mizzen.xds.status import Connections

_MOST = 2**31 - 1
"""The largest number that gRPC takes, which is no limit to it."""


class Server:
    """The gRPC server with its ports; `handlers` are the services that all of them offer."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler], settings: settings_module.Xds) -> None:
        self._settings = settings
        self._server = grpc.aio.server(options=_options(settings))
        self._server.add_generic_rpc_handlers(tuple(handlers))

    def listen(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Open a port, before `start`: plain without credentials. Returns its number, for an address with port 0."""
        try:
            if credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise MizzenError(f"cannot listen on {address}: the address is in use or not of this machine") from error

    async def start(self) -> None:
        """Accept connections."""
        await self._server.start()

    async def stop(self, connections: Connections) -> None:
        """Accept no more, end all streams so that their proxies turn elsewhere, and give other calls their grace."""
        connections.close()
        await self._server.stop(self._settings.stop_grace)


def _options(settings: settings_module.Xds) -> list[tuple[str, int]]:
    interval = _milliseconds(settings.keepalive_interval)
    timeout = _milliseconds(settings.keepalive_timeout)
    limits = {
        "grpc.max_concurrent_streams": settings.max_streams,
        "grpc.max_receive_message_length": settings.max_receive_bytes,
        "grpc.keepalive_time_ms": interval,
        "grpc.keepalive_timeout_ms": timeout,
        # Else the answer to a ping is waited for for a minute, whatever the timeout is.
        "grpc.http2.ping_timeout_ms": timeout,
        # gRPC varies the age by a tenth either way, so that proxies do not come back in step.
        "grpc.max_connection_age_ms": _milliseconds(settings.max_connection_age),
        "grpc.max_connection_age_grace_ms": _milliseconds(settings.connection_age_grace),
    }
    return [
        # A port in use is an error, not a port shared with whoever has it.
        ("grpc.so_reuseport", 0),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", min(interval // 2, _MOST)),
        # A limit of 0 is gRPC's own, as in the reference.
        *((name, min(limit, _MOST)) for name, limit in limits.items() if limit),
    ]


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
