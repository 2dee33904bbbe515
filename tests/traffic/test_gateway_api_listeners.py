"""Listeners of a Gateway: hosts, who may attach, TLS in its modes, TLS and TCP routes, ListenerSets, Istio's own rules."""

from traffic_certificates import OTHER, ROOT, secret
from traffic_gateway_api import PARENT, choice, route, routed, to
from traffic_manifests import behaviour, service
from traffic_shares import assert_share

GATEWAY = "spiffe://cluster.local/ns/gateways/sa/door-istio"
TRUSTING = {"ca": ROOT.pem}
NEAR, FAR = "app: echo, place: near", "app: echo, place: far"


def certified(name: str, issuer=ROOT) -> dict[str, str]:
    """The TLS settings of a caller who shows a certificate."""
    certificate, key = issuer.issue(name)
    return {**TRUSTING, "certificate": certificate, "key": key}


def section(name: str) -> str:
    return f"{PARENT[:-1]}, sectionName: {name}}}"


# -- the Gateway itself -----------------------------------------------------------------------------------------------


@behaviour(routed("api-door", f"- {{{to('api-door')}}}"))
def test_a_managed_gateway_is_reached_by_its_service_and_speaks_for_itself(entrance, outer):
    seen = entrance.get("api-door").seen
    assert (seen.caller, seen.header("x-forwarded-for")) == (GATEWAY, outer.address)
    answer = outer.get("http://api-door.door.example.com/", address="door-istio.gateways.svc:80")
    assert answer.seen.caller == GATEWAY
    assert entrance.get("nobody").status == 404


@behaviour(routed("api-socket", f"- {{{to('api-socket')}}}"))
def test_websockets_come_in(entrance, outer):
    opened = outer.websocket(f"{entrance.address}:80", "api-socket.door.example.com", ["one"])
    assert (opened["status"], opened["answers"][0].split()[1]) == (101, "one")


HAND_MADE = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: hand-made, namespace: gateways}
spec:
  gatewayClassName: istio
  addresses: [{type: Hostname, value: ingress}]
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
"""


@behaviour(
    HAND_MADE,
    routed("api-hand", f"- {{{to('api-hand')}}}", parents="{name: hand-made, namespace: gateways}"),
    """
kind: Gateway
metadata: {name: api-beside}
spec:
  selector: {gateway: ingress}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [api-beside.example.com]}]
---
kind: VirtualService
metadata: {name: api-beside}
spec:
  hosts: [api-beside.example.com]
  gateways: [api-beside]
  http: [{route: [{destination: {host: api-hand}}]}]
""",
)
def test_a_gateway_may_be_served_by_proxies_that_serve_istios_gateways_too(entrance, mesh, outer):
    for host in ("api-hand.door.example.com", "api-beside.example.com"):
        answer = outer.get(f"http://{host}/", address=f"{mesh.pod('ingress').address}:8080")
        assert answer.seen.caller == "spiffe://cluster.local/ns/gateways/sa/ingress"
        assert entrance.get(host).status == 404


# -- who may attach ---------------------------------------------------------------------------------------------------


@behaviour(
    service("api-who"),
    route("api-who-own", f"- {{{to('api-who')}}}", hosts="api.own.example.com"),
    route("api-who-chosen", f"- {{{to('api-who')}}}", hosts="api.chosen.example.com"),
    route(
        "api-who-stranger",
        "- {backendRefs: [{name: api-who, namespace: traffic, port: 80}]}",
        hosts="stranger.chosen.example.com",
        namespace="scoped",
    ),
    route("api-who-kind", f"- {{{to('api-who')}}}", hosts="only-grpc.example.com"),
)
def test_routes_attach_where_their_namespace_and_kind_are_let_in(entrance):
    hosts = ("api.own", "api.chosen", "stranger.chosen", "only-grpc")
    assert [entrance.get(f"{host}.example.com").status for host in hosts] == [404, 200, 404, 404]


@behaviour(
    service("api-apart"),
    route(
        "api-apart-wide",
        choice("api-apart", {"wide": ""}),
        parents=section("wide"),
        hosts='"*.wide.example.com", narrow.wide.example.com',
    ),
    route(
        "api-apart-narrow",
        choice("api-apart", {"narrow": "{path: {value: /n}}"}),
        parents=section("narrow"),
        hosts="",
    ),
    route("api-apart-any", choice("api-apart", {"any": ""}), parents=section("http"), hosts="narrow.wide.example.com"),
)
def test_a_host_belongs_to_its_most_specific_listener_alone(entrance):
    expected = {("narrow", "/n"): "narrow", ("narrow", "/"): 404, ("other", "/n"): "wide"}
    assert {(host, path): entrance.took(f"{host}.wide.example.com", path) for host, path in expected} == expected


# -- TLS --------------------------------------------------------------------------------------------------------------


@behaviour(
    routed("api-https", choice("api-https", {"secure": ""}), parents=section("https")),
    route("api-second", choice("api-https", {"second": ""}), hosts="second.example.com"),
)
def test_tls_ends_at_the_gateway_with_the_certificate_of_the_listener(entrance, outer):
    answer = entrance.get("api-https", port=443, tls=TRUSTING)
    assert (answer.route, answer.seen.header("x-forwarded-proto")) == ("secure", "https")
    assert entrance.get("second.example.com", port=443, tls=TRUSTING).route == "second"
    assert entrance.get("api-https").status == 404
    tls = {**TRUSTING, "sni": "nobody.example.net"}
    assert "error" in outer.connect(f"{entrance.address}:443", tls=tls)[0].error.lower()


@behaviour(
    service("api-lent"),
    route("api-lent", choice("api-lent", {"lent": ""}), hosts="granted.example.com, refused.example.com"),
)
def test_a_certificate_of_another_namespace_needs_a_grant(entrance):
    assert entrance.get("granted.example.com", port=443, tls=TRUSTING).route == "lent"
    refused = entrance.get("refused.example.com", port=443, tls={})
    assert (refused.status, bool(refused.error)) == (0, True)


@behaviour(routed("api-known", f"- {{{to('api-known')}}}", parents=section("known")))
def test_a_gateway_may_ask_clients_for_certificates_by_port(entrance):
    known = entrance.get("api-known", port=8443, tls=certified("friend.example.com"))
    assert 'Subject="CN=friend.example.com"' in known.seen.header("x-forwarded-client-cert")
    assert entrance.get("api-known", port=8443, tls=TRUSTING).status == 0
    assert entrance.get("api-known", port=8443, tls=certified("stranger.example.com", OTHER)).status == 0


@behaviour(routed("api-lenient", f"- {{{to('api-lenient')}}}", parents=section("lenient")))
def test_a_gateway_may_ask_and_let_everybody_in(entrance):
    """What a stranger shows is handed on for the backend to judge."""
    for tls in (TRUSTING, certified("friend.example.com"), certified("stranger.example.com", OTHER)):
        assert entrance.get("api-lenient", port=8444, tls=tls).status == 200


@behaviour(service("api-option"), route("api-option", f"- {{{to('api-option')}}}", hosts="by-option.example.com"))
def test_an_option_of_a_listener_asks_for_certificates_too(entrance):
    assert entrance.get("by-option.example.com", port=443, tls=certified("friend.example.com")).status == 200
    assert entrance.get("by-option.example.com", port=443, tls=TRUSTING).status == 0


@behaviour(
    service("api-passed", port=443, port_name="tls", target=8443, selector=NEAR),
    service("api-passed-far", port=443, port_name="tls", target=8443, selector=FAR),
    route(
        "api-passed",
        "- {backendRefs: [{name: api-passed, port: 443}]}",
        kind="TLSRoute",
        hosts="near.passed.example.com",
    ),
    route(
        "api-passed-far",
        "- {backendRefs: [{name: api-passed-far, port: 443}]}",
        kind="TLSRoute",
        hosts='"*.far.passed.example.com"',
    ),
)
def test_tls_passes_through_to_the_server_of_its_name(entrance):
    for host, pod in (("near.passed.example.com", "near"), ("a.far.passed.example.com", "far")):
        answer = entrance.get(host, port=443, tls={"sni": host})
        assert (answer.seen.kind, answer.seen.sni, answer.pod) == ("https", host, pod)
    unknown = entrance.get("nobody.passed.example.com", port=443, tls={})
    assert (unknown.status, bool(unknown.error)) == (0, True)


def greeter(name: str, selector: str = NEAR) -> str:
    return service(name, port=9000, port_name="tcp", target=9000, selector=selector)


@behaviour(
    greeter("api-opened"),
    route(
        "api-opened",
        "- {backendRefs: [{name: api-opened, port: 9000}]}",
        kind="TLSRoute",
        hosts="api.opened.example.com",
    ),
)
def test_tls_may_end_at_the_gateway_for_what_is_not_http(entrance, outer):
    (line,) = outer.connect(f"{entrance.address}:443", tls={**TRUSTING, "sni": "api.opened.example.com"})
    assert line.lines == ("HELLO near v1",)


# -- TCP --------------------------------------------------------------------------------------------------------------


@behaviour(
    greeter("api-tcp"),
    route(
        "api-tcp", "- {backendRefs: [{name: api-tcp, port: 9000}]}", kind="TCPRoute", parents=section("tcp"), hosts=""
    ),
    greeter("api-tcp-far", FAR),
    route(
        "api-tcp-split",
        "- {backendRefs: [{name: api-tcp, port: 9000, weight: 1}, {name: api-tcp-far, port: 9000, weight: 3}]}",
        kind="TCPRoute",
        parents=section("tcp-split"),
        hosts="",
    ),
)
def test_tcp_comes_in_and_is_shared_by_weight(entrance, outer):
    assert outer.connect(f"{entrance.address}:9000")[0].lines == ("HELLO near v1",)
    found = [line.lines[0] for line in outer.connect(f"{entrance.address}:9001", count=200)]
    assert_share(found.count("HELLO far v2"), 200, 0.75)


# -- ListenerSets -----------------------------------------------------------------------------------------------------


def listener_set(name: str, *listeners: str, namespace: str = "traffic") -> str:
    return f"""
kind: ListenerSet
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  parentRef: {PARENT}
  listeners: [{", ".join(listeners)}]
---
"""


SET_PARENT = "{group: gateway.networking.k8s.io, kind: ListenerSet, name: api-set}"


@behaviour(
    listener_set(
        "api-set",
        "{name: http, port: 80, protocol: HTTP, hostname: api.set.example.com}",
        "{name: https, port: 443, protocol: HTTPS, hostname: api.set.example.com,"
        " tls: {certificateRefs: [{name: api-set-cert}]}}",
        "{name: taken, port: 443, protocol: HTTPS, hostname: second.example.com,"
        " tls: {certificateRefs: [{name: api-set-cert}]}}",
    ),
    secret("api-set-cert", "api.set.example.com", "second.example.com", namespace="traffic"),
    routed("api-set", choice("api-set", {"set": ""}), parents=SET_PARENT, hosts=""),
    route("api-set-second", choice("api-set", {"second": ""}), hosts="second.example.com", parents=section("second")),
    route("api-set-none", choice("api-set", {"gateway": ""}), hosts="api.set.example.com"),
)
def test_a_set_adds_listeners_with_certificates_of_its_own_namespace(entrance):
    assert entrance.took("api.set.example.com") == "set"
    assert entrance.took("api.set.example.com", port=443, tls=TRUSTING) == "set"
    assert entrance.took("second.example.com", port=443, tls=TRUSTING) == "second"


@behaviour(
    listener_set(
        "api-stray", "{name: http, port: 80, protocol: HTTP, hostname: a.stray.example.com}", namespace="scoped"
    ),
    routed(
        "api-stray", f"- {{{to('api-stray')}}}", parents=SET_PARENT.replace("api-set", "api-stray"), hosts=""
    ).replace("name: api-stray}", "name: api-stray, namespace: scoped}"),
)
def test_a_set_of_a_namespace_that_the_gateway_does_not_allow_adds_nothing(entrance):
    assert entrance.get("a.stray.example.com").status == 404
