"""Routes and domains in istioctl's words."""

import pytest

from mizzen.diagnose.tables import match


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({"prefix": "/a"}, "/a*"),
        ({"path": "/a"}, "/a"),
        ({"path_separated_prefix": "/a"}, "PathPrefix:/a"),
        ({"pathSeparatedPrefix": "/a"}, "PathPrefix:/a"),
        ({"safe_regex": {"regex": "/a.*"}}, "regex /a.*"),
        ({"connect_matcher": {}}, ""),
        ({"prefix": "/a", "headers": [{"name": "x"}]}, "/a*"),
    ],
)
def test_only_the_path_is_shown(condition: dict[str, object], text: str) -> None:
    assert match.describe_match({"match": condition}) == text


@pytest.mark.parametrize(
    ("domains", "text"),
    [
        ([], ""),
        (["*"], "*"),
        (["a:80"], "a:80"),
        (["a", "a:80"], "a"),
        (["cart.shop.svc.cluster.local", "cart.shop.svc", "cart.shop", "10.0.0.1"], "cart.shop, 10.0.0.1"),
        (["cart.shop.svc.cluster.local", "cart.shop.svc"], "cart.shop.svc.cluster.local, cart.shop.svc"),
        (["a", "b", "c", "d"], "a, b + 2 more..."),
        (["[fd00::1]", "[fd00::1]:8080", "x"], "[fd00::1], x"),
    ],
)
def test_domains_are_shortened(domains: list[str], text: str) -> None:
    assert match.describe_domains(domains) == text


def inline(domains: list[str], *routes: dict[str, object]) -> str:
    return match.describe_inline({"virtual_hosts": [{"domains": domains, "routes": list(routes)}]})


def test_a_configuration_that_sends_everything_to_one_cluster_is_that_cluster() -> None:
    everything = {"match": {"prefix": "/"}, "route": {"cluster": "inbound|80||"}}

    assert inline(["*"], everything) == "Cluster: inbound|80||"
    assert inline(["a"], everything) == "Inline Route: a /*"
    assert inline(["*"], {**everything, "route": {"cluster": "PassthroughCluster"}}) == "PassthroughCluster"
    assert inline(["*"], {"match": {"prefix": "/"}, "route": {"weighted_clusters": {}}}) == "Inline Route: /*"


def test_other_configurations_show_their_routes() -> None:
    routes = ({"match": {"path": "/a"}}, {"match": {"prefix": "/b"}})

    assert inline(["x", "y"], *routes) == "Inline Route: x/y /a, /b*"
