"""What is called: operations, and the conditions about the destination, as RBAC permissions.

In: one field of an operation, or one condition, with its values. Out: a permission as plain fields, or
`InvalidValueError` where a value makes no sense. Golden cases: security/authz-operations, security/authz-when.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from mizzen import protos
from mizzen.compile.security import matching
from mizzen.compile.security.attributes import (
    Attribute,
    InvalidValueError,
    between_brackets,
    cidr_range,
    metadata_matcher,
)

_uri_template_v3 = protos.package("envoy.extensions.path.match.uri_template.v3")

_EXPERIMENTAL = "experimental.envoy.filters."
_MAX_PORT = 65535
_OPERATORS = ("{*}", "{**}")
_LONGEST_TEMPLATE = 256
_LITERAL = re.compile(r"[a-zA-Z0-9\-._~%!$&'()+,;:@=]+")


def _any_of(build: Callable[[str], dict[str, Any]]) -> Callable[[Iterable[str]], dict[str, Any]]:
    return lambda values: {"or_rules": {"rules": [build(value) for value in values]}}


def _path(value: str) -> dict[str, Any]:
    if "{*}" not in value and "{**}" not in value:
        return {"url_path": {"path": matching.match_string(value)}}
    if not _is_template(value):
        raise InvalidValueError(f"{value!r} is no path template")
    template = value.replace("{**}", "**").replace("{*}", "*")
    config = _uri_template_v3.UriTemplateMatchConfig(path_template=template)
    return {"uri_template": {"name": "uri-template", "typed_config": protos.pack(config)}}


def _is_template(value: str) -> bool:
    """Whether Envoy would read it: one slash before each segment and perhaps one at the end, operators as whole
    segments, and none after the one for any number of them. Envoy ends at a listener with one that it cannot read.
    """
    if not value.startswith("/") or len(value.replace("{", "").replace("}", "")) > _LONGEST_TEMPLATE:
        return False
    rest = value.removesuffix("/")[1:].split("/")
    if "{**}" in rest and any(s in _OPERATORS for s in rest[rest.index("{**}") + 1 :]):
        return False
    return all(segment in _OPERATORS or _LITERAL.fullmatch(segment) for segment in rest)


def _port(value: str) -> dict[str, Any]:
    if not value.isdecimal() or int(value) > _MAX_PORT:
        raise InvalidValueError(f"{value!r} is not a port")
    return {"destination_port": int(value)}


def _experimental(key: str) -> Attribute:
    """`experimental.envoy.filters.NAME[KEY]`: dynamic metadata of another filter."""
    name, bracket, _ = key.removeprefix("experimental.").partition("[")
    inner = between_brackets(key)
    if not bracket or not inner:
        raise InvalidValueError(f"{key!r} names no metadata key")

    def build(values: Iterable[str]) -> dict[str, Any]:
        matchers = [_metadata_value(value) for value in values]
        value = matchers[0] if len(matchers) == 1 else {"or_match": {"value_matchers": matchers}}
        return {"metadata": metadata_matcher(name, (inner,), value)}

    return Attribute(build=build)


def _metadata_value(value: str) -> dict[str, Any]:
    if value.startswith("[") and value.endswith("]"):
        return {"list_match": {"one_of": {"string_match": matching.match_string(value[1:-1])}}}
    return {"string_match": matching.match_string(value)}


HOSTS = Attribute(
    build=_any_of(lambda v: {"header": matching.match_header(":authority", v, ignore_case=True)}), http_only=True
)
METHODS = Attribute(build=_any_of(lambda v: {"header": matching.match_header(":method", v)}), http_only=True)
PATHS = Attribute(build=_any_of(_path), http_only=True)
PORTS = Attribute(build=_any_of(_port))
_DESTINATION_IP = Attribute(build=_any_of(lambda v: {"destination_ip": cidr_range(v)}))
_SNI = Attribute(build=_any_of(lambda v: {"requested_server_name": matching.match_string(v)}))

_BY_KEY = {"destination.ip": _DESTINATION_IP, "destination.port": PORTS, "connection.sni": _SNI}


def find_condition(key: str) -> Attribute | None:
    """The attribute of a `when` key that is about the destination; None for all other keys."""
    if key.startswith(_EXPERIMENTAL):
        return _experimental(key)
    return _BY_KEY.get(key)
