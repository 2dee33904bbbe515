"""Routes and domains for which Envoy would refuse a whole route configuration."""

import pytest

from mizzen import protos
from mizzen.compile.routes.refusals import is_domain, without_violations
from mizzen.compile.routes.virtual_hosts import VirtualHost, encode_configuration
from mizzen.compile.routes.virtual_service import EncodedRoute

_route_v3 = protos.package("envoy.config.route.v3")

MATCH = {"prefix": "/admin"}
GOOD = {"match": MATCH, "route": {"cluster": "a", "timeout": {}}}


@pytest.mark.parametrize(
    "value", ["", "plain", "100%%", "%REQ(:path)% of %PROTOCOL%", "%PER_REQUEST_STATE(a.b)%", "%GRPC_STATUS(NUMBER)%"]
)
def test_a_sound_route_stays_the_same(value: str) -> None:
    route = _route_v3.Route(**GOOD, request_headers_to_add=[{"header": {"key": "a", "value": value}}])
    assert without_violations(route, "envoy") == (route, None)


@pytest.mark.parametrize(
    "faulty",
    [
        {"match": MATCH, "route": {"weighted_clusters": {}}},
        {**GOOD, "request_headers_to_add": [{"header": {"key": "a\nb", "value": "c"}}]},
        {**GOOD, "request_headers_to_add": [{"header": {"key": "a", "value": "100%"}}]},
        {**GOOD, "response_headers_to_add": [{"header": {"key": "a", "value": "%NO_SUCH_COMMAND%"}}]},
        {
            "match": MATCH,
            "route": {
                "weighted_clusters": {
                    "clusters": [
                        {"name": "a", "weight": {"value": 1}},
                        {"name": "b", "request_headers_to_add": [{"header": {"key": "a", "value": "%REQ("}}]},
                    ]
                }
            },
        },
        {"match": MATCH, "route": {"cluster": "a", "timeout": {"seconds": -1}}},
        {"match": MATCH, "route": {"cluster": "a", "retry_policy": {"per_try_timeout": {"nanos": -1}}}},
        {"match": MATCH, "direct_response": {"status": 99}},
        {"match": MATCH},
    ],
)
def test_requests_of_a_faulty_action_go_nowhere(faulty: dict) -> None:
    route = _route_v3.Route(name="x", **faulty)
    found, refused = without_violations(route, "envoy")
    assert refused
    assert protos.to_json(found) == {"name": "x", "match": {"prefix": "/admin"}, "directResponse": {"status": 503}}
    assert without_violations(route, "istio") == (route, None)


def test_a_route_with_a_faulty_match_goes() -> None:
    route = _route_v3.Route(match={"prefix": "/", "headers": [{"name": ""}]}, route={"cluster": "a"})
    found, refused = without_violations(route, "envoy")
    assert found is None
    assert refused


@pytest.mark.parametrize(("text", "sound"), [("a.example", True), ("*", True), ("", False), ("a\nb", False)])
def test_domains(text: str, sound: bool) -> None:
    assert is_domain(text) is sound


def domains_of(*hosts: tuple[str, tuple[str, ...]]) -> dict[str, list[str]]:
    route = EncodedRoute(protos.encode(_route_v3.Route(**GOOD)), is_catch_all=False)
    listed = [VirtualHost(name=name, domains=domains, routes=(route,)) for name, domains in hosts]
    found = encode_configuration("80", listed).message()
    assert all(len(host.routes) == 1 for host in found.virtual_hosts)
    return {host.name: list(host.domains) for host in found.virtual_hosts}


def test_sound_domains_stay() -> None:
    hosts = (("a", ("a", "a.b")), ("b", ("b",)), ("all", ("*",)))
    assert domains_of(*hosts) == {name: list(domains) for name, domains in hosts}


def test_a_domain_belongs_to_the_first_in_whatever_letters_and_to_none_in_vain() -> None:
    found = domains_of(("a", ("a", "x\n")), ("b", ("A", "b")), ("c", ("", "B")), ("all", ("*",)))
    assert found == {"a": ["a"], "b": ["b"], "all": ["*"]}


def test_what_meets_everything_else_stands_last() -> None:
    assert domains_of(("a", ("*", "a")), ("b", ("*",)), ("all", ("*",))) == {"a": ["a"], "all": ["*"]}
