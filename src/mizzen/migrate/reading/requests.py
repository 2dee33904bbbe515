"""What happens to requests on their way: paths, hosts and headers, and copies of them.

A snippet is read line by line; only directives that change headers have a counterpart, and one line that has none
makes the snippet a loss.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import Key, Object
from mizzen.migrate.annotations import Annotations, has_variable
from mizzen.migrate.settings import Changes

_HOST = re.compile(r"[A-Za-z0-9.:_-]+")
_MIRROR = re.compile(
    r"https?://(?P<name>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)(?:\.svc[a-z.]*)?(?::(?P<port>\d+))?(?:/|\$request_uri)?"
)
_VARIABLES = {
    "$remote_addr": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    "$host": "%REQ(:AUTHORITY)%",
    "$http_host": "%REQ(:AUTHORITY)%",
    "$best_http_host": "%REQ(:AUTHORITY)%",
    "$request_uri": "%REQ(:PATH)%",
    "$request_method": "%REQ(:METHOD)%",
    "$scheme": "%REQ(X-FORWARDED-PROTO)%",
    "$pass_access_scheme": "%REQ(X-FORWARDED-PROTO)%",
    "$req_id": "%REQ(X-REQUEST-ID)%",
    "$request_id": "%REQ(X-REQUEST-ID)%",
}


def read_requests(annotations: Annotations, objects: Mapping[Key, Object]) -> dict[str, Any]:
    """The fields of `Settings` that speak of requests and headers."""
    target = _rewrite_target(annotations)
    request, response = _snippet(annotations)
    prefix = annotations.text("x-forwarded-prefix")
    if prefix and target:
        request["X-Forwarded-Prefix"] = prefix
    annotations.exact("x-forwarded-prefix", how="" if target else "nginx heeds it beside rewrite-target only")
    custom = _custom_headers(annotations, objects)
    return {
        "rewrite_target": target,
        "use_regex": _use_regex(annotations),
        "backend_host": _backend_host(annotations),
        "request_headers": Changes(set=request),
        "response_headers": Changes(set={**custom, **response.set}, add=response.add, remove=response.remove),
        "mirror": _mirror(annotations),
    }


def _rewrite_target(annotations: Annotations) -> str:
    target = annotations.text("rewrite-target")
    if not target:
        return ""
    if target.startswith(("http://", "https://", "$scheme")):
        annotations.impossible("rewrite-target", how="a redirect to what a regular expression captured")
        return ""
    if has_variable(target):
        annotations.impossible("rewrite-target", how="of nginx's variables only $1 to $9 have a counterpart")
        return ""
    if "?" in target:
        annotations.approximated("rewrite-target", how="without its query string; routes rewrite paths alone")
        return target.partition("?")[0]
    annotations.exact("rewrite-target", how="regular expressions for all paths of the host, in any case, as in nginx")
    return target


def _use_regex(annotations: Annotations) -> bool:
    annotations.exact("use-regex", how="regular expressions for all paths of the host, in any case, as in nginx")
    return annotations.flag("use-regex")


def _backend_host(annotations: Annotations) -> str:
    host = annotations.text("upstream-vhost")
    if not host:
        return ""
    if not _HOST.fullmatch(host):
        annotations.impossible("upstream-vhost", how="only a fixed host can be set")
        return ""
    annotations.exact("upstream-vhost")
    return host


def _mirror(annotations: Annotations) -> tuple[str, str, int] | None:
    if "mirror-target" not in annotations:
        return None
    found = _MIRROR.fullmatch(annotations.text("mirror-target"))
    if found is None:
        annotations.impossible("mirror-target", how="only a Service of the cluster can get copies")
        return None
    how = "copies carry their path and say -shadow behind their host"
    annotations.approximated("mirror-target", "mirror-host", "mirror-request-body", how=how)
    return found["namespace"], found["name"], int(found["port"] or 80)


# -- headers ----------------------------------------------------------------------------------------------------------


def _custom_headers(annotations: Annotations, objects: Mapping[Key, Object]) -> dict[str, str]:
    reference = annotations.text("custom-headers")
    if not reference:
        return {}
    namespace, _, name = reference.rpartition("/")
    found = objects.get(Key("ConfigMap", namespace or annotations.ingress.namespace, name))
    if not isinstance(found, ConfigMap):
        annotations.impossible("custom-headers", how="the ConfigMap is not among the manifests")
        return {}
    annotations.exact("custom-headers", how="as they stand in the ConfigMap now")
    return {header: _formatted(value) for header, value in found.data.items()}


class _Refused(Exception):
    """A line of a snippet without a counterpart."""


class _Snippet:
    """The changes of headers that a snippet's directives make."""

    def __init__(self, text: str) -> None:
        self.request: dict[str, str] = {}
        self.set: dict[str, str] = {}
        self.add: dict[str, str] = {}
        self.remove: list[str] = []
        for words in _directives(text):
            self._apply(words[0], words[1:])

    def _apply(self, directive: str, words: list[str]) -> None:
        match directive:
            case "proxy_set_header":
                self.request |= _pair(words)
            case "add_header":
                self.add |= _pair(words[:2])
            case "more_set_headers":
                self.set |= _colon_pairs(words)
            case "more_set_input_headers":
                self.request |= _colon_pairs(words)
            case "more_clear_headers" | "proxy_hide_header":
                self.remove += words
            case _:
                raise _Refused(" ".join((directive, *words))[:60])


def _snippet(annotations: Annotations) -> tuple[dict[str, str], Changes]:
    """Headers that a snippet sets for the backend, and its changes of the answer."""
    try:
        found = _Snippet(annotations.text("configuration-snippet"))
    except (_Refused, ValueError) as bad:
        how = f"only directives that change headers have a counterpart, not: {bad}"
        annotations.impossible("configuration-snippet", how=how)
        return {}, Changes()
    annotations.exact("configuration-snippet", how="as changes of headers")
    return found.request, Changes(set=found.set, add=found.add, remove=tuple(found.remove))


def _directives(text: str) -> Iterable[list[str]]:
    """The directives of a snippet, as words; raises for blocks and for quotes that do not close."""
    plain = "\n".join(line.partition("#")[0] for line in text.splitlines())
    if "{" in plain.replace("${", ""):
        raise _Refused("a block")
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word.strip(";"):
            words.append(word)
        elif words:
            yield words
            words = []
    if words:
        yield words


def _pair(words: list[str]) -> dict[str, str]:
    if len(words) != 2:
        raise _Refused(" ".join(words)[:60])
    return {words[0]: _translated(words[1])}


def _colon_pairs(words: list[str]) -> dict[str, str]:
    pairs = [word.partition(":") for word in words]
    if any(not colon or name.startswith("-") for name, colon, _ in pairs):
        raise _Refused(" ".join(words)[:60])
    return {name.strip(): _translated(value.strip()) for name, _, value in pairs}


def _translated(value: str) -> str:
    """The value with nginx's variables as Envoy writes them; percent signs stand for themselves."""
    if not has_variable(value):
        return _formatted(value)
    if value not in _VARIABLES:
        raise _Refused(value[:60])
    return _VARIABLES[value]


def _formatted(value: str) -> str:
    return value.replace("%", "%%")
