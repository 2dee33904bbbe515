"""Patches of route configurations, virtual hosts and routes."""

from typing import Any

from envoy_patches import add_filter, ask, ids, message, read, resource_of, write_patch

from mizzen.compile import resource
from mizzen.compile.patches import routes
from mizzen.compile.patches.routes import Client
from mizzen.compile.resource import ResourceSet
from mizzen.incremental import Engine

SIDECAR = Client(kind="sidecar", dialect="istio")


def _configuration() -> Any:
    return message(
        "route",
        name="80",
        virtualHosts=[
            {"name": "a", "domains": ["a.b"], "routes": [_route("one"), _route("two")]},
            {"name": "b", "domains": ["b.b"], "routes": [_route("one")]},
        ],
    )


def _route(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "match": {"prefix": "/"}, "route": {"cluster": "c"}, **fields}


def _patched(*written: dict) -> tuple[bool, Any]:
    found = _configuration()
    return routes.patch_configuration(found, read(*written)), found


def _host(operation: str, value: dict | None, **match: Any) -> dict:
    return write_patch("VIRTUAL_HOST", operation, value, routeConfiguration={"vhost": match} if match else {})


def _of_route(operation: str, value: dict | None, host: str = "", route: dict | None = None) -> dict:
    vhost: dict[str, Any] = {"name": host} if route is None else {"name": host, "route": route}
    return write_patch("HTTP_ROUTE", operation, value, routeConfiguration={"vhost": vhost})


def _names(configuration: Any) -> dict[str, list[str]]:
    return {host.name: [r.name for r in host.routes] for host in configuration.virtual_hosts}


def test_the_configuration_is_merged():
    changed, found = _patched(write_patch("ROUTE_CONFIGURATION", "MERGE", {"internalOnlyHeaders": ["x"]}))
    assert changed
    assert found.internal_only_headers == ["x"]


def test_only_a_merge_is_for_a_configuration():
    assert not _patched(write_patch("ROUTE_CONFIGURATION", "REMOVE"))[0]


def test_virtual_hosts_are_merged_replaced_removed_and_added_last():
    _, found = _patched(
        _host("ADD", {"name": "c", "domains": ["c.b"]}),
        _host("MERGE", {"domains": ["a.c"]}, name="a"),
        _host("REMOVE", None, domainName="b.b"),
    )
    assert _names(found) == {"a": ["one", "two"], "c": []}
    assert found.virtual_hosts[0].domains == ["a.b", "a.c"]
    _, found = _patched(_host("REPLACE", {"name": "z", "domains": ["z"]}, name="a"))
    assert _names(found) == {"z": [], "b": ["one"]}


def test_routes_are_merged_and_removed():
    _, found = _patched(
        _of_route("MERGE", {"route": {"timeout": "3s"}}, route={"name": "one"}),
        _of_route("REMOVE", None, "a", {"name": "two"}),
    )
    assert _names(found) == {"a": ["one"], "b": ["one"]}
    assert [host.routes[0].route.timeout.seconds for host in found.virtual_hosts] == [3, 3]


def test_routes_are_added_and_inserted_in_their_host():
    new = [_route(name) for name in ("last", "before", "after", "first")]
    _, found = _patched(
        _of_route("ADD", new[0], "a"),
        _of_route("INSERT_BEFORE", new[1], "a", {"name": "two"}),
        _of_route("INSERT_AFTER", new[2], "a", {"name": "one"}),
        _of_route("INSERT_FIRST", new[3], "a", {"name": "two"}),
    )
    assert _names(found) == {"a": ["first", "one", "after", "before", "two", "last"], "b": ["one"]}


def test_without_a_route_to_look_for_an_insertion_is_first_or_last():
    _, found = _patched(
        _of_route("INSERT_BEFORE", _route("x"), "b"),
        _of_route("INSERT_AFTER", _route("y"), "b"),
        _of_route("INSERT_FIRST", _route("z"), "b"),
    )
    assert _names(found)["b"] == ["z", "x", "one", "y"]


def test_an_insertion_beside_a_route_that_is_not_there_does_nothing():
    for operation in ("INSERT_FIRST", "INSERT_BEFORE", "INSERT_AFTER"):
        assert not _patched(_of_route(operation, _route("x"), "a", {"name": "none"}))[0]


def test_a_removed_route_is_nothing_to_insert_beside():
    _, found = _patched(
        _of_route("REMOVE", None, "a", {"name": "two"}), _of_route("INSERT_AFTER", _route("x"), "a", {"name": "two"})
    )
    assert _names(found)["a"] == ["one"]


def test_routes_are_not_replaced():
    assert not _patched(_of_route("REPLACE", _route("x"), "a", {"name": "one"}))[0]


def test_a_configuration_that_no_patch_means_is_the_same_resource():
    db = Engine()
    add_filter(
        db,
        write_patch("VIRTUAL_HOST", "REMOVE", routeConfiguration={"name": "81"}),
        write_patch("VIRTUAL_HOST", "ADD", {"name": "x"}, context="GATEWAY"),
        write_patch("VIRTUAL_HOST", "REMOVE", routeConfiguration={"vhost": {"name": "no such"}}),
    )
    pristine = resource_of("route", name="80", virtualHosts=[{"name": "a", "domains": ["*"]}])
    found, problems = ask(db, routes.routes, ResourceSet(resource.ROUTE, [pristine]), ids(3), SIDECAR)
    assert found.get("80") is pristine
    assert not problems


def test_the_part_of_a_gateway_is_its_own():
    db = Engine()
    add_filter(
        db,
        write_patch("VIRTUAL_HOST", "REMOVE", context="GATEWAY", routeConfiguration={"portNumber": 80}),
        write_patch("VIRTUAL_HOST", "ADD", {"name": "x"}, context="SIDECAR_OUTBOUND"),
    )
    pristine = ResourceSet(resource.ROUTE, [resource_of("route", name="http.8080", virtualHosts=[{"name": "a"}])])
    client = Client(kind="router", dialect="istio", served_ports=((8080, (80,)),))
    found = routes.routes(db, pristine, ids(2), client).get("http.8080")
    assert found is not None
    assert _names(found.message()) == {}


def test_a_host_whose_domain_is_taken_is_left_out_for_upstream_envoy_alone():
    db = Engine()
    add_filter(
        db,
        write_patch("VIRTUAL_HOST", "ADD", {"name": "x", "domains": ["A.b"]}),
        write_patch("VIRTUAL_HOST", "ADD", {"name": "y", "domains": ["y"]}),
    )
    pristine = ResourceSet(
        resource.ROUTE, [resource_of("route", name="80", virtualHosts=[{"name": "a", "domains": ["a.b"]}])]
    )
    upstream, problems = ask(db, routes.routes, pristine, ids(2), Client(kind="sidecar", dialect="envoy"))
    assert _names(next(iter(upstream)).message()) == {"a": [], "y": []}
    assert [str(p) for p in problems] == [
        "EnvoyFilter shop/f: spec.configPatches[0].patch: left out, for Envoy would refuse the outcome: "
        "the domain A.b is in a and in x"
    ]
    assert _names(next(iter(routes.routes(db, pristine, ids(2), SIDECAR))).message()).keys() == {
        "a",
        "x",
        "y",
    }
