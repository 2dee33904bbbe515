"""The recorded cases through a real API server: proxies are told, and statuses say, what the reference's did.

One control plane follows the server from case to case, judges what is written as its webhook, and writes statuses.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import golden
import kube_bed
import kube_mesh_kinds
import pytest
import pytest_asyncio
from eventually import eventually, eventually_blocking
from golden_server import JSON_STORE, GoldenServer
from kube_accounts import make_account, token, until_granted
from kube_admission import Mesh, meshed
from kube_bed import ISSUER, Answer, Bed
from kube_objects import path_of
from kube_webhooks import validator
from recorded_findings import recorded_findings
from recorded_statuses import plain, recorded_statuses

from mizzen import settings
from mizzen.api.kinds import kind_of_api
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.api.meta import Key, Object
from mizzen.cli import analysis_live, analysis_run
from mizzen.model.mesh import MESH

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

CASES = ["base", *golden.case_names()]
WITH_STATUSES = [name for name in CASES if (golden.load_case(name).expected_dir / "status.json").exists()]
FEATURES = settings.Features(gateway_deployments=False, gateway_classes=False)
"""The recordings have no deployments but those that they were given."""
SYSTEM, WRITER = "istio-system", "writer"
BAD_SIDECAR = {
    "apiVersion": "networking.istio.io/v1",
    "kind": "Sidecar",
    "metadata": {"name": "bad", "namespace": SYSTEM},
    "spec": {"egress": [{"hosts": ["no"]}]},
}
REFUSED = {
    "security/authz-custom-grpc": {
        "AuthorizationPolicy pay/iso-trial": "only supports action ALLOW/DENY, found action CUSTOM",
    },
    "security/authz-dry-run": {
        "AuthorizationPolicy shop/real-deny-typo": "istio.io/dry-run with invalid value (yes please)",
        "AuthorizationPolicy shop/try-audit": "only supports action ALLOW/DENY, found action AUDIT",
    },
}
"""What admission says no to, by case; these were recorded without it, and are written without it here."""
NOT_RECORDED = {
    *(f"Namespace {name}" for name in ("default", "kube-node-lease", "kube-public", "kube-system")),
    "ValidatingWebhookConfiguration istio-validator-default",
}
"""What there is besides the cases."""
GONE = (
    "IST0101",
    "Error",
    "AuthorizationPolicy shop/who-namespaces",
    'Referenced namespace not found: "kube-*"',
)
"""A finding that this server gives no reason for: it has such namespaces."""
CONDITION = "IST0171"
"""Finds statuses, which follow later and are held against the recording by themselves."""


# -- the server and who follows it ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def golden_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A server with the mesh's kinds, whose own Service nobody in the mesh sees."""
    with kube_bed.running(tmp_path_factory.mktemp("golden"), JSON_STORE) as bed:
        kube_mesh_kinds.install(bed)
        eventually_blocking(lambda: hides_its_service(bed), 120)
        yield bed


def hides_its_service(bed: Bed) -> bool:
    hidden = {"metadata": {"annotations": {"networking.istio.io/exportTo": "~"}}}
    path = "/api/v1/namespaces/default/services/kubernetes"
    with contextlib.suppress(Answer):  # It is made some time after the server is ready.
        return bool(bed.call("PATCH", path, hidden, kind="application/merge-patch+json"))
    return False


@pytest.fixture(scope="module")
def server(golden_bed: Bed) -> GoldenServer:
    """Written to by an account that may do everything and is subject to admission."""
    make_account(golden_bed, SYSTEM, WRITER)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": WRITER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": SYSTEM, "name": WRITER}],
    }
    golden_bed.apply(path_of(binding, "clusterrolebindings"), binding)
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    until_granted(golden_bed, f"system:serviceaccount:{SYSTEM}:{WRITER}", [everything])
    return GoldenServer(golden_bed, token(golden_bed, SYSTEM, WRITER, ISSUER))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(golden_bed: Bed, server: GoldenServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mesh]:
    """A control plane, asked about all that is written but by the administrator."""
    async with meshed(golden_bed, tmp_path_factory.mktemp("plane"), features=FEATURES) as mesh:
        configuration = validator(mesh.url("/validate"))
        subject = {"name": "subject", "expression": "request.userInfo.username != 'administrator'"}
        configuration["webhooks"][0] |= {"objectSelector": {}, "matchConditions": [subject]}
        await mesh.validates(configuration)
        await mesh.until(lambda: server.refuses(BAD_SIDECAR))
        yield mesh


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CASES)
async def case(request: pytest.FixtureRequest, server: GoldenServer, mesh: Mesh) -> golden.Case:
    """A case that the server has and the control plane has followed."""
    found = golden.load_case(request.param)
    await asyncio.to_thread(server.hold, found)
    await eventually(lambda: has_followed(mesh, server, found), 120)
    return found


def has_followed(mesh: Mesh, server: GoldenServer, case: golden.Case) -> bool:
    """Whether the engine has what the server has: nothing older, nothing more."""
    cluster, db = mesh.plane.control_plane.cluster, mesh.plane.control_plane.engine
    assert cluster is not None
    kinds = {key.kind for key in (*server.revisions, *server.gone)}
    held = {key_of(kind, one): one for kind in kinds for one in cluster.source.of_kind(kind)}
    return (
        held.keys().isdisjoint(server.gone)
        and all(int(cluster.source.resource_version(key) or 0) >= at for key, at in server.revisions.items())
        and all(db.peek(key) is one for key, one in held.items())
        and {key for kind in kinds for key in db.keys(kind)} == held.keys()
        and db.peek(MESH) == merge_mesh_config(case.mesh)[0]
    )


def key_of(kind: str, found: Object) -> Key:
    return Key(kind, found.metadata.namespace, found.metadata.name)


# -- what comes of it -----------------------------------------------------------------------------------------------------


def expected(case: golden.Case, proxy: str, versions: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What is recorded, with the resource versions that the server has given to plugins."""
    want = golden.expected(case, proxy)
    for name, found in want["extensions"].items():
        owner = name.rpartition("/")[2].partition("~")[0]
        if owner in versions:
            text = json.dumps(found).replace('"RESOURCE_VERSION"', json.dumps(versions[owner]))
            want["extensions"][name] = json.loads(text)
    return want


async def test_proxies_are_told_what_is_recorded(mesh: Mesh, server: GoldenServer, case: golden.Case) -> None:
    db, versions = mesh.plane.control_plane.engine, server.versions_of("WasmPlugin")
    golden.assert_told(db, case, lambda case, proxy: expected(case, proxy, versions))


@pytest.mark.parametrize("case", WITH_STATUSES, indirect=True)
async def test_statuses_are_those_recorded(golden_bed: Bed, case: golden.Case) -> None:
    want = {name: plain(status) for name, status in recorded_statuses(case).items()}
    assert want
    got: dict[str, Any] = {}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(60):
            while got != want:
                await asyncio.sleep(0.2)
                got = await asyncio.to_thread(written, golden_bed, list(want))
    assert got == want


def written(bed: Bed, names: list[str]) -> dict[str, Any]:
    """The statuses that the server has, by `Kind/namespace/name`."""
    found = {}
    for name in names:
        kind, namespace, own = name.split("/")
        known = kind_of_api(kube_mesh_kinds.GATEWAY_API, kind)
        assert known is not None
        document = {"apiVersion": known.api_version, "metadata": {"name": own, "namespace": namespace}}
        found[name] = plain(bed.call("GET", path_of(document, known.plural)).get("status", {}))
    return found


async def test_findings_are_those_recorded(golden_bed: Bed, case: golden.Case) -> None:
    recorded = {row for row in recorded_findings(case.name) if row[0] != CONDITION and row != GONE}
    live = await asyncio.to_thread(analysis_live.read, str(golden_bed.kubeconfig()), "")
    assert live is not None
    answer = analysis_run.analyze(analysis_run.Asked(paths=(), live=live, all_namespaces=True))
    found = {
        (one.code, one.level, one.origin, one.message)
        for one, _ in answer.findings
        if not one.code.startswith("MZ") and one.code != CONDITION and one.origin not in NOT_RECORDED
    }
    assert found == recorded


async def test_admission_refuses_what_was_recorded_without_it_and_nothing_else(
    case: golden.Case, server: GoldenServer
) -> None:
    known = REFUSED.get(case.name, {})
    assert server.refused.keys() == known.keys()
    assert all(said in server.refused[name] for name, said in known.items())
