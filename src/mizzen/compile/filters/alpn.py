"""ALPN: the words by which sidecars tell mesh HTTP from mesh TCP, and the filter that writes them upstream.

A server's chains match on these words; a client's HTTP requests must carry the HTTP ones whatever the cluster says.
Istio does that by `istio.alpn`, which knows the upstream protocol. Upstream Envoy does it by a filter state object:
the listener's filter writes the HTTP/1.1 words, and routes replace them for HTTP/2 destinations or switch the filter
off for destinations outside mutual TLS (`build_route_override`). Where the destination is spoken to as the client
speaks, the words are chosen for each request.
"""

import functools
from typing import Any, Literal

from mizzen import protos
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.upstreams import Upstream

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_alpn_v2alpha1 = protos.package("istio.envoy.config.filter.http.alpn.v2alpha1")
_set_filter_state_v3 = protos.package("envoy.extensions.filters.http.set_filter_state.v3")
_route_v3 = protos.package("envoy.config.route.v3")

PEER_EXCHANGE = "istio-peer-exchange"
MESH_HTTP = ("istio-http/1.0", "istio-http/1.1", "istio-h2")
MESH_TCP = (PEER_EXCHANGE, "istio")
MESH_ALL = ("istio", PEER_EXCHANGE, *MESH_HTTP)
TERMINATED_HTTP = ("h2", "http/1.1")
TERMINATED_TCP = (PEER_EXCHANGE, "h2", "http/1.1")

Protocol = Literal["http10", "http11", "http2"]
OVERRIDES: dict[Protocol, tuple[str, ...]] = {
    "http10": ("istio-http/1.0", "istio", "http/1.0"),
    "http11": ("istio-http/1.1", "istio", "http/1.1"),
    "http2": ("istio-h2", "istio", "h2"),
}

ROUTE_FILTER = "mizzen.alpn"
"""The filter's name in dialect `envoy`, which is the key of its per-route configuration."""


def plain_http(*, http10: bool) -> tuple[str, ...]:
    """What http_inspector reports for plain-text HTTP."""
    return ("http/1.0", "http/1.1", "h2c") if http10 else ("http/1.1", "h2c")


@functools.cache
def build_http_filter(dialect: Dialect, *, on_demand: bool = False) -> Any:
    """The HTTP filter that writes the words of the mesh upstream; not for a sidecar's inbound side.

    On demand it writes what routes say, and nothing by itself: a route that switches a filter off comes too late for
    the request that it was fetched for.
    """
    if on_demand:
        return _hcm_v3.HttpFilter(name=ROUTE_FILTER, typed_config=protos.pack(_set_filter_state_v3.Config()))
    if dialect == "envoy":
        return _hcm_v3.HttpFilter(name=ROUTE_FILTER, typed_config=protos.pack(_filter_state(_words("http11"))))
    config = _alpn_v2alpha1.FilterConfig(
        alpn_override=[
            {"upstream_protocol": protocol.upper(), "alpn_override": words} for protocol, words in OVERRIDES.items()
        ]
    )
    return _hcm_v3.HttpFilter(name="istio.alpn", typed_config=protos.pack(config))


def _words(protocol: Protocol) -> str:
    return ",".join(OVERRIDES[protocol])


def _words_as_spoken() -> str:
    """By the client's version: upstream Envoy speaks HTTP/2 for HTTP/3 as well, and HTTP/1.1 for HTTP/1.0."""
    is_http2 = 'request.protocol == "HTTP/2" || request.protocol == "HTTP/3"'
    return f'%CEL({is_http2} ? "{_words("http2")}" : "{_words("http11")}")%'


def _filter_state(words: str) -> Any:
    return _set_filter_state_v3.Config(
        on_request_headers=[
            {
                "object_key": "envoy.network.application_protocols",
                "format_string": {"text_format_source": {"inline_string": words}},
                "shared_with_upstream": "ONCE",
            }
        ]
    )


@functools.cache
def build_route_override(upstream: Upstream | None) -> Any:
    """Dialect `envoy`: the Any under `ROUTE_FILTER` in a route's `typed_per_filter_config`; None switches it off."""
    if upstream is None:
        return protos.pack(_route_v3.FilterConfig(disabled=True))
    if upstream == "downstream":
        return protos.pack(_filter_state(_words_as_spoken()))
    return protos.pack(_filter_state(_words("http2" if upstream == "http2" else "http11")))
