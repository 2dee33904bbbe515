"""Listener filters: what looks at a connection before a filter chain is chosen for it.

In: which of them a listener needs, and on which destination ports not. Out: `ListenerFilter` messages.
Golden cases: base, security/pa-port-level (the predicates), gateway/topology (PROXY protocol).
"""

import functools
from collections.abc import Iterable
from typing import Any

from mizzen import protos

_listener_v3 = protos.package("envoy.config.listener.v3")
_TYPES = "envoy.extensions.filters.listener"

_TLS_READ_BYTES = 512
ORIGINAL_SRC_MARK = 1337


def _filter(name: str, config: Any, disabled: Any = None) -> Any:
    fields = {} if disabled is None else {"filter_disabled": disabled}
    return _listener_v3.ListenerFilter(
        name=f"envoy.filters.listener.{name}", typed_config=protos.pack(config), **fields
    )


@functools.cache
def build_original_dst() -> Any:
    """Restores the address that the connection had before it was redirected."""
    return _filter("original_dst", protos.message_class(f"{_TYPES}.original_dst.v3.OriginalDst")())


@functools.cache
def build_original_src() -> Any:
    """Keeps the client's address towards the application (TPROXY)."""
    return _filter(
        "original_src", protos.message_class(f"{_TYPES}.original_src.v3.OriginalSrc")(mark=ORIGINAL_SRC_MARK)
    )


@functools.cache
def build_proxy_protocol() -> Any:
    """Reads the PROXY protocol's header in front of the connection."""
    return _filter("proxy_protocol", protos.message_class(f"{_TYPES}.proxy_protocol.v3.ProxyProtocol")())


def build_tls_inspector(disabled: Any = None) -> Any:
    """Tells TLS from plain text and reads SNI and ALPN."""
    inspector = protos.message_class(f"{_TYPES}.tls_inspector.v3.TlsInspector")
    return _filter("tls_inspector", inspector(initial_read_buffer_size={"value": _TLS_READ_BYTES}), disabled)


def build_http_inspector(disabled: Any = None) -> Any:
    """Tells plain-text HTTP from other plain text."""
    return _filter("http_inspector", protos.message_class(f"{_TYPES}.http_inspector.v3.HttpInspector")(), disabled)


def build_port_predicate(ports: Iterable[int]) -> Any | None:
    """True of connections to one of these ports; None for no port."""
    ranges = [{"destination_port_range": {"start": port, "end": port + 1}} for port in sorted(set(ports))]
    if not ranges:
        return None
    if len(ranges) == 1:
        return _listener_v3.ListenerFilterChainMatchPredicate(**ranges[0])
    return _listener_v3.ListenerFilterChainMatchPredicate(or_match={"rules": ranges})


def build_not(predicate: Any) -> Any:
    """True where the predicate is not."""
    return _listener_v3.ListenerFilterChainMatchPredicate(not_match=predicate)
