"""Filters of HTTPRoutes at a gateway: headers, redirects, rewrites, copies, other origins, timeouts, retries."""

import pytest
from eventually import eventually_blocking
from traffic_gateway_api import routed, to
from traffic_manifests import behaviour, service
from traffic_programs import new_case, statuses
from traffic_shares import assert_share

NEAR, FAR = "app: echo, place: near", "app: echo, place: far"
CHANGES = "{set: [{name: x-put, value: new}], add: [{name: x-more, value: more}], remove: [x-gone, x-never]}"


def rule(path: str, *filters: str, backends: str = "") -> str:
    """One rule for what is under a path."""
    listed = f"filters: [{', '.join(filters)}]"
    return f"- {{matches: [{{path: {{value: {path}}}}}], {listed}{f', {backends}' if backends else ''}}}"


# -- headers ----------------------------------------------------------------------------------------------------------

HEADERS = "\n".join(
    [
        rule(
            "/asked",
            f"{{type: RequestHeaderModifier, requestHeaderModifier: {CHANGES}}}",
            backends=to("api-modified"),
        ),
        rule(
            "/answered",
            f"{{type: ResponseHeaderModifier, responseHeaderModifier: {CHANGES}}}",
            backends=to("api-modified"),
        ),
        rule(
            "/host",
            "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Host, value: other.example}]}}",
            backends=to("api-modified"),
        ),
    ]
)


@behaviour(routed("api-modified", HEADERS))
def test_headers_of_requests_are_set_added_and_removed(entrance):
    sent = {"x-put": "old", "x-more": "first", "x-gone": "x", "x-kept": "kept"}
    seen = entrance.get("api-modified", "/asked", headers=sent).seen
    assert [seen.header(name) for name in ("x-put", "x-more", "x-kept")] == ["new", "first,more", "kept"]
    assert not seen.has("x-gone")
    bare = entrance.get("api-modified", "/asked").seen
    assert (bare.header("x-put"), bare.header("x-more")) == ("new", "more")


@behaviour(routed("api-modified", HEADERS))
def test_headers_of_answers_are_set_added_and_removed(entrance):
    for name, value in (("x-put", "new"), ("x-more", "old, more"), ("x-gone", ""), ("x-kept", "old")):
        answer = entrance.get("api-modified", "/answered", headers={"x-set": f"{name}=old"})
        assert answer.header(name).replace(",more", ", more") == value, name


@behaviour(routed("api-modified", HEADERS))
def test_the_host_is_a_header_like_others(entrance):
    assert entrance.get("api-modified", "/host").seen.header("host") == "other.example"


EACH = """
- backendRefs:
    - name: api-each
      port: 80
      weight: 1
      filters:
        - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-route, value: one}]}}
        - {type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: x-from, value: one}]}}
    - name: api-each-far
      port: 80
      weight: 1
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-route, value: two}]}}]
"""


@behaviour(routed("api-each", EACH, selector=NEAR), service("api-each-far", selector=FAR))
def test_filters_of_a_backend_are_for_its_share_alone(entrance):
    found = {(a.pod, a.route, a.header("x-from")) for a in entrance.send("api-each", count=60, workers=2)}
    assert found == {("near", "one", "one"), ("far", "two", "")}


# -- redirects --------------------------------------------------------------------------------------------------------

REDIRECTS = {
    "host": ("hostname: b.example", 302, "http://b.example/host/a?q=1"),
    "scheme": ("scheme: https", 302, "https://api-moved.door.example.com/scheme/a?q=1"),
    "port": ("port: 8080", 302, "http://api-moved.door.example.com:8080/port/a?q=1"),
    "both": ("scheme: https, port: 8443", 302, "https://api-moved.door.example.com:8443/both/a?q=1"),
    "default": ("scheme: https, port: 443", 302, "https://api-moved.door.example.com/default/a?q=1"),
    "full": ("path: {type: ReplaceFullPath, replaceFullPath: /new}", 302, "http://api-moved.door.example.com/new?q=1"),
    "prefix": (
        "path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}",
        302,
        "http://api-moved.door.example.com/new/a?q=1",
    ),
    **{
        f"code{code}": (f"statusCode: {code}, hostname: b.example", code, f"http://b.example/code{code}/a?q=1")
        for code in (301, 302, 303, 307, 308)
    },
    "everything": (
        "scheme: https, hostname: b.example, port: 8443, statusCode: 301,"
        " path: {type: ReplaceFullPath, replaceFullPath: /new}",
        301,
        "https://b.example:8443/new?q=1",
    ),
}


@behaviour(
    routed(
        "api-moved",
        "\n".join(
            rule(f"/{name}", f"{{type: RequestRedirect, requestRedirect: {{{wanted}}}}}")
            for name, (wanted, _, _) in REDIRECTS.items()
        ),
    )
)
@pytest.mark.parametrize("name", REDIRECTS)
def test_requests_are_led_elsewhere(entrance, echoes, name):
    _, status, location = REDIRECTS[name]
    answer = entrance.get("api-moved", f"/{name}/a?q=1")
    assert (answer.status, answer.header("location")) == (status, location)
    assert echoes.received(answer.case) == []


# -- rewrites ---------------------------------------------------------------------------------------------------------

REWRITES = "\n".join(
    rule(path, f"{{type: URLRewrite, urlRewrite: {{{wanted}}}}}", backends=to("api-rewritten"))
    for path, wanted in {
        "/prefix": "path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}",
        "/slash": "path: {type: ReplacePrefixMatch, replacePrefixMatch: /new/}",
        "/strip": "path: {type: ReplacePrefixMatch, replacePrefixMatch: /}",
        "/full": "path: {type: ReplaceFullPath, replaceFullPath: /whole/new}",
        "/host": "hostname: in.example",
        "/both": "hostname: in.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}",
    }.items()
)


@behaviour(routed("api-rewritten", REWRITES))
def test_paths_and_hosts_are_rewritten(entrance):
    own = "api-rewritten.door.example.com"
    expected = {
        "/prefix": ("/new", own),
        "/prefix/": ("/new/", own),
        "/prefix/a?q=1": ("/new/a?q=1", own),
        "/slash/a": ("/new/a", own),
        "/strip": ("/", own),
        "/strip/": ("/", own),
        "/strip/a/b?q=1": ("/a/b?q=1", own),
        "/full": ("/whole/new", own),
        "/full/a?q=1": ("/whole/new?q=1", own),
        "/host/a": ("/host/a", "in.example"),
        "/both/a": ("/new/a", "in.example"),
    }
    seen = {path: entrance.get("api-rewritten", path).seen for path in expected}
    assert {path: (one.target, one.header("host")) for path, one in seen.items()} == expected


# -- copies -----------------------------------------------------------------------------------------------------------


def copied(name: str, *shares: str) -> str:
    """A route whose requests are answered near and copied far away and between."""
    backends = (f"{name}-far", f"{name}-mid")
    mirrors = [
        f"{{type: RequestMirror, requestMirror: {{backendRef: {{name: {backend}, port: 80}}{share}}}}}"
        for backend, share in zip(backends, shares, strict=False)
    ]
    return "".join(
        [
            routed(name, rule("/", *mirrors, backends=to(name)), selector=NEAR),
            service(backends[0], selector=FAR),
            service(backends[1], selector="app: echo, place: mid"),
        ]
    )


@behaviour(copied("api-copied", "", ""))
def test_requests_are_copied_to_every_mirror_and_answered_by_the_backend(entrance, mesh):
    case = new_case()
    answers = entrance.send("api-copied", "/a?b", count=10, case=case, method="POST", body="text")
    assert {answer.pod for answer in answers} == {"near"}
    for name in ("mid", "far"):
        eventually_blocking(lambda name=name: len(mesh[name].received(case)) == 10)
        assert {(s.method, s.target, s.body) for s in mesh[name].received(case)} == {("POST", "/a?b", "text")}


@behaviour(
    copied("api-copied-part", ", percent: 25"),
    copied("api-copied-third", ", fraction: {numerator: 1, denominator: 3}"),
    copied("api-copied-none", ", percent: 0"),
)
@pytest.mark.parametrize(("name", "share"), [("part", 0.25), ("third", 1 / 3), ("none", 0.0)])
def test_a_share_of_requests_is_copied(entrance, mesh, name, share):
    case = new_case()
    answers = entrance.send(f"api-copied-{name}", count=300, workers=4, case=case)
    assert statuses(answers) == {200: 300}
    # Copies of the last requests may still be on their way; those that are marked come after them.
    last = entrance.send("api-copied", count=1)[0].case
    eventually_blocking(lambda: mesh["far"].received(last))
    assert_share(len(mesh["far"].received(case)), 300, share)


# -- other origins ----------------------------------------------------------------------------------------------------

CORS = rule(
    "/",
    "{type: CORS, cors: {allowOrigins: ['https://a.example', 'https://*.b.example'], allowMethods: [GET, PUT],"
    " allowHeaders: [x-asked], exposeHeaders: [x-shown], allowCredentials: true, maxAge: 600}}",
    backends=to("api-cors"),
)
PREFLIGHT = {"access-control-request-method": "PUT", "access-control-request-headers": "x-asked"}


@behaviour(routed("api-cors", CORS))
def test_preflights_of_known_origins_are_answered_by_the_gateway(entrance, echoes):
    for origin in ("https://a.example", "https://deep.b.example"):
        answer = entrance.get("api-cors", method="OPTIONS", headers={"origin": origin, **PREFLIGHT})
        assert (answer.status, answer.header("access-control-allow-origin")) == (200, origin)
        assert answer.header("access-control-allow-methods") == "GET,PUT"
        assert answer.header("access-control-allow-headers") == "x-asked"
        assert answer.header("access-control-allow-credentials") == "true"
        assert answer.header("access-control-max-age") == "600"
        assert echoes.received(answer.case) == []


@behaviour(routed("api-cors", CORS))
def test_answers_say_which_origins_may_read_them(entrance):
    known = entrance.get("api-cors", headers={"origin": "https://a.example"})
    assert known.header("access-control-allow-origin") == "https://a.example"
    assert known.header("access-control-expose-headers") == "x-shown"
    for origin in ("https://c.example", "https://b.example", "http://a.example"):
        unknown = entrance.get("api-cors", headers={"origin": origin})
        assert (unknown.status, unknown.has("access-control-allow-origin")) == (200, False), origin


# -- time and repetition ----------------------------------------------------------------------------------------------

PATIENCE = f"""
- {{matches: [{{path: {{value: /request}}}}], timeouts: {{request: 2s}}, {to("api-patience")}}}
- {{matches: [{{path: {{value: /backend}}}}], timeouts: {{backendRequest: 2s}}, {to("api-patience")}}}
- {{matches: [{{path: {{value: /endless}}}}], timeouts: {{request: 0s}}, {to("api-patience")}}}
- matches: [{{path: {{value: /each}}}}]
  timeouts: {{request: 60s, backendRequest: 6s}}
  retry: {{attempts: 2, backoff: 10ms, codes: [503]}}
  {to("api-patience")}
- {{matches: [{{path: {{value: /codes}}}}], retry: {{attempts: 3, backoff: 10ms, codes: [503]}}, {to("api-patience")}}}
- {{matches: [{{path: {{value: /twice}}}}], retry: {{codes: [503], backoff: 10ms}}, {to("api-patience")}}}
- {{matches: [{{path: {{value: /other}}}}], retry: {{attempts: 3, codes: [500], backoff: 10ms}}, {to("api-patience")}}}
"""


@behaviour(routed("api-patience", PATIENCE, selector=NEAR))
@pytest.mark.parametrize("path", ["/request", "/backend"])
def test_who_takes_too_long_is_given_up(entrance, path):
    assert entrance.get("api-patience", path, headers={"x-delay": "20"}).status == 504
    eventually_blocking(lambda: entrance.get("api-patience", path).status == 200)


@behaviour(routed("api-patience", PATIENCE, selector=NEAR))
def test_no_time_is_too_long_where_the_timeout_is_zero(entrance):
    assert entrance.get("api-patience", "/endless", headers={"x-delay": "3"}).status == 200


@behaviour(routed("api-patience", PATIENCE, selector=NEAR))
def test_with_retries_each_try_has_its_own_time(entrance, mesh):
    answer = entrance.get("api-patience", "/each", headers={"x-delay": "2.5", "x-flaky": "2"})
    assert (answer.status, len(mesh["near"].received(answer.case))) == (200, 3)
    assert answer.seconds > 7, "longer than one of them has"
    assert entrance.get("api-patience", "/each", headers={"x-delay": "60"}).status == 504


@behaviour(routed("api-patience", PATIENCE, selector=NEAR))
@pytest.mark.parametrize(
    ("path", "failing", "status", "tries"),
    [
        ("/codes", 3, 200, 4),
        ("/codes", 4, 503, 4),
        ("/twice", 2, 200, 3),
        ("/twice", 3, 503, 3),
        ("/other", 1, 503, 1),
    ],
)
def test_listed_answers_are_tried_again_so_many_times(entrance, mesh, path, failing, status, tries):
    answer = entrance.get("api-patience", path, headers={"x-flaky": str(failing)})
    assert (answer.status, len(mesh["near"].received(answer.case))) == (status, tries)


# -- several at once --------------------------------------------------------------------------------------------------

TOGETHER = rule(
    "/old",
    f"{{type: RequestHeaderModifier, requestHeaderModifier: {CHANGES}}}",
    f"{{type: ResponseHeaderModifier, responseHeaderModifier: {CHANGES}}}",
    "{type: URLRewrite, urlRewrite: {hostname: in.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}",
    "{type: RequestMirror, requestMirror: {backendRef: {name: api-together-far, port: 80}}}",
    backends=to("api-together"),
)


@behaviour(routed("api-together", TOGETHER, selector=NEAR), service("api-together-far", selector=FAR))
def test_filters_of_one_rule_work_together(entrance, mesh):
    answer = entrance.get("api-together", "/old/a", headers={"x-gone": "x"})
    seen = answer.seen
    assert (seen.pod, seen.target, seen.header("host")) == ("near", "/a", "in.example")
    assert (seen.header("x-put"), seen.has("x-gone"), answer.header("x-put")) == ("new", False, "new")
    (copy,) = eventually_blocking(lambda: mesh["far"].received(answer.case))
    assert (copy.target, copy.header("x-put")) == ("/a", "new")
