"""Which DestinationRule a client applies: its own namespace's before the service's before the root's, however spelled."""

import pytest

from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.networking.destination_rule import DestinationRule, DestinationRuleSpec
from mizzen.incremental import Engine
from mizzen.model.destination_rules import destination_rule

HOST, ROOT = "web.shop.svc.cluster.local", "istio-system"


def put(db: Engine, namespace: str, name: str, host: str, *export_to: str) -> Key:
    key = Key("DestinationRule", namespace, name)
    meta = ObjectMeta(name=name, namespace=namespace)
    db.set(key, DestinationRule(metadata=meta, spec=DestinationRuleSpec(host=host, export_to=export_to)))
    return key


def applied(db: Engine, client: str, host: str = HOST, service: str = "shop") -> str | None:
    rule = destination_rule(db, client, host, service, ())
    return "/".join(rule.keys[0][1:]) if rule is not None else None


def test_the_nearest_rule_is_found_when_it_comes_and_the_next_when_it_goes() -> None:
    db = Engine()
    assert (applied(db, "cafe"), applied(db, "shop")) == (None, None)
    put(db, ROOT, "all", "*.local")
    assert (applied(db, "cafe"), applied(db, "shop")) == ("istio-system/all", "istio-system/all")
    put(db, "shop", "web", HOST)
    assert (applied(db, "cafe"), applied(db, "shop")) == ("shop/web", "shop/web")
    own = put(db, "cafe", "mine", HOST)
    assert (applied(db, "cafe"), applied(db, "shop")) == ("cafe/mine", "shop/web")
    db.remove(own)
    assert applied(db, "cafe") == "shop/web"


@pytest.mark.parametrize(
    ("namespace", "written", "host"),
    [
        ("shop", "web", HOST),
        ("shop", "WEB", HOST),
        ("cafe", HOST, HOST),
        ("cafe", "*.shop.svc.cluster.local", HOST),
        ("cafe", "*", "api.example.com"),
        ("cafe", "api.example.com", "api.example.com"),
        ("cafe", "10.0.0.1", "10.0.0.1"),
        ("cafe", "fd00::1", "fd00::1"),
        ("cafe", "*.example.com", "*.example.com"),
    ],
)
def test_a_clients_own_rule_is_found_in_every_spelling(namespace: str, written: str, host: str) -> None:
    db = Engine()
    assert applied(db, namespace, host) is None
    put(db, namespace, "own", written)
    assert applied(db, namespace, host) == f"{namespace}/own"


@pytest.mark.parametrize("written", ["web", "web.cafe.svc.cluster.local", "*.example.com", "shop.svc.cluster.local"])
def test_a_rule_for_other_hosts_is_nobodys(written: str) -> None:
    db = Engine()
    put(db, "cafe", "own", written)
    assert applied(db, "cafe") is None


def test_a_short_name_means_its_own_namespace_whoever_declares_the_host() -> None:
    db = Engine()
    put(db, "shop", "own", "web")
    assert applied(db, "shop", service="elsewhere") == "shop/own"
    assert applied(db, "shop", service="") == "shop/own"


def test_a_rule_is_for_those_to_whom_it_is_exported() -> None:
    db = Engine()
    put(db, ROOT, "all", HOST)
    put(db, "shop", "some", HOST, "cafe")
    assert [applied(db, client) for client in ("cafe", "bank", "shop")] == ["shop/some", ROOT + "/all", ROOT + "/all"]
    put(db, "shop", "some", HOST, ".")
    assert [applied(db, client) for client in ("cafe", "bank", "shop")] == [ROOT + "/all", ROOT + "/all", "shop/some"]


def test_clients_of_other_namespaces_share_all_but_what_is_their_own() -> None:
    db = Engine()
    put(db, "shop", "web", HOST)
    applied(db, "cafe")
    runs = dict(db.runs_by_query)
    applied(db, "bank")
    assert {name for name, count in db.runs_by_query.items() if count > runs.get(name, 0)} <= {"_may_cover"}
