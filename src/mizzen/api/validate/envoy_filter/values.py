"""Values of patches: JSON that has to be a message of Envoy.

What does not decode is an error; a field that the message lacks is a warning, since another version may have it. Types
of the second version of Envoy's API count as unknown: no Envoy takes them any more.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import Message

from mizzen import protos
from mizzen.api.networking.envoy_filter import ApplyTo
from mizzen.api.validate.faults import Faults, error, list_of, warning
from mizzen.errors import DecodeError

_LISTENER = "envoy.config.listener.v3"
_ROUTE = "envoy.config.route.v3"
PATCHED: Mapping[ApplyTo, str] = {
    "BOOTSTRAP": "envoy.config.bootstrap.v3.Bootstrap",
    "CLUSTER": "envoy.config.cluster.v3.Cluster",
    "LISTENER": f"{_LISTENER}.Listener",
    "LISTENER_FILTER": f"{_LISTENER}.ListenerFilter",
    "FILTER_CHAIN": f"{_LISTENER}.FilterChain",
    "NETWORK_FILTER": f"{_LISTENER}.Filter",
    "HTTP_FILTER": "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
    "ROUTE_CONFIGURATION": f"{_ROUTE}.RouteConfiguration",
    "VIRTUAL_HOST": f"{_ROUTE}.VirtualHost",
    "HTTP_ROUTE": f"{_ROUTE}.Route",
    "EXTENSION_CONFIG": "envoy.config.core.v3.TypedExtensionConfig",
}
"""The message that a patch of each kind is."""

_SECOND_API = re.compile(r"(?:^|/)envoy\..*\.v2(?:alpha[0-9]*|beta[0-9]*)?\.[^.]+$")
_NO_FIELD = re.compile(r'Message type "([^"]+)" has no field named "([^"]+)"')
_NO_TYPE = re.compile(r"Can not find message descriptor by type_url: ([^\s:]+)")
_DEEPEST = 64


def check_value(apply_to: ApplyTo, value: Mapping[str, Any], path: str) -> Faults:
    """The value of a patch, which is not removed."""
    kind = protos.message_class(PATCHED[apply_to])
    unknown = next((url for url in _types_of(value) if _SECOND_API.search(url)), None)
    if unknown is not None:
        yield error(path, f"referenced type unknown (hint: try using the v3 XDS API): {unknown}")
        return
    try:
        message = protos.from_json(kind, value, ignore_unknown=True)
    except DecodeError as bad:
        yield error(path, _in_words(bad.message))
        return
    try:
        protos.from_json(kind, value)
    except DecodeError as bad:
        yield warning(path, _in_words(bad.message))
    nameless = list(dict.fromkeys(_untyped(message)))
    if nameless:
        yield warning(path, f"using deprecated types by name without typed_config; {list_of(nameless)}")


def _types_of(value: Any, depth: int = 0) -> Iterator[str]:
    """The types of all `Any`s in JSON."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        url = value.get("@type")
        if isinstance(url, str):
            yield url
        for child in value.values():
            yield from _types_of(child, depth + 1)
    elif isinstance(value, list):
        for child in value:
            yield from _types_of(child, depth + 1)


def _in_words(reason: str) -> str:
    """The parser's reason as the reference has it, where it has its own words."""
    no_type = _NO_TYPE.search(reason)
    if no_type is not None:
        return f"referenced type unknown: {no_type[1]}"
    no_field = _NO_FIELD.search(reason)
    return f'unknown field "{no_field[2]}" in {no_field[1]}' if no_field is not None else reason


def _untyped(message: Message) -> Iterator[str]:
    """Names of extensions with neither configuration nor a way to fetch it; only what stands alone is looked into."""
    fields = message.DESCRIPTOR.fields_by_name
    if "typed_config" in fields:
        fetched = "config_discovery" in fields and message.HasField("config_discovery")
        if not message.HasField("typed_config") and not fetched:
            yield str(getattr(message, "name", ""))
    for field, value in message.ListFields():
        if field.message_type is not None and not field.is_repeated:
            yield from _untyped(value)
