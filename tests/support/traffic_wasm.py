"""A WebAssembly module for Envoy, put together by hand: it adds one header to every answer.

It speaks the Proxy-Wasm ABI 0.2.1 and is a few hundred bytes. What is not needed is left out: it has a memory with the
header's name and value in it, accepts every configuration, and calls one function of the host.
"""

from collections.abc import Iterable

_I32 = 0x7F
_RESPONSE_HEADERS = 2
_NAME_AT, _ALLOCATED_AT = 16, 1024
_CONST, _CALL, _DROP, _END = 0x41, 0x10, 0x1A, 0x0B

Function = tuple[str, int, bytes]
"""Exported name, number of its type, code."""


def build_module(name: str, value: str) -> bytes:
    """The module that adds the header `name: value` to answers."""
    text = (name + value).encode()
    add = b"".join(
        _const(number) for number in (_RESPONSE_HEADERS, _NAME_AT, len(name), _NAME_AT + len(name), len(value))
    )
    types = [(5, 1), (0, 0), (1, 1), (2, 0), (2, 1), (3, 1)]
    functions: list[Function] = [
        ("proxy_abi_version_0_2_1", 1, b""),
        ("proxy_on_memory_allocate", 2, _const(_ALLOCATED_AT)),
        ("proxy_on_context_create", 3, b""),
        ("proxy_on_vm_start", 4, _const(1)),
        ("proxy_on_configure", 4, _const(1)),
        ("proxy_on_response_headers", 5, add + bytes([_CALL, 0, _DROP]) + _const(0)),
    ]
    sections = [
        (1, _vector(bytes([0x60]) + _types(takes) + _types(gives) for takes, gives in types)),
        (2, _vector([_text("env") + _text("proxy_add_header_map_value") + bytes([0, 0])])),
        (3, _vector(bytes([kind]) for _, kind, _ in functions)),
        (5, _vector([bytes([0, 1])])),
        (7, _vector([_text("memory") + bytes([2, 0]), *_exports(functions)])),
        (10, _vector(_sized(bytes([0]) + code + bytes([_END])) for _, _, code in functions)),
        (11, _vector([bytes([0]) + _const(_NAME_AT) + bytes([_END]) + _sized(text)])),
    ]
    return b"\0asm\1\0\0\0" + b"".join(bytes([number]) + _sized(content) for number, content in sections)


def _exports(functions: Iterable[Function]) -> list[bytes]:
    """The host's function has the number 0, ours follow."""
    return [_text(name) + bytes([0, number]) for number, (name, _, _) in enumerate(functions, start=1)]


def _types(count: int) -> bytes:
    return _vector(bytes([_I32]) for _ in range(count))


def _const(number: int) -> bytes:
    """Pushes a number; signed LEB128."""
    encoded = bytearray([_CONST])
    while not -64 <= number < 64:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number & 0x7F])


def _length(number: int) -> bytes:
    """Unsigned LEB128."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _vector(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return _length(len(found)) + b"".join(found)


def _sized(content: bytes) -> bytes:
    return _length(len(content)) + content


def _text(text: str) -> bytes:
    return _sized(text.encode())
