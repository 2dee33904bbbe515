"""GRPCRoutes at a gateway: matches by service, method, pattern and header, filters, shares."""

import pytest
from eventually import eventually_blocking
from traffic_certificates import ROOT
from traffic_gateway_api import PARENT, marked, route
from traffic_manifests import behaviour, service
from traffic_programs import new_case

NEAR, FAR = "app: echo, place: near", "app: echo, place: far"


def grpc_service(name: str, selector: str = "app: echo") -> str:
    return service(name, port=9090, port_name="grpc", target=9090, selector=selector)


def rule(backend: str, mark: str, match: str = "", *filters: str) -> str:
    matches = f"matches: [{match}], " if match else ""
    listed = ", ".join((marked(mark), *filters))
    return f"- {{{matches}filters: [{listed}], backendRefs: [{{name: {backend}, port: 9090}}]}}"


class Asked:
    """What one call gave, and the mark that its rule left at the receiver; empty where it arrived nowhere."""

    def __init__(self, entrance, outer, echoes, name: str, **more) -> None:
        case = new_case()
        metadata = [("x-case", case), *more.pop("metadata", ())]
        tls = more.pop("tls", False)
        secured = {"ca": ROOT.pem} if tls else {}
        address = f"{entrance.address}:{443 if tls else 80}"
        host = name if "." in name else f"{name}.door.example.com"
        (self.call,) = outer.grpc(address, authority=host, metadata=metadata, **secured, **more)
        received = echoes.received(case)
        self.metadata = received[0].metadata if received else {}
        self.mark = self.metadata.get("x-route", "")
        self.case = case


@pytest.fixture
def ask(entrance, outer, echoes):
    return lambda name, **more: Asked(entrance, outer, echoes, name, **more)


@behaviour(
    grpc_service("rpc"),
    route("rpc-exact", rule("rpc", "exact", "{method: {service: traffic.Echo, method: Once}}"), kind="GRPCRoute"),
    route("rpc-service", rule("rpc", "service", "{method: {service: traffic.Echo}}"), kind="GRPCRoute"),
    route("rpc-method", rule("rpc", "method", "{method: {method: Stream}}"), kind="GRPCRoute"),
    route(
        "rpc-regex",
        rule("rpc", "regex", "{method: {type: RegularExpression, service: 'traffic[.].*', method: 'On.*'}}"),
        kind="GRPCRoute",
    ),
    route("rpc-any", rule("rpc", "any"), kind="GRPCRoute"),
    route("rpc-other", rule("rpc", "other", "{method: {service: traffic.Ech}}"), kind="GRPCRoute"),
)
def test_calls_match_by_service_and_method(ask):
    expected = {
        "exact": ("exact", ""),
        "service": ("service", "service"),
        "method": ("", "method"),
        "regex": ("regex", ""),
        "any": ("any", "any"),
        "other": ("", ""),
    }
    found = {name: tuple(ask(f"rpc-{name}", method=m).mark for m in ("Once", "Stream")) for name in expected}
    assert found == expected
    assert ask("rpc-other").call.code == "UNIMPLEMENTED"


@behaviour(
    grpc_service("rpc"),
    route(
        "rpc-ranked",
        "\n".join(
            (
                rule("rpc", "any"),
                rule("rpc", "service", "{method: {service: traffic.Echo}}"),
                rule("rpc", "header", "{method: {service: traffic.Echo}, headers: [{name: x-a, value: '1'}]}"),
                rule("rpc", "exact", "{method: {service: traffic.Echo, method: Once}}"),
            )
        ),
        kind="GRPCRoute",
    ),
    route(
        "rpc-headers",
        rule("rpc", "both", "{headers: [{name: x-a, value: '1'}, {type: RegularExpression, name: x-b, value: 'v.+'}]}"),
        kind="GRPCRoute",
    ),
)
def test_the_most_specific_rule_takes_a_call_and_headers_narrow_it(ask):
    assert ask("rpc-ranked").mark == "exact"
    assert ask("rpc-ranked", method="Stream").mark == "service"
    assert ask("rpc-ranked", method="Stream", metadata=[("x-a", "1")]).mark == "header"
    assert ask("rpc-headers", metadata=[("x-a", "1"), ("x-b", "v1")]).mark == "both"
    assert ask("rpc-headers", metadata=[("x-a", "1"), ("x-b", "v")]).mark == ""


@behaviour(
    grpc_service("rpc-near", NEAR),
    grpc_service("rpc-far", FAR),
    route(
        "rpc-filtered",
        rule(
            "rpc-near",
            "filtered",
            "",
            "{type: RequestMirror, requestMirror: {backendRef: {name: rpc-far, port: 9090}}}",
        ),
        kind="GRPCRoute",
    ),
    route(
        "rpc-split",
        "- {backendRefs: [{name: rpc-near, port: 9090, weight: 1}, {name: rpc-far, port: 9090, weight: 1}]}",
        kind="GRPCRoute",
    ),
)
def test_calls_are_marked_copied_and_shared(ask, mesh):
    copied = ask("rpc-filtered")
    assert (copied.call.answers[0].split()[0], copied.mark) == ("near", "filtered")
    eventually_blocking(lambda: mesh["far"].received(copied.case))
    assert {ask("rpc-split").call.answers[0].split()[0] for _ in range(40)} == {"near", "far"}


@behaviour(
    grpc_service("rpc"),
    route("rpc-secured", rule("rpc", "secured"), kind="GRPCRoute", parents=f"{PARENT[:-1]}, sectionName: https}}"),
    route(
        "rpc-only",
        rule("rpc", "only", "{method: {service: traffic.Echo}}"),
        kind="GRPCRoute",
        hosts="only-grpc.example.com",
    ),
)
def test_streams_come_in_over_tls_and_to_a_listener_for_them_alone(ask):
    asked = ask("rpc-secured", tls=True, method="Stream", say=["a", "b"])
    assert (asked.call.code, [answer.split()[1] for answer in asked.call.answers]) == ("OK", ["a", "b"])
    assert asked.mark == "secured"
    assert ask("only-grpc.example.com").mark == "only"


@behaviour(
    grpc_service("rpc-mixed"),
    service("rpc-mixed-http"),
    route("rpc-mixed", rule("rpc-mixed", "call", "{method: {service: traffic.Echo}}"), kind="GRPCRoute"),
    route(
        "rpc-mixed-http",
        f"- {{matches: [{{path: {{value: /}}}}], filters: [{marked('http')}], backendRefs: [{{name: rpc-mixed-http, port: 80}}]}}",
        hosts="rpc-mixed.door.example.com",
    ),
)
def test_calls_and_requests_may_share_a_host(ask, entrance):
    assert ask("rpc-mixed").mark == "call"
    assert entrance.took("rpc-mixed", "/anything") == "http"
