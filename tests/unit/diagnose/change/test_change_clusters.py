from typing import Any

from mizzen.diagnose.change import clusters, endpoints

NAME = "outbound|80|v1|web.shop"


def told(old: dict[str, Any] | None, new: dict[str, Any] | None, name: str = NAME) -> list[str]:
    return [str(change) for change in clusters.compare(name, old, new)]


def mutual(name: str = "default") -> dict[str, Any]:
    secret = {"name": name, "sdsConfig": {}}
    return {"typedConfig": {"commonTlsContext": {"tlsCertificateSdsSecretConfigs": [secret]}}}


def test_clusters_come_and_subsets_go() -> None:
    assert told(None, {}) == ["cluster web.shop:80 subset v1 added"]
    assert told({}, None) == ["cluster web.shop:80 subset v1: subset gone"]
    assert told({}, None, "outbound|80||web.shop") == ["cluster web.shop:80 removed"]
    twin = "outbound_.80_.v1_.web.shop"
    assert told({}, None, twin) == [f"cluster {twin} removed"], "not to be taken for the cluster of which it is a twin"


def test_policies_are_told_by_their_words() -> None:
    old = {"lbPolicy": "LEAST_REQUEST", "connectTimeout": "10s"}
    new = {"lbPolicy": "RANDOM", "connectTimeout": "2s", "outlierDetection": {"consecutive5xx": 5}}

    assert told(old, new) == [
        "cluster web.shop:80 subset v1: connect timeout 10s → 2s",
        "cluster web.shop:80 subset v1: load balancing LEAST_REQUEST → RANDOM",
        "cluster web.shop:80 subset v1: outlier detection added",
    ]


def test_modes_of_tls_are_told() -> None:
    plain: dict[str, Any] = {}
    auto = {"transportSocketMatches": [{"transportSocket": mutual()}, {"transportSocket": {"name": "raw"}}]}

    assert clusters.tls_mode(plain) == "plain"
    assert clusters.tls_mode(auto) == "mesh mTLS where the endpoint has it"
    assert clusters.tls_mode({"transportSocket": mutual()}) == "mesh mTLS"
    assert clusters.tls_mode({"transportSocket": mutual("own")}) == "MUTUAL"
    assert (
        clusters.tls_mode({"transportSocket": {"typedConfig": {"commonTlsContext": {"alpnProtocols": []}}}}) == "SIMPLE"
    )
    assert told(auto, plain) == ["cluster web.shop:80 subset v1: TLS mesh mTLS where the endpoint has it → plain"]


def test_what_only_says_where_it_comes_from_is_told_where_nothing_else_is() -> None:
    one, other = {"metadata": {"a": 1}}, {"metadata": {"a": 2}}

    assert told(one, other) == ["cluster web.shop:80 subset v1: metadata.a: 1 → 2"]
    assert told({**one, "lbPolicy": "RANDOM"}, {**other, "lbPolicy": "MAGLEV"}) == [
        "cluster web.shop:80 subset v1: load balancing RANDOM → MAGLEV"
    ]


def assignment(*hosts: str, **more: Any) -> dict[str, Any]:
    listed = [
        {"endpoint": {"address": {"socketAddress": {"address": host, "portValue": 80}}}, **more} for host in hosts
    ]
    return {"endpoints": [{"lbEndpoints": listed}]}


def told_endpoints(old: dict[str, Any] | None, new: dict[str, Any] | None) -> list[str]:
    return [str(change) for change in endpoints.compare(NAME, old, new)]


def test_endpoints_come_and_go() -> None:
    assert told_endpoints(assignment("10.0.0.1"), assignment("10.0.0.2")) == [
        "endpoint web.shop:80 subset v1: 10.0.0.2:80 added",
        "endpoint web.shop:80 subset v1: 10.0.0.1:80 removed",
    ]


def test_many_endpoints_are_counted() -> None:
    many = assignment(*(f"10.0.0.{number}" for number in range(9)))

    assert told_endpoints(many, None) == ["endpoint web.shop:80 subset v1: 9 endpoints removed"]


def test_health_and_weight_are_told() -> None:
    old, new = assignment("10.0.0.1"), assignment("10.0.0.1", healthStatus="UNHEALTHY", loadBalancingWeight=5)

    assert told_endpoints(old, new) == [
        "endpoint web.shop:80 subset v1: 10.0.0.1:80 with another health",
        "endpoint web.shop:80 subset v1: 10.0.0.1:80 with another weight",
    ]


def test_an_assignment_of_nobody_says_so() -> None:
    assert told_endpoints(None, {}) == ["endpoint web.shop:80 subset v1: no endpoints"]
