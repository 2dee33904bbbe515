"""Names that clusters and listeners ask for, wherever they stand."""

from mizzen.diagnose.references import References, find_references


def test_every_kind_of_name_is_found() -> None:
    sds = {"name": "kubernetes://edge", "sdsConfig": {"ads": {}}}
    clusters = [
        {"name": "static", "type": "STATIC"},
        {"name": "a", "type": "EDS", "edsClusterConfig": {"serviceName": "a-service"}},
        {"name": "b", "type": "EDS"},
        {"name": "t", "transportSocket": {"typedConfig": {"validationContextSdsSecretConfig": sds}}},
    ]
    manager = {
        "rds": {"routeConfigName": "80"},
        "httpFilters": [{"name": "plugin", "configDiscovery": {}}, {"name": "router", "typedConfig": {}}],
    }
    tls = {"commonTlsContext": {"tlsCertificateSdsSecretConfigs": [{"name": "default", "sdsConfig": {"ads": {}}}, sds]}}
    listeners = [
        {"defaultFilterChain": {"filters": [{"typedConfig": manager}], "transportSocket": {"typedConfig": tls}}}
    ]

    assert find_references(clusters, listeners) == References(
        routes=("80",),
        endpoints=("a-service", "b"),
        extensions=("plugin",),
        secrets=("default", "kubernetes://edge"),
    )


def test_an_inline_route_asks_for_nothing() -> None:
    assert find_references([], [{"routeConfig": {"name": "80"}}]) == References()
