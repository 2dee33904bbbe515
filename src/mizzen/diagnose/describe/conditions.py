"""Conditions of routes in words.

In: the matches of a route of a VirtualService. Out: `/api* when headers are end-user=jason`, alternatives joined by a
comma; `everything` where there is no condition. Paths and headers are as istioctl words them; the conditions that it
passes over (method, query, source, port, …) follow in the same manner.
"""

from collections.abc import Iterator, Mapping, Sequence

from mizzen.api.networking.virtual_service import (
    HTTPMatchRequest,
    HTTPRoute,
    L4MatchAttributes,
    StringMatch,
    TCPRoute,
    TLSMatchAttributes,
    TLSRoute,
)

Route = HTTPRoute | TLSRoute | TCPRoute
EVERYTHING = "everything"


def describe_matches(route: Route) -> str:
    """All alternatives of the route."""
    if isinstance(route, HTTPRoute):
        texts = [_describe_request(each) for each in route.match]
    else:
        texts = [_describe_connection(each) for each in route.match]
    return ", ".join(texts) or EVERYTHING


def _describe_request(match: HTTPMatchRequest) -> str:
    path = _describe_path(match.uri) if match.uri is not None else ""
    clauses = [f"{what} {verb} {value}" for what, verb, value in _request_clauses(match)]
    return _join(path, clauses)


def _join(first: str, clauses: Sequence[str]) -> str:
    when = f"when {' and '.join(clauses)}" if clauses else ""
    return " ".join(filter(None, (first, when))) or EVERYTHING


def _request_clauses(match: HTTPMatchRequest) -> Iterator[tuple[str, str, str]]:
    if match.headers:
        yield "headers", "are", _describe_all(match.headers)
    if match.without_headers:
        yield "headers", "are not", _describe_all(match.without_headers)
    if match.query_params:
        yield "query parameters", "are", _describe_all(match.query_params)
    for name, value in (("method", match.method), ("authority", match.authority), ("scheme", match.scheme)):
        if value is not None:
            yield name, "is", _describe_value(value)
    yield from _source_clauses(match.port, match.source_labels, match.source_namespace, match.gateways)


def _source_clauses(
    port: int, labels: Mapping[str, str], namespace: str, gateways: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    if port:
        yield "port", "is", str(port)
    if labels:
        yield "source labels", "are", ",".join(f"{name}={value}" for name, value in labels.items())
    if namespace:
        yield "source namespace", "is", namespace
    if gateways:
        yield "gateway", "is", " or ".join(gateways)


def _describe_connection(match: TLSMatchAttributes | L4MatchAttributes) -> str:
    clauses = []
    if isinstance(match, TLSMatchAttributes) and match.sni_hosts:
        clauses.append(f"SNI is {' or '.join(match.sni_hosts)}")
    if match.destination_subnets:
        clauses.append(f"destination is in {' or '.join(match.destination_subnets)}")
    if isinstance(match, L4MatchAttributes) and match.source_subnet:
        clauses.append(f"source is in {match.source_subnet}")
    sources = _source_clauses(match.port, match.source_labels, match.source_namespace, match.gateways)
    return _join("", [*clauses, *(f"{what} {verb} {value}" for what, verb, value in sources)])


def _describe_path(path: StringMatch) -> str:
    if path.prefix is not None:
        return f"{path.prefix}*"
    if path.regex is not None:
        return f"regex {path.regex}"
    return path.exact or ""


def _describe_all(values: Mapping[str, StringMatch]) -> str:
    return ", ".join(f"{name}={_describe_value(value)}" for name, value in values.items())


def _describe_value(value: StringMatch) -> str:
    """A value that is only asked to be there is a star."""
    if value.exact is not None:
        return value.exact
    if value.prefix is not None:
        return f"{value.prefix}*"
    return f"regex {value.regex}" if value.regex is not None else "*"
