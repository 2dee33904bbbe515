"""Restrictions become policies that let nobody in whom nginx kept out."""

from migrations import documents, ingress, migrated, verdicts

OFFICE = {"whitelist-source-range": "10.0.0.0/8"}


def rules(*given: dict) -> list[tuple[dict, dict]]:
    """The source and the operation of each denial."""
    policies = documents(migrated(*given), "AuthorizationPolicy").values()
    return [
        (r["from"][0]["source"], r.get("to", [{"operation": {}}])[0]["operation"])
        for policy in policies
        for r in policy["spec"]["rules"]
    ]


def test_a_restricted_path_is_closed_to_others_and_longer_open_paths_are_spared() -> None:
    found = rules(
        ingress(OFFICE, paths={"/admin": "Prefix"}),
        ingress(name="open", paths={"/": "Prefix", "/admin/public": "Prefix", "/admin/x": "Exact"}),
    )
    assert found == [
        (
            {"notRemoteIpBlocks": ["10.0.0.0/8"]},
            {
                "hosts": ["shop.example", "shop.example:*"],
                "paths": ["/admin", "/admin/*"],
                "notPaths": ["/admin/public", "/admin/public/*", "/admin/x"],
            },
        )
    ]


def test_a_whole_host_needs_no_paths_and_denied_addresses_are_told_apart() -> None:
    asked = {**OFFICE, "denylist-source-range": "10.9.0.0/16"}
    hosts = {"hosts": ["shop.example", "shop.example:*"]}
    assert rules(ingress(asked)) == [
        ({"remoteIpBlocks": ["10.9.0.0/16"]}, hosts),
        ({"notRemoteIpBlocks": ["10.0.0.0/8"]}, hosts),
    ]


def test_one_restricted_expression_restricts_its_host() -> None:
    given = (
        ingress({**OFFICE, "use-regex": "true"}, paths={"/admin/.*": "ImplementationSpecific"}),
        ingress(name="open", paths={"/": "Prefix"}),
    )
    ((_, operation),) = rules(*given)
    assert operation == {"hosts": ["shop.example", "shop.example:*"]}
    assert verdicts(migrated(*given))["access"] == "approximated"


def test_a_wildcard_is_restricted_by_the_hosts_that_it_is_not_so_that_no_port_escapes() -> None:
    ((_, operation),) = rules(
        ingress(OFFICE, host="*.a.example"),
        ingress(name="other", host="b.example"),
        ingress(name="below", host="one.a.example"),
        ingress(name="star", host="*.c.example"),
        ingress(name="deeper", host="*.x.a.example"),
    )
    assert operation == {"notHosts": ["*.c.example", "b.example", "b.example:*", "one.a.example", "one.a.example:*"]}


def test_every_host_is_restricted_but_those_that_are_named() -> None:
    anyone = ingress(OFFICE)
    del anyone["spec"]["rules"][0]["host"]
    assert rules(anyone) == [({"notRemoteIpBlocks": ["10.0.0.0/8"]}, {})]
    ((_, operation),) = rules(anyone, ingress(name="named"))
    assert operation == {"notHosts": ["shop.example", "shop.example:*"]}


def test_external_authentication_is_a_provider_of_the_mesh() -> None:
    asked = {"auth-url": "http://auth.sec.svc.cluster.local:8080/check", "auth-response-headers": "X-User, X-Mail"}
    done = migrated(ingress(asked, paths={"/in": "Prefix"}))
    (provider,) = done.mesh["extensionProviders"]
    assert provider["name"] == "auth.sec.svc.cluster.local-8080-check"
    http = provider["envoyExtAuthzHttp"]
    assert (http["service"], http["port"], http["pathPrefix"]) == ("auth.sec.svc.cluster.local", 8080, "/check")
    assert http["headersToUpstreamOnAllow"] == ["X-User", "X-Mail"]
    (policy,) = documents(done, "AuthorizationPolicy").values()
    assert policy["spec"]["action"] == "CUSTOM"
    assert policy["spec"]["provider"] == {"name": provider["name"]}
    assert policy["spec"]["rules"][0]["to"][0]["operation"]["paths"] == ["/in", "/in/*"]
    assert policy["spec"]["targetRefs"][0]["name"] == "ingress"
