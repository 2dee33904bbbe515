"""HTTP matches: which route takes a request, told by a header that the route adds and the receiver sees."""

import pytest
from traffic_manifests import behaviour, matching, routes

TAKEN, LEFT = "matched", "default"


@behaviour(matching("uri-exact", "uri: {exact: /one}"))
def test_uri_exact(client):
    assert client.get("http://uri-exact/one").route == TAKEN
    assert client.get("http://uri-exact/one?q=1").route == TAKEN
    assert client.get("http://uri-exact/one/more").route == LEFT


@behaviour(matching("uri-prefix", "uri: {prefix: /one}"))
def test_uri_prefix(client):
    assert client.get("http://uri-prefix/one").route == TAKEN
    assert client.get("http://uri-prefix/one/more").route == TAKEN
    assert client.get("http://uri-prefix/ones").route == TAKEN
    assert client.get("http://uri-prefix/two/one").route == LEFT


@behaviour(matching("uri-regex", 'uri: {regex: "/item/[0-9]+"}'))
def test_uri_regex_matches_the_whole_path(client):
    assert client.get("http://uri-regex/item/42").route == TAKEN
    assert client.get("http://uri-regex/item/42?q=x").route == TAKEN
    assert client.get("http://uri-regex/item/42x").route == LEFT
    assert client.get("http://uri-regex/an/item/42").route == LEFT


@behaviour(matching("uri-case", "ignoreUriCase: true, uri: {exact: /One}"))
def test_uri_without_case(client):
    assert client.get("http://uri-case/oNE").route == TAKEN


@behaviour(
    matching(
        "headers",
        'headers: {x-exact: {exact: "a"}, x-prefix: {prefix: "b"}, x-regex: {regex: "c+"}, x-present: {}}',
    )
)
def test_headers_must_all_match(client):
    every = {"x-exact": "a", "x-prefix": "bee", "x-regex": "ccc", "x-present": "whatever"}
    assert client.get("http://headers/", headers=every).route == TAKEN
    for name, wrong in {"x-exact": "aa", "x-prefix": "a", "x-regex": "ccd"}.items():
        assert client.get("http://headers/", headers={**every, name: wrong}).route == LEFT, name
    del every["x-present"]
    assert client.get("http://headers/", headers=every).route == LEFT


@behaviour(matching("without", 'withoutHeaders: {x-debug: {exact: "on"}}'))
def test_headers_that_must_be_missing(client):
    assert client.get("http://without/").route == TAKEN
    assert client.get("http://without/", headers={"x-debug": "off"}).route == TAKEN
    assert client.get("http://without/", headers={"x-debug": "on"}).route == LEFT


@behaviour(matching("query", 'queryParams: {id: {regex: "[0-9]+"}, mode: {exact: "slow"}}'))
def test_query_parameters(client):
    assert client.get("http://query/?mode=slow&id=7").route == TAKEN
    assert client.get("http://query/?mode=slow&id=x").route == LEFT
    assert client.get("http://query/?id=7").route == LEFT


@behaviour(matching("method", "method: {exact: POST}"))
def test_method(client):
    posted = client.get("http://method/", method="POST", body="hello")
    assert (posted.route, posted.seen.body) == (TAKEN, "hello")
    assert client.get("http://method/").route == LEFT


@behaviour(matching("authority", "authority: {exact: authority.traffic}"))
def test_authority(client):
    assert client.get("http://authority.traffic/").route == TAKEN
    assert client.get("http://authority/").route == LEFT


@behaviour(matching("scheme", "scheme: {exact: http}"), matching("other-scheme", "scheme: {exact: https}"))
def test_scheme(client):
    assert client.get("http://scheme/").route == TAKEN
    assert client.get("http://other-scheme/").route == LEFT


@behaviour(matching("labels", "sourceLabels: {team: red}"))
def test_labels_of_the_caller(client, visitor):
    assert client.get("http://labels/").route == TAKEN
    assert visitor.get("http://labels/").route == LEFT


@behaviour(
    matching("from-namespace", "sourceNamespace: traffic"), matching("from-elsewhere", "sourceNamespace: elsewhere")
)
def test_namespace_of_the_caller(client):
    assert client.get("http://from-namespace/").route == TAKEN
    assert client.get("http://from-elsewhere/").route == LEFT


PORTS = """
kind: Service
metadata: {name: ports}
spec:
  selector: {app: echo}
  ports:
    - {name: http, port: 80, targetPort: 8080}
    - {name: http-other, port: 81, targetPort: 8080}
---
kind: VirtualService
metadata: {name: ports}
spec:
  hosts: [ports]
  http:
    - match: [{port: 81}]
      headers: {request: {set: {x-route: matched}}}
      route: [{destination: {host: ports, port: {number: 80}}}]
    - headers: {request: {set: {x-route: default}}}
      route: [{destination: {host: ports, port: {number: 80}}}]
"""


@behaviour(PORTS)
def test_port(client):
    assert client.get("http://ports:81/").route == TAKEN
    assert client.get("http://ports/").route == LEFT


@behaviour(
    routes(
        "first-wins",
        """
- match: [{uri: {prefix: /a}, method: {exact: PUT}}, {headers: {x-late: {exact: "yes"}}}]
  headers: {request: {set: {x-route: either}}}
  route: [{destination: {host: first-wins}}]
- match: [{uri: {prefix: /a}}]
  headers: {request: {set: {x-route: second}}}
  route: [{destination: {host: first-wins}}]
- headers: {request: {set: {x-route: last}}}
  route: [{destination: {host: first-wins}}]
""",
    )
)
@pytest.mark.parametrize(
    ("method", "path", "headers", "route"),
    [
        ("PUT", "/a", {}, "either"),
        ("GET", "/b", {"x-late": "yes"}, "either"),
        ("GET", "/a", {"x-late": "yes"}, "either"),
        ("GET", "/a", {}, "second"),
        ("PUT", "/b", {}, "last"),
    ],
)
def test_conditions_of_one_match_are_all_needed_and_the_first_route_wins(client, method, path, headers, route):
    assert client.get(f"http://first-wins{path}", method=method, headers=headers).route == route
