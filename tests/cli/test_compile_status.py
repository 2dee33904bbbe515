"""`mizzen compile -o status`: the statuses of the Gateway API's objects, with no proxy to look from."""

import json
import pathlib
from typing import Any

import cli_runs
import pytest
from gateway_api import EDGE, gateway, route

CORPUS = pathlib.Path(__file__).parents[1] / "golden" / "corpus"


def statuses(*arguments: object) -> dict[str, Any]:
    result = cli_runs.run("compile", "-o", "status", *arguments)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}


@pytest.mark.parametrize("case", ["allowed-routes", "listener-sets", "backend-tls"])
def test_it_prints_what_the_reference_wrote(case: str) -> None:
    found = statuses("-f", CORPUS / "base.yaml", "-f", CORPUS / "gateway-api" / f"{case}.yaml")
    recorded = json.loads((CORPUS / "gateway-api" / f"{case}.expected" / "status.json").read_text())
    assert set(found) == set(recorded)
    for key, status in recorded.items():
        for field in ("parents", "ancestors"):
            assert [conditions(one) for one in found[key].get(field, ())] == [
                conditions(one) for one in status.get(field, ())
            ]
        assert "conditions" not in status or conditions(found[key]) == conditions(status)


def test_a_folder_without_such_objects_has_none() -> None:
    assert statuses("-f", CORPUS / "base.yaml") == {}


def test_an_object_that_an_api_server_would_refuse_has_none_and_is_told_of(tmp_path: pathlib.Path) -> None:
    bad = route("{backendRefs: [{name: front}]}", name="bad")
    (tmp_path / "objects.yaml").write_text(EDGE + gateway() + route(name="good") + bad)
    result = cli_runs.run("compile", "-o", "status", "-f", tmp_path)
    assert set(json.loads(result.stdout)) == {"Gateway/edge/gw", "HTTPRoute/web/good"}
    assert "HTTPRoute web/bad: spec.rules[0].backendRefs[0]" in result.stderr
    assert "Must have port for Service reference" in result.stderr


def test_the_printed_status_is_written_as_the_api_writes_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "objects.yaml").write_text(EDGE + gateway() + route())
    (parent,) = statuses("-f", tmp_path)["HTTPRoute/web/route"]["parents"]
    assert parent["controllerName"] == "istio.io/gateway-controller"
    assert parent["parentRef"] == {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": "gw",
        "namespace": "edge",
    }
    assert parent["conditions"][0] == {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "Route was valid",
    }
