"""Which virtual host an authority means, and how it is answered."""

import pytest

from mizzen import protos
from mizzen.compile.filters.alpn import ROUTE_FILTER, build_route_override
from mizzen.compile.routes import on_demand
from mizzen.compile.routes.virtual_hosts import VirtualHost


def host(name: str, *domains: str) -> VirtualHost:
    return VirtualHost(name=name, domains=domains, routes=())


HOSTS = (
    host("exact", "cart.shop", "CART", "10.0.0.1", "[2001:db8::1]", "2001:db8::2"),
    host("second", "cart.shop", "other"),
    host("ending", "*.shop"),
    host("longer", "*.deep.shop"),
    host("late in the alphabet", "*.zoo.shop"),
    host("dash", "*-a.shop"),
    host("beginning", "api.*"),
    host("first of all", "*"),
    host("all", "*"),
)


@pytest.mark.parametrize(
    ("authority", "expected"),
    [
        ("cart.shop", "exact"),
        ("cart.shop:8080", "exact"),
        ("cart", "exact"),
        ("10.0.0.1:80", "exact"),
        ("[2001:db8::1]", "exact"),
        ("[2001:db8::1]:80", "exact"),
        ("2001:db8::2", "exact"),
        ("other", "second"),
        ("till.shop", "ending"),
        ("x.deep.shop", "longer"),
        ("x.zoo.shop", "late in the alphabet"),
        ("x-a.shop", "dash"),
        (".shop", "all"),
        ("api.example.com", "beginning"),
        ("api.shop", "ending"),
        ("nobody", "all"),
        ("cart.shop:http", "all"),
    ],
)
def test_hosts_are_found_as_envoy_finds_them(authority: str, expected: str) -> None:
    found = on_demand.build_directory(HOSTS, ignores_port=True).find(authority)
    assert found is not None
    assert found.name == expected


def test_the_port_counts_where_hosts_of_all_ports_meet() -> None:
    directory = on_demand.build_directory((host("a", "a:80"), host("all", "*")), ignores_port=False)
    assert [directory.find(authority).name for authority in ("a:80", "a")] == ["a", "all"]


def test_an_answer_is_known_by_what_was_asked_for() -> None:
    found = protos.to_json(on_demand.encode_answer("80/cart:80", HOSTS[0]).message())
    assert (found["name"], found["domains"]) == ("80/cart:80", ["cart:80"])


def test_routes_say_what_is_spoken_upstream_unless_they_do_so_already() -> None:
    """A filter has run for the request that a host is fetched for before the host says that it should not."""
    route = {"match": {"prefix": "/"}, "route": {"cluster": "c"}}
    off = {ROUTE_FILTER: build_route_override(None)}
    message = protos.package("envoy.config.route.v3").VirtualHost(
        name="a", domains=["a"], routes=[route, {**route, "typed_per_filter_config": off}]
    )
    found = VirtualHost(name="a", domains=("a",), routes=(), encoded=protos.encode(message))
    routes = on_demand.encode_answer("80/a", found).message().routes
    wanted = [build_route_override(""), build_route_override(None)]
    assert [each.typed_per_filter_config[ROUTE_FILTER] for each in routes] == wanted


@pytest.mark.parametrize("name", ["80/*", "80/*.shop", "80/api.*", "80/a\r"])
def test_an_authority_that_is_no_domain_takes_no_requests_from_others(name: str) -> None:
    found = protos.to_json(on_demand.encode_answer(name, HOSTS[-1]).message())
    assert found["name"] == name
    assert found["domains"][0].endswith("._.invalid")
    assert "routes" not in found


def test_where_nobody_takes_what_is_left_the_wait_ends() -> None:
    assert "routes" not in protos.to_json(on_demand.encode_answer("80/nobody", None).message())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("80/cart.shop", ("80", "cart.shop")),
        ("80/a/b", ("80", "a/b")),
        ("80", ("80", "")),
        ("http_proxy/cart", ("http_proxy/cart", "")),
        ("²/cart", ("²/cart", "")),
        ("cart.shop:80", ("cart.shop:80", "")),
    ],
)
def test_only_ports_have_hosts_on_demand(name: str, expected: tuple[str, str]) -> None:
    assert on_demand.parse_name(name) == expected


def domains_of(*held: str, ignores_port: bool = True) -> dict[str, list[str]]:
    directory = on_demand.build_directory(HOSTS, ignores_port=ignores_port)
    others = on_demand.encode_others("80", directory, frozenset(held))
    return {each.name: protos.to_json(each.message())["domains"] for each in others}


def test_all_other_hosts_have_the_domains_that_nobody_holds() -> None:
    found = domains_of("cart.shop", "cart:80", "other", "other:80")
    assert found["80/OTHER exact"][:3] == ["cart.shop:80", "cart", "10.0.0.1"]
    assert found["80/OTHER ending"] == ["*.shop", "*.shop:80"]
    assert (found["80/OTHER beginning"], found["80/OTHER all"]) == (["api.*"], ["*"])
    assert "80/OTHER second" not in found


def test_no_domain_is_had_twice() -> None:
    every = [domain for domains in domains_of().values() for domain in domains]
    assert len(every) == len(set(every))
    assert "cart.shop:80" not in [d for each in domains_of(ignores_port=False).values() for d in each]
