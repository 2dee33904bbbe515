"""Proves capture with real connections, as the istio-validation container does.

In: a `CaptureConfig` whose rules should be loaded in this network namespace, and nobody listening on the proxy's ports
yet. Out: nothing, or a `CaptureError` that says which connection went elsewhere. The probe calls 127.0.0.6 as the
proxy's user (such a call counts as inbound) and, where everything outbound is captured, an address that is nobody's, as
the user it runs as; both must arrive at the proxy's ports with their destination still known.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator

from mizzen.capture.apply import CaptureError
from mizzen.capture.config import EVERYTHING, CaptureConfig, Mode

_ORIGINAL_DESTINATION = 80
_TRANSPARENT = 19
_SELF = "127.0.0.6"
_NOBODY = "192.0.2.1"
"""An address set aside for documentation."""


def run_probe(config: CaptureConfig, *, port: int = 15002, timeout: float = 5.0) -> None:
    """Raises CaptureError unless connections arrive where the rules should send them."""
    if config.include_inbound_ports != ():
        with _listen(config.inbound_port, transparent=config.mode is Mode.TPROXY) as listener:
            target = port if config.include_inbound_ports == EVERYTHING else int(config.include_inbound_ports[0])
            with _as_proxy(config):
                caller = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            with caller:
                _call(caller, (_SELF, target), timeout)
                _expect(listener, (_SELF, target), timeout)
    if config.include_outbound_ranges == EVERYTHING and os.geteuid() not in config.proxy_uids and _has_route():
        with _listen(config.outbound_port) as listener, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as caller:
            _call(caller, (_NOBODY, port), timeout)
            _expect(listener, (_NOBODY, port), timeout)


@contextlib.contextmanager
def _listen(port: int, *, transparent: bool = False) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if transparent:
            listener.setsockopt(socket.SOL_IP, _TRANSPARENT, 1)
        try:
            listener.bind(("0.0.0.0", port))
        except OSError as error:
            raise CaptureError(f"cannot validate capture: port {port} is in use ({error.strerror})") from error
        listener.listen(1)
        yield listener


@contextlib.contextmanager
def _as_proxy(config: CaptureConfig) -> Iterator[None]:
    """Sockets made inside belong to the proxy's user, if we may take its place; the packet filter looks at that."""
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0 or not config.proxy_uids:
        yield
        return
    with contextlib.ExitStack() as back:
        if config.proxy_gids:
            os.setegid(config.proxy_gids[0])
            back.callback(os.setegid, gid)
        os.seteuid(config.proxy_uids[0])
        back.callback(os.seteuid, uid)
        yield


def _call(caller: socket.socket, destination: tuple[str, int], timeout: float) -> None:
    caller.settimeout(timeout)
    try:
        caller.connect(destination)
    except OSError as error:
        host, port = destination
        raise CaptureError(f"capture is not in force: {host}:{port} was not redirected ({error})") from error


def _has_route() -> bool:
    """Whether a packet to nobody would leave at all; connecting a datagram socket asks the routes and sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        return asking.connect_ex((_NOBODY, 9)) == 0


def _expect(listener: socket.socket, destination: tuple[str, int], timeout: float) -> None:
    listener.settimeout(timeout)
    try:
        accepted, _ = listener.accept()
    except TimeoutError as error:
        host, port = destination
        raise CaptureError(f"capture is not in force: {host}:{port} did not arrive at the proxy") from error
    with accepted:
        found = original_destination(accepted)
    if found != destination:
        raise CaptureError(f"capture lost a destination: {destination} arrived as {found}")


def original_destination(accepted: socket.socket) -> tuple[str, int]:
    """Where an accepted IPv4 connection was going before it was redirected; its own address if it was not."""
    try:
        raw = accepted.getsockopt(socket.SOL_IP, _ORIGINAL_DESTINATION, 16)
    except OSError:
        host, port = accepted.getsockname()[:2]
        return host, port
    port, packed = struct.unpack_from("!2xH4s", raw)
    return socket.inet_ntoa(packed), port
