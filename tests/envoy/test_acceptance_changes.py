"""Real Envoys take every change: one Envoy is led from case to case, as its objects come, change and go.

What was accepted once may be refused as an update, and what goes away must leave nothing behind that is in the way of
what comes. Between two cases only the differences are sent, by the same server and in the same order as in a mesh.
"""

from typing import Any

import acceptance_control
import acceptance_envoy
import acceptance_verdict
import golden
import pytest

from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.incremental import Key
from mizzen.model.mesh import MESH

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]

BASE = golden.load_case("base")


def cases_of(proxy: str) -> list[golden.Case]:
    """The cases that this proxy can live through: those that look from it as it is in the base."""
    found = (golden.load_case(name) for name in golden.case_names())
    return [case for case in found if proxy in case.look_from and case.proxies[proxy] == BASE.proxies[proxy]]


def inputs_of(case: golden.Case) -> dict[Key, Any]:
    decoded = (decode_object(document) for document in case.objects)
    objects = {found.key: found.object for found in decoded if found.key is not None and found.object is not None}
    return {MESH: merge_mesh_config(case.mesh)[0], **objects}


def changes_between(before: dict[Key, Any], after: dict[Key, Any]) -> dict[Key, Any]:
    gone = dict.fromkeys(before.keys() - after.keys())
    return gone | {key: value for key, value in after.items() if before.get(key) != value}


OF_NO_SERVICE = {
    "apiVersion": "networking.istio.io/v1alpha3",
    "kind": "EnvoyFilter",
    "metadata": {"name": "of-no-service", "namespace": "istio-system"},
    "spec": {
        "configPatches": [
            {
                "applyTo": "CLUSTER",
                "match": {"context": "SIDECAR_OUTBOUND"},
                "patch": {
                    "operation": "ADD",
                    "value": {
                        "name": "of-no-service",
                        "type": "EDS",
                        "edsClusterConfig": {"edsConfig": {"ads": {}, "resourceApiVersion": "V3"}},
                    },
                },
            }
        ]
    },
}


async def test_an_envoy_does_not_wait_for_the_endpoints_of_no_service() -> None:
    db = golden.engine_of(BASE)
    identity = golden.node_of(BASE.proxies["front"])
    identity["metadata"]["MIZZEN_DIALECT"] = "envoy"
    found = decode_object(OF_NO_SERVICE)
    with acceptance_envoy.room() as root:
        async with (
            acceptance_control.serve(db, root / acceptance_envoy.XDS, root / acceptance_envoy.SDS) as control,
            acceptance_envoy.running(root, identity, BASE.objects) as envoy,
        ):
            assert not await acceptance_verdict.faults_now(envoy, control)
            await control.change({found.key: found.object})
            assert not await acceptance_verdict.faults_now(envoy, control)
            stats = await envoy.stats()
            assert stats["cluster_manager.warming_clusters"] == 0
            assert "of-no-service::default_priority" in await envoy.get("/clusters")


@pytest.mark.parametrize("name", ["front", "cart", "payments", "ledger", "ingress", "egress"])
async def test_an_envoy_takes_every_change_from_case_to_case(name: str) -> None:
    cases = [*cases_of(name), BASE]
    assert len(cases) > 1
    db = golden.engine_of(BASE)
    identity = golden.node_of(BASE.proxies[name])
    identity["metadata"]["MIZZEN_DIALECT"] = "envoy"
    objects = [document for case in cases for document in case.objects]
    held = inputs_of(BASE)
    faults: dict[str, list[str]] = {}
    with acceptance_envoy.room() as root:
        async with (
            acceptance_control.serve(db, root / acceptance_envoy.XDS, root / acceptance_envoy.SDS) as control,
            acceptance_envoy.running(root, identity, objects) as envoy,
        ):
            faults["at first"] = await acceptance_verdict.faults_now(envoy, control)
            for case in cases:
                wanted = inputs_of(case)
                said = len(envoy.log)
                await control.change(changes_between(held, wanted))
                held = wanted
                faults[case.name] = await acceptance_verdict.faults_now(envoy, control, said=said)
    assert not any(faults.values()), "\n".join(f"{case}: {fault}" for case, found in faults.items() for fault in found)
