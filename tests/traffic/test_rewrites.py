"""What happens to a request on its way, and answers that come from the mesh itself."""

import pytest
from traffic_manifests import behaviour, routes


@behaviour(
    routes(
        "rewrite-uri",
        """
- match: [{uri: {prefix: /old/}}]
  rewrite: {uri: /new/}
  route: [{destination: {host: rewrite-uri}}]
- match: [{uri: {exact: /exactly}}]
  rewrite: {uri: /other}
  route: [{destination: {host: rewrite-uri}}]
- route: [{destination: {host: rewrite-uri}}]
""",
    )
)
@pytest.mark.parametrize(
    ("sent", "received"),
    [("/old/a?b=c", "/new/a?b=c"), ("/exactly?x=1", "/other?x=1"), ("/untouched", "/untouched")],
)
def test_the_matched_part_of_the_path_is_rewritten(client, sent, received):
    assert client.get(f"http://rewrite-uri{sent}").seen.target == received


@behaviour(
    routes(
        "rewrite-regex",
        r"""
- rewrite: {uriRegexRewrite: {match: '/user/([0-9]+)/(.*)', rewrite: '/u-\1/\2'}}
  route: [{destination: {host: rewrite-regex}}]
""",
    )
)
def test_a_path_is_rewritten_by_a_regular_expression(client):
    assert client.get("http://rewrite-regex/user/12/mail?q=1").seen.target == "/u-12/mail?q=1"


@behaviour(
    routes(
        "rewrite-authority",
        """
- rewrite: {authority: other.example.com}
  route: [{destination: {host: rewrite-authority}}]
""",
    )
)
def test_the_authority_is_rewritten(client):
    assert client.get("http://rewrite-authority/").seen.header("host") == "other.example.com"


@behaviour(
    routes(
        "host-header",
        """
- headers: {request: {set: {Host: set.example.com}}}
  route: [{destination: {host: host-header}}]
""",
    )
)
def test_the_authority_may_be_set_as_a_header(client):
    assert client.get("http://host-header/").seen.header("host") == "set.example.com"


REDIRECTS = routes(
    "redirect",
    """
- match: [{uri: {prefix: /moved}}]
  redirect: {uri: /there, authority: elsewhere.example.com}
- match: [{uri: {prefix: /kept/}}]
  redirect: {authority: elsewhere.example.com, redirectCode: 307}
- match: [{uri: {prefix: /secure}}]
  redirect: {scheme: https, authority: elsewhere.example.com, port: 8443, redirectCode: 308}
- match: [{uri: {prefix: /same-port}}]
  redirect: {authority: elsewhere.example.com, derivePort: FROM_REQUEST_PORT, redirectCode: 302}
- match: [{uri: {prefix: /default-port}}]
  redirect: {scheme: https, authority: elsewhere.example.com, derivePort: FROM_PROTOCOL_DEFAULT, redirectCode: 303}
""",
    port=8088,
)


@behaviour(REDIRECTS)
@pytest.mark.parametrize(
    ("path", "status", "location"),
    [
        ("/moved/x?q=1", 301, "http://elsewhere.example.com/there?q=1"),
        ("/kept/x?q=1", 307, "http://elsewhere.example.com/kept/x?q=1"),
        ("/secure", 308, "https://elsewhere.example.com:8443/secure"),
        ("/same-port", 302, "http://elsewhere.example.com:8088/same-port"),
        ("/default-port", 303, "https://elsewhere.example.com/default-port"),
    ],
)
def test_redirects(client, echoes, path, status, location):
    answer = client.get(f"http://redirect:8088{path}")
    assert (answer.status, answer.header("location")) == (status, location)
    assert echoes.received(answer.case) == []


@behaviour(
    routes(
        "direct",
        """
- match: [{uri: {exact: /bytes}}]
  directResponse: {status: 418, body: {bytes: "aGVsbG8="}}
- directResponse: {status: 503, body: {string: "closed for today"}}
  headers: {response: {set: {retry-after: "60"}}}
""",
    )
)
def test_answers_that_the_mesh_gives_itself(client, echoes):
    answer = client.get("http://direct/")
    assert (answer.status, answer.body, answer.header("retry-after")) == (503, "closed for today", "60")
    assert (client.get("http://direct/bytes").status, client.get("http://direct/bytes").body) == (418, "hello")
    assert echoes.received(answer.case) == []


HEADERS = routes(
    "header-changes",
    """
- headers:
    request: {set: {x-own: replaced, x-new: "made"}, add: {x-add: second}, remove: [x-remove]}
    response: {set: {x-answer-set: "yes"}, add: {x-answer: also}, remove: [content-type]}
  route:
    - destination: {host: header-changes}
      headers:
        request: {set: {x-destination: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"}}
        response: {set: {x-cluster: chosen}}
""",
)


@behaviour(HEADERS)
def test_header_changes_are_seen_by_the_receiver(client):
    sent = [("x-own", "mine"), ("x-add", "first"), ("x-remove", "please")]
    seen = client.get("http://header-changes/", headers=sent).seen
    assert (seen.header("x-own"), seen.header("x-new")) == ("replaced", "made")
    assert seen.header("x-add").replace(" ", "") == "first,second"
    assert not seen.has("x-remove")
    assert seen.header("x-destination") == client.address


@behaviour(HEADERS)
def test_header_changes_are_seen_by_the_client(client):
    answer = client.get("http://header-changes/", headers={"x-set": "x-answer=own"})
    assert answer.header("x-answer-set") == "yes"
    assert answer.header("x-cluster") == "chosen"
    assert answer.header("x-answer") == "own,also"
    assert not answer.has("content-type")


CORS = routes(
    "cors",
    """
- corsPolicy:
    allowOrigins: [{exact: "https://shop.example.com"}, {regex: "https://[a-z]+[.]example[.]org"}]
    allowMethods: [GET, PUT]
    allowHeaders: [x-token, content-type]
    exposeHeaders: [x-total]
    maxAge: 2h
    allowCredentials: true
  route: [{destination: {host: cors}}]
""",
)


@behaviour(CORS)
@pytest.mark.parametrize("origin", ["https://shop.example.com", "https://any.example.org"])
def test_a_preflight_of_an_allowed_origin_is_answered_by_the_mesh(client, echoes, origin):
    asked = {"origin": origin, "access-control-request-method": "PUT"}
    answer = client.get("http://cors/thing", method="OPTIONS", headers=asked)
    assert answer.status == 200
    assert answer.header("access-control-allow-origin") == origin
    assert answer.header("access-control-allow-methods") == "GET,PUT"
    assert answer.header("access-control-allow-headers") == "x-token,content-type"
    assert answer.header("access-control-max-age") == "7200"
    assert answer.header("access-control-allow-credentials") == "true"
    assert echoes.received(answer.case) == []


@behaviour(CORS)
def test_a_request_of_an_allowed_origin_gets_its_headers_and_another_origin_none(client):
    allowed = client.get("http://cors/", headers={"origin": "https://shop.example.com"})
    assert (allowed.status, allowed.header("access-control-expose-headers")) == (200, "x-total")
    assert allowed.header("access-control-allow-origin") == "https://shop.example.com"
    assert not client.get("http://cors/", headers={"origin": "https://evil.test"}).has("access-control-allow-origin")
