"""The Gateway API held against what the reference control plane served and wrote to the objects' statuses."""

import json
import random
from typing import Any

import golden
import msgspec
import pytest
from recorded_statuses import plain, recorded_statuses

from mizzen.api.decode import decode_object
from mizzen.api.kinds import kind_named
from mizzen.compile import snapshot
from mizzen.incremental import Engine
from mizzen.model.convert.status.objects import statuses

CASES = [*golden.case_names("gateway-api"), "security/authz-target-refs"]


def printed_statuses(db: Engine) -> dict[str, Any]:
    """The statuses as `compile -o status` prints them."""
    return {
        f"{kind_named(key.kind).kind}/{key.namespace}/{key.name}": json.loads(msgspec.json.encode(found))
        for key, found in statuses(db)
    }


@pytest.mark.parametrize("name", CASES)
def test_every_status_equals_the_recording(name: str) -> None:
    """Type, status, reason and message of each condition, attached routes, supported kinds and addresses."""
    case = golden.load_case(name)
    want = {key: plain(status) for key, status in recorded_statuses(case).items()}
    got = {key: plain(status) for key, status in printed_statuses(golden.engine_of(case)).items()}
    assert want
    assert got == want


def outcome(db: Engine, case: golden.Case, dialect: str) -> dict[str, Any]:
    """Versions of all that every proxy is told, and all statuses."""
    told = {
        name: {
            f"{kind}/{r.name}": r.version
            for kind, found in snapshot.everything(db, golden.proxy_of(case, name, dialect)).items()
            for r in found
        }
        for name in case.look_from
    }
    return {"told": told, "statuses": printed_statuses(db)}


@pytest.mark.parametrize("dialect", ["istio", "envoy"])
@pytest.mark.parametrize("name", CASES)
def test_incremental_equals_from_scratch_in_any_order(name: str, dialect: str) -> None:
    """Objects come one by one in random order, some go and come again; in between proxies and statuses are asked."""
    case = golden.load_case(name)
    want = outcome(golden.engine_of(case), case, dialect)
    rng = random.Random(name + dialect)
    documents = list(case.objects)
    rng.shuffle(documents)
    own = [d for d in documents if "gateway" in d["apiVersion"]]
    db = golden.engine_of(case._replace(objects=()))
    for i, document in enumerate(documents):
        golden.set_object(db, document)
        if rng.random() < 0.1:
            outcome(db, case, dialect)
        if rng.random() < 0.15:
            gone = rng.choice(documents[: i + 1])
            golden.remove_object(db, gone)
            if rng.random() < 0.5:
                outcome(db, case, dialect)
            golden.set_object(db, gone)
        if rng.random() < 0.1:
            db.collect()
    for gone in own:
        golden.remove_object(db, gone)
        outcome(db, case, dialect)
        golden.set_object(db, gone)
    assert outcome(db, case, dialect) == want


def test_a_changed_rule_reruns_only_what_holds_it() -> None:
    """A weight of one HTTPRoute: its conversion and its hosts' VirtualServices, nothing of other routes."""
    case = golden.load_case("gateway-api/allowed-routes")
    db = golden.engine_of(case)
    outcome(db, case, "istio")
    before = dict(db.runs_by_query)
    document = next(d for d in case.objects if d["metadata"]["name"] == "h-port")
    rule = {"backendRefs": [{"name": "search", "port": 8080}, {"name": "cart", "port": 8080}]}
    golden.set_object(db, {**document, "spec": {**document["spec"], "rules": [rule]}})
    decoded = decode_object(document)
    assert decoded.key is not None
    outcome(db, case, "istio")
    runs = {name: count - before.get(name, 0) for name, count in db.runs_by_query.items()}
    assert runs["convert_rules"] == 1
    assert runs["route_head"] == 1
    assert runs["generated_virtual_service"] == 1
    for untouched in ("attachments", "facts", "generated_gateways", "gateway_status", "gateway_servers"):
        assert runs.get(untouched, 0) == 0, untouched
