"""From a line of a table to a request.

In: a `Case`, the defaults of its file, and the texts of the files that it names. Out: what `trace` takes.
"""

from collections.abc import Mapping

from mizzen.diagnose.expectations.tables import Asked, Case, Headers, spell
from mizzen.diagnose.trace.request import FILE_KEYS, Pairs, Request, check, parse_target
from mizzen.errors import DecodeError


def token_file(case: Case, defaults: Asked) -> str:
    """The file that the token of the case stands in; empty where there is none to read."""
    return "" if case.token else case.jwt or ("" if defaults.token else defaults.jwt)


def named_files(case: Case, defaults: Asked) -> frozenset[str]:
    """All files that have to be read for the request."""
    return frozenset({token_file(case, defaults), case.cert}) - {""}


def build_request(case: Case, defaults: Asked, texts: Mapping[str, str] | None = None) -> Request:
    """The request; raises DecodeError for one that nobody could send. `texts` holds the files of `named_files`."""
    scheme, host, port, path = parse_target(case.url)
    known = texts or {}
    bearer = known.get(token_file(case, defaults), "").strip() or case.token or defaults.token
    sent = _headers(defaults.headers, case.headers)
    request = Request(
        source=case.source or defaults.source,
        scheme=scheme,
        host=host,
        port=port,
        path=path or "/",
        method=case.method or defaults.method,
        headers=(*sent, ("authorization", f"Bearer {bearer}")) if bearer else sent,
        principal=case.principal or defaults.principal,
        address=case.connect_to,
        takes=case.takes,
        answers=case.answers,
        at_once=case.at_once,
        earlier=case.earlier,
        gives_up=case.gives_up,
        authorizer=case.authorizer,
        certificate=known.get(case.cert, "").encode(),
    )
    try:
        return check(request)
    except DecodeError as wrong:
        raise DecodeError(wrong.message, FILE_KEYS.get(wrong.path, wrong.path)) from wrong


def _headers(common: Headers, own: Headers) -> Pairs:
    named = {name.lower() for name in own}
    kept = {name: value for name, value in common.items() if name.lower() not in named}
    return tuple((name, spell(value)) for name, value in {**kept, **own}.items() if value is not None)
