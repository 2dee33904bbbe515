"""The rights of an installation are those that control planes need: none is missing, and none is unused.

Every control plane of these tests runs with the installed rights; what they asked for stands in the audit logs. These
tests run when all others have, and only with them.
"""

import kube_rights
import pytest
from kube_rights import Asked, Right

APPLIED = {"deployments", "horizontalpodautoscalers", "poddisruptionbudgets", "serviceaccounts", "services"}
ABSENT = "gateway.networking.x-k8s.io"
NEVER_ASKED_FOR = {
    Right("certificates.k8s.io", "signers", "approve"): "looked for when a certificate is approved",
    Right("", "secrets", "patch", "cacerts"): "for roots that a person has put there and that are rotated",
}


def needs_no_request(right: Right, rights: set[Right]) -> bool:
    """Whether it is right that no log shows the use of a right."""
    if right.verb == "get" and right._replace(verb="list") in rights:
        return True  # Whoever may list sees no more by it.
    if right.verb == "create" and right.resource in APPLIED:
        return True  # An apply that creates is a patch, for which both are needed.
    if right.resource.endswith("/status") and right.group.endswith(".istio.io"):
        return True  # One writer for all kinds, which is shown for some of them.
    return right.group == ABSENT or right in NEVER_ASKED_FOR  # Kinds that the bed does not have.


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    return list(kube_rights.asked(tmp_path_factory.getbasetemp()))


def test_nothing_that_a_control_plane_needs_is_forbidden(requests: list[Asked]) -> None:
    assert len(requests) > 1000
    # A server that has just started knows no roles for a moment, and refuses what they grant, too.
    denied = {
        f"{one.right} in {one.namespace}" for one in requests if not one.allowed and not kube_rights.is_granted(one)
    }
    assert sorted(denied) == []


def test_no_right_is_granted_for_nothing(requests: list[Asked]) -> None:
    rights = kube_rights.installed_rights()
    unused = rights - kube_rights.used(rights, requests)
    assert sorted(str(right) for right in unused if not needs_no_request(right, rights)) == []
