"""Hosts and paths: who wins, in which order, and in which kind of object."""

import pathlib

import pytest
import yaml
from migrations import documents, faults, ingress, migrated, objects, only, verdicts

from mizzen.migrate.expressions import path_pattern, rewrite_pattern
from mizzen.migrate.ingress import Options, migrate
from mizzen.migrate.writing.documents import Target

SAMPLES = pathlib.Path(__file__).parents[2] / "envoy" / "samples" / "ingress_nginx.yaml"


def conditions(spec: dict) -> list[tuple[str, str]]:
    """The paths of an HTTPRoute or VirtualService, in order."""
    if "rules" in spec:
        return [(m["path"]["type"], m["path"]["value"]) for r in spec["rules"] for m in r["matches"]]
    return [next(iter(r["match"][0]["uri"].items())) for r in spec["http"]]


def test_what_is_written_is_valid() -> None:
    done = migrated(SAMPLES.read_text())
    assert len(done.documents) > 40
    assert faults(done) == []


def test_it_is_the_same_in_any_order_and_changes_nothing() -> None:
    given = objects(SAMPLES.read_text())
    before = repr(given)
    assert migrate(dict(reversed(given.items()))) == migrate(given)
    assert repr(given) == before


def test_a_host_of_exact_paths_and_elements_becomes_a_route() -> None:
    done = migrated(ingress(paths={"/a": "Prefix", "/a/b": "Exact", "/": "ImplementationSpecific", "/c/": "Prefix"}))
    assert documents(done, "VirtualService") == {}
    assert conditions(only(done, "HTTPRoute")) == [
        ("Exact", "/a/b"),
        ("Exact", "/c"),
        ("PathPrefix", "/c"),
        ("PathPrefix", "/a"),
        ("PathPrefix", "/"),
    ]


def test_prefixes_of_texts_need_a_virtual_service_that_tries_as_nginx_does() -> None:
    paths = {"/img": "ImplementationSpecific", "/img/x": "Exact", "/imgs": "Prefix", "/": "Prefix"}
    done = migrated(ingress(paths=paths))
    assert documents(done, "HTTPRoute") == {}
    assert conditions(only(done, "VirtualService")) == [
        ("exact", "/img/x"),
        ("exact", "/imgs"),
        ("prefix", "/imgs/"),
        ("prefix", "/img"),
        ("prefix", "/"),
    ]


def test_one_rewritten_path_makes_all_paths_of_its_host_expressions() -> None:
    done = migrated(
        ingress({"rewrite-target": "/$2"}, paths={"/a(/|$)(.*)": "ImplementationSpecific"}),
        ingress(name="beside", paths={"/": "Prefix", "/whole": "Exact"}),
        ingress(name="else", host="else.example"),
    )
    found = documents(done, "VirtualService")["istio-ingress/ingress-shop-example"]["spec"]
    assert conditions(found) == [
        ("regex", "(?i)/a(/|$)(.*).*"),
        ("regex", "(?i)/whole.*"),
        ("regex", "(?i)/.*"),
    ]
    assert found["http"][0]["rewrite"] == {
        "uriRegexRewrite": {"match": "(?i)^/a(/|$)(.*).*$", "rewrite": "/\\2"},
    }
    assert found["gateways"] == ["istio-ingress/ingress-shop-example"]
    assert list(documents(done, "HTTPRoute")) == ["web/else.example"]


@pytest.mark.parametrize("path", ["/(?!x).*", "/(a)\\1", "/(?<=a)b", "/(unclosed"])
def test_an_expression_that_envoy_cannot_read_is_left_out_and_told(path: str) -> None:
    done = migrated(ingress({"use-regex": "true"}, paths={path: "ImplementationSpecific", "/": "Prefix"}))
    assert verdicts(done)[f"path {path}"] == "impossible"
    assert conditions(only(done, "VirtualService")) == [("regex", "(?i)/.*")]


def test_alternatives_are_anchored_as_nginx_anchors_them() -> None:
    assert path_pattern("/a(b|c)") == "(?i)/a(b|c).*"
    assert path_pattern("/a|/b") == "(?i).*?(?:^/a|/b).*"
    assert path_pattern("/[|]x") == "(?i)/[|]x.*"
    assert rewrite_pattern("/a|/b(.*)") == "(?i)^.*?(?:^/a|/b(.*)).*$"


def test_groups_that_are_not_there_are_empty() -> None:
    done = migrated(ingress({"rewrite-target": "/x/$1/$7\\d"}, paths={"/a/(.*)": "ImplementationSpecific"}))
    (rule,) = only(done, "VirtualService")["http"]
    assert rule["rewrite"]["uriRegexRewrite"]["rewrite"] == "/x/\\1/\\\\d"


def test_the_older_of_two_ingresses_has_a_path_and_the_other_is_told() -> None:
    old, new = ingress(name="old", service="old", day=1), ingress(name="new", service="new", day=2)
    done = migrated(new, old)
    (rule,) = only(done, "HTTPRoute")["rules"]
    assert rule["backendRefs"] == [{"name": "old", "port": 80}]
    (finding,) = done.findings
    assert (finding.ingress.name, finding.verdict) == ("new", "impossible")


def test_routes_stand_beside_their_services() -> None:
    done = migrated(ingress(), ingress(name="b", namespace="b", paths={"/b": "Prefix"}, service="other"))
    assert list(documents(done, "HTTPRoute")) == ["b/shop.example", "web/shop.example"]


def test_only_nginxs_ingresses_are_migrated() -> None:
    classes = """
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: edge}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: example.com/other}
"""
    edge, nginx, none = ingress(name="edge", host="a.b"), ingress(name="nginx"), ingress(name="none", host="c.d")
    edge["spec"]["ingressClassName"] = "edge"
    del none["spec"]["ingressClassName"]
    done = migrated(edge, nginx, none, classes)
    assert list(documents(done, "HTTPRoute")) == ["web/a.b", "web/c.d"]
    assert [key.name for key in done.skipped] == ["nginx"]
    mine = ingress(name="mine")
    mine["metadata"]["annotations"]["kubernetes.io/ingress.class"] = "mine"
    assert migrated(mine).documents == ()
    assert migrated(mine, options=Options(classes=("mine",))).documents


def test_ports_by_name_are_looked_up() -> None:
    named = ingress()
    named["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["port"] = {"name": "web"}
    service = "{apiVersion: v1, kind: Service, metadata: {name: front, namespace: web}, spec: {ports: [{name: web, port: 8080}]}}"
    (rule,) = only(migrated(named, service), "HTTPRoute")["rules"]
    assert rule["backendRefs"] == [{"name": "front", "port": 8080}]
    done = migrated(named)
    assert verdicts(done) == {"backend front": "impossible"}
    assert "backendRefs" not in only(done, "HTTPRoute")["rules"][0]


def test_an_ingress_with_a_default_backend_alone_is_for_every_host() -> None:
    alone = ingress()
    alone["spec"] = {"defaultBackend": {"service": {"name": "front", "port": {"number": 80}}}}
    found = only(migrated(alone), "HTTPRoute")
    assert "hostnames" not in found
    assert conditions(found) == [("PathPrefix", "/")]


def test_many_rules_make_several_routes_and_those_of_one_path_stay_together() -> None:
    paths = {f"/p{i:02}": "Prefix" for i in range(20)}
    canary = ingress({"canary": "true", "canary-by-header": "X", "canary-by-cookie": "c", "canary-weight": "5"},
                     name="canary", service="canary", paths={"/p04": "Prefix"})  # fmt: skip
    done = migrated(ingress(paths=paths), canary)
    routes = documents(done, "HTTPRoute")
    assert list(routes) == ["web/shop.example", "web/shop.example-2"]
    assert all(len(route["spec"]["rules"]) <= 16 for route in routes.values())
    holding = [route for route in routes.values() if ("PathPrefix", "/p04") in conditions(route["spec"])]
    assert len(holding) == 1


# -- canaries -----------------------------------------------------------------------------------------------------


def test_a_canary_is_asked_for_by_header_then_cookie_then_drawn() -> None:
    canary = ingress(
        {"canary": "true", "canary-by-header": "X-C", "canary-by-cookie": "c", "canary-weight": "30"},
        name="canary",
        service="canary",
    )
    rules = only(migrated(ingress(), canary), "HTTPRoute")["rules"]
    assert [(r["matches"][0].get("headers", [{}])[0].get("value"), r["backendRefs"][0]["name"]) for r in rules] == [
        ("always", "canary"),
        ("never", "front"),
        (r"(?:.*;\s*)?c=always(?:\s*;.*)?", "canary"),
        (r"(?:.*;\s*)?c=never(?:\s*;.*)?", "front"),
        (None, "front"),
    ]
    assert rules[-1]["backendRefs"] == [
        {"name": "front", "port": 80, "weight": 70},
        {"name": "canary", "port": 80, "weight": 30},
    ]


@pytest.mark.parametrize(("weight", "expected"), [("0", ["front"]), ("100", ["canary"]), ("250", ["canary"])])
def test_a_share_of_nothing_or_all_leaves_one_backend(weight: str, expected: list[str]) -> None:
    canary = ingress({"canary": "true", "canary-weight": weight}, name="canary", service="canary")
    (rule,) = only(migrated(ingress(), canary), "HTTPRoute")["rules"]
    assert [reference["name"] for reference in rule["backendRefs"]] == expected


def test_a_canary_without_a_main_ingress_is_told() -> None:
    done = migrated(ingress({"canary": "true"}, paths={"/x": "Prefix"}, name="canary"), ingress())
    assert verdicts(done)["path /x"] == "impossible"


def test_a_canary_takes_everything_else_from_its_main_ingress() -> None:
    canary = ingress({"canary": "true", "canary-weight": "10", "app-root": "/x", "load-balance": "ewma"}, name="canary")
    done = migrated(ingress(), canary)
    found = verdicts(done)
    assert (found["app-root"], found["load-balance"]) == ("exact", "impossible")
    assert ("Exact", "/") not in conditions(only(done, "HTTPRoute"))


# -- ways in ------------------------------------------------------------------------------------------------------


def test_a_certificate_opens_a_listener_and_is_granted() -> None:
    done = migrated(ingress(secret="tls"))
    gateway = only(done, "KubernetesGateway")
    (plain, secure) = gateway["listeners"]
    assert (plain["name"], secure["hostname"]) == ("http", "shop.example")
    assert secure["tls"] == {"mode": "Terminate", "certificateRefs": [{"name": "tls", "namespace": "web"}]}
    assert only(done, "ReferenceGrant")["to"] == [{"group": "", "kind": "Secret", "name": "tls"}]
    routes = documents(done, "HTTPRoute")
    (redirect,) = routes["web/shop.example"]["spec"]["rules"]
    assert redirect["filters"][0]["requestRedirect"] == {"scheme": "https", "statusCode": 308}
    assert routes["web/shop.example-https"]["spec"]["parentRefs"][0]["sectionName"] == "https-shop.example"


def test_beside_the_gateway_nothing_is_granted_and_without_redirect_one_route_serves_both() -> None:
    target = Target(name="edge", namespace="web")
    done = migrated(ingress({"ssl-redirect": "false"}, secret="tls"), options=Options(target=target))
    assert documents(done, "ReferenceGrant") == {}
    parents = only(done, "HTTPRoute")["parentRefs"]
    assert [(p["name"], p["sectionName"]) for p in parents] == [("edge", "http"), ("edge", "https-shop.example")]


def test_too_many_certificates_for_a_gateway_stand_in_listener_sets() -> None:
    many = [ingress(name=f"n{i}", host=f"h{i:03}.example", secret=f"s{i}") for i in range(70)]
    done = migrated(*many)
    gateway = only(done, "KubernetesGateway")
    assert [listener["name"] for listener in gateway["listeners"]] == ["http"]
    assert gateway["allowedListeners"] == {"namespaces": {"from": "All"}}
    sets = documents(done, "ListenerSet")
    assert [len(one["spec"]["listeners"]) for one in sets.values()] == [64, 6]
    parent = documents(done, "HTTPRoute")["web/h069.example-https"]["spec"]["parentRefs"][0]
    assert (parent["kind"], parent["name"], parent["sectionName"]) == ("ListenerSet", "ingress-2", "https-h069.example")
    assert documents(done, "ReferenceGrant") == {}


def test_certificates_of_virtual_services_are_copied_beside_the_proxies_or_told_of() -> None:
    secret = (
        "{apiVersion: v1, kind: Secret, metadata: {name: tls, namespace: web}, stringData: {tls.crt: a, tls.key: b}}"
    )
    given = ingress({"use-regex": "true"}, secret="tls")
    done = migrated(given, secret)
    copies = [d for d in done.documents if d["kind"] == "Secret"]
    assert [(d["metadata"]["name"], sorted(d["data"])) for d in copies] == [("web-tls", ["tls.crt", "tls.key"])]
    servers = documents(done, "Gateway")["istio-ingress/ingress-shop-example-https"]["spec"]["servers"]
    assert servers[0]["tls"] == {"mode": "SIMPLE", "credentialName": "web-tls"}
    (config,) = [d for d in done.documents if d["kind"] == "ConfigMap"]
    assert "port: 443" in config["data"]["service"]
    assert verdicts(migrated(given))["spec.tls"] == "approximated"


def test_tls_that_is_let_through_has_a_route_of_its_own() -> None:
    done = migrated(ingress({"ssl-passthrough": "true", "rewrite-target": "/x"}))
    assert only(done, "TLSRoute")["hostnames"] == ["shop.example"]
    listener = only(done, "KubernetesGateway")["listeners"][1]
    assert (listener["protocol"], listener["tls"]["mode"]) == ("TLS", "Passthrough")
    assert documents(done, "HTTPRoute") == {}


def test_clients_certificates_are_checked_by_the_listener() -> None:
    ca = "{apiVersion: v1, kind: Secret, metadata: {name: ca, namespace: web}, stringData: {ca.crt: roots, other: x}}"
    done = migrated(ingress({"auth-tls-secret": "web/ca", "auth-tls-verify-client": "optional"}, secret="tls"), ca)
    listener = only(done, "KubernetesGateway")["listeners"][1]
    assert listener["tls"]["options"] == {"gateway.istio.io/tls-terminate-mode": "OPTIONAL_MUTUAL"}
    (copy,) = [d for d in done.documents if d["kind"] == "Secret"]
    assert (copy["metadata"], sorted(copy["data"])) == ({"name": "tls-cacert", "namespace": "web"}, ["ca.crt"])


def test_a_host_and_its_www_lead_to_one_unless_both_are_served() -> None:
    asked = {"from-to-www-redirect": "true"}
    done = migrated(ingress(asked, secret="tls"))
    moved = documents(done, "HTTPRoute")["web/www.shop.example"]["spec"]
    assert moved["rules"][0]["filters"][0]["requestRedirect"] == {"statusCode": 308, "hostname": "shop.example"}
    assert len(moved["parentRefs"]) == 2
    both = migrated(ingress(asked), ingress(name="www", host="www.shop.example"))
    assert len(documents(both, "HTTPRoute")["web/www.shop.example"]["spec"]["rules"][0]["backendRefs"]) == 1


def test_aliases_share_the_routes_of_their_host() -> None:
    found = only(migrated(ingress({"server-alias": "a.example,b.example"})), "HTTPRoute")
    assert found["hostnames"] == ["shop.example", "a.example", "b.example"]
    assert yaml.safe_dump(found)
