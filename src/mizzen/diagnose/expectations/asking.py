"""From a line of a table to a request.

In: a `Case`, the defaults of its file, and the text of the token that it names. Out: what `trace` takes.
"""

from mizzen.diagnose.expectations.tables import Asked, Case, Headers, spell
from mizzen.diagnose.trace.request import Pairs, Request, parse_target


def token_file(case: Case, defaults: Asked) -> str:
    """The file that the token of the case stands in; empty where there is none to read."""
    return "" if case.token else case.jwt or ("" if defaults.token else defaults.jwt)


def build_request(case: Case, defaults: Asked, token: str = "") -> Request:
    """The request; raises DecodeError for a URL that is none. `token` is what `token_file` holds."""
    scheme, host, port, path = parse_target(case.url)
    bearer = token or case.token or defaults.token
    sent = _headers(defaults.headers, case.headers)
    return Request(
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
    )


def _headers(common: Headers, own: Headers) -> Pairs:
    named = {name.lower() for name in own}
    kept = {name: value for name, value in common.items() if name.lower() not in named}
    return tuple((name, spell(value)) for name, value in {**kept, **own}.items() if value is not None)
