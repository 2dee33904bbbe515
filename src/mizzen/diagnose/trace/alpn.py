"""The ALPN words that a request carries upstream: those that the proxy's ALPN filter writes over the cluster's.

In: the request's state, the route's entry and the cluster. Out: words, or none where the cluster's own stand. Istio's
filter and upstream Envoy's filter state say the same in different ways.
"""

import re

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import clusters
from mizzen.diagnose.trace.state import State

_OBJECT = "envoy.network.application_protocols"
_ISTIO = "istio.alpn"
_CHOICE = re.compile(r'\?\s*"([^"]*)"\s*:\s*"([^"]*)"')


def words(state: State, entry: Json, cluster: Json, *, http2: bool) -> tuple[str, ...]:
    """The words for this request to this cluster."""
    for each in dump.items(state.manager, "http_filters"):
        config = dump.message(each, "typed_config")
        kind = dump.text(config, "@type")
        name = dump.text(each, "name")
        if ".set_filter_state." in kind and (text := _texts(state.override(name, entry) or config)):
            return _words(text, http2=http2)
        if name == _ISTIO:
            return _by_istio(cluster, config, http2=http2)
    return ()


def _texts(config: Json) -> str:
    for value in dump.items(config, "on_request_headers"):
        if dump.text(value, "object_key") == _OBJECT:
            return dump.text(value, "format_string", "text_format_source", "inline_string")
    return ""


def _words(text: str, *, http2: bool) -> tuple[str, ...]:
    """A comma list, or one of two by the client's version of HTTP."""
    choice = _CHOICE.search(text)
    if choice is not None:
        text = choice[1] if http2 else choice[2]
    return tuple(word for word in text.split(",") if word)


def _by_istio(cluster: Json, config: Json, *, http2: bool) -> tuple[str, ...]:
    if dump.text(cluster, "metadata", "filter_metadata", "istio", "alpn_override") == "false":
        return ()
    speaks = clusters.speaks(cluster)
    wanted = "HTTP2" if speaks == "http/2" or (speaks == "downstream" and http2) else "HTTP11"
    value = dump.message(config, "value") or config
    for entry in dump.items(value, "alpn_override"):
        if (dump.text(entry, "upstream_protocol") or "HTTP10") == wanted:
            return tuple(dump.texts(entry, "alpn_override"))
    return ()
