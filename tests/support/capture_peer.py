"""Ends of connections for capture tests, as a program of its own so that it can run in any namespace as any user.

`listen PORT…` prints a JSON line for each connection or datagram: the port it arrived at, where it was going, and who
sent it. `call HOST PORT` makes one, with the user, source address and socket mark asked for.
"""

import argparse
import json
import os
import selectors
import socket
import struct
import sys

ORIGINAL_DESTINATION = 80
TRANSPARENT = 19
TIMEOUT_SECONDS = 3.0


def listen(ports: list[int], *, udp: list[int], transparent: bool, family: int, uid: int, bind: str) -> None:
    selector = selectors.DefaultSelector()
    for port in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if transparent:
            listener.setsockopt(socket.SOL_IP, TRANSPARENT, 1)
        listener.bind(("", port))
        listener.listen(16)
        selector.register(listener, selectors.EVENT_READ, port)
    become(uid)
    for port in udp:
        receiver = socket.socket(family, socket.SOCK_DGRAM)
        # Like the DNS proxy, on loopback: from a wildcard socket the answer would leave with the pod's own address,
        # which the redirected connection does not know.
        receiver.bind((bind, port))
        selector.register(receiver, selectors.EVENT_READ, port)
    report(ready=True)
    while True:
        for key, _ in selector.select():
            accept(key.fileobj, key.data)


def become(uid: int) -> None:
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def accept(sock: socket.socket, port: int) -> None:
    if sock.type == socket.SOCK_DGRAM:
        data, peer = sock.recvfrom(2048)
        report(port=port, kind="udp", peer=peer[0])
        sock.sendto(data, peer)
        return
    connection, peer = sock.accept()
    with connection:
        report(port=port, kind="tcp", peer=peer[0], destination=destination(connection))
        connection.sendall(str(port).encode())


def destination(connection: socket.socket) -> list[object]:
    try:
        level, size = (socket.SOL_IP, 16) if connection.family == socket.AF_INET else (socket.IPPROTO_IPV6, 28)
        raw = connection.getsockopt(level, ORIGINAL_DESTINATION, size)
    except OSError:
        return list(connection.getsockname()[:2])
    if connection.family == socket.AF_INET:
        port, address = struct.unpack_from("!2xH4s", raw)
        return [socket.inet_ntoa(address), port]
    port, address = struct.unpack_from("!2xH4x16s", raw)
    return [socket.inet_ntop(socket.AF_INET6, address), port]


def call(host: str, port: int, *, uid: int, source: str, mark: int, udp: bool) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = None
    if mark:
        sock = socket.socket(family, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
    become(uid)
    sock = sock or socket.socket(family, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
    sock.settimeout(TIMEOUT_SECONDS)
    with sock:
        if source:
            sock.bind((source, 0))
        try:
            sock.connect((host, port))
            sock.send(b"hello")
            report(answer=sock.recv(64).decode())
        except OSError as error:
            report(error=type(error).__name__)


def report(**what: object) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    listener = verbs.add_parser("listen")
    listener.add_argument("ports", nargs="*", type=int)
    listener.add_argument("--udp", nargs="*", type=int, default=[])
    listener.add_argument("--uid", type=int, default=0)
    listener.add_argument("--bind", default="", help="where datagrams are received; everywhere if empty")
    listener.add_argument("--transparent", action="store_true")
    listener.add_argument("--v6", action="store_true")
    caller = verbs.add_parser("call")
    caller.add_argument("host")
    caller.add_argument("port", type=int)
    caller.add_argument("--uid", type=int, default=0)
    caller.add_argument("--source", default="")
    caller.add_argument("--mark", type=int, default=0)
    caller.add_argument("--udp", action="store_true")
    given = vars(parser.parse_args())
    if given.pop("verb") == "listen":
        family = socket.AF_INET6 if given.pop("v6") else socket.AF_INET
        listen(given.pop("ports"), family=family, **given)
    else:
        call(given.pop("host"), given.pop("port"), **given)


if __name__ == "__main__":
    sys.exit(main())
