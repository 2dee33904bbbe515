"""The policies that apply to the workloads of recorded cases are those whose rules were recorded for them."""

import re

import golden
import pytest

from mizzen.api.decode import decode_object
from mizzen.api.policy import AuthorizationPolicy
from mizzen.diagnose.authorization.evaluation import decide
from mizzen.diagnose.authorization.request import Request
from mizzen.diagnose.authorization.workload import Workload

CASES = [name for name in golden.case_names("security") if "/authz-" in name]
_RULE = re.compile(r"ns\[([^\]]+)\]-policy\[([^\]]+)\]-rule\[\d+\]")
_GATEWAY = "gateway.networking.k8s.io/gateway-name"


def workload_of(case: golden.Case, name: str) -> Workload:
    proxy = golden.proxy_of(case, name)
    labels = dict(proxy.labels)
    return Workload(
        namespace=proxy.namespace,
        labels=labels,
        targets=frozenset({("gateway.networking.k8s.io", "Gateway", labels[_GATEWAY])} if _GATEWAY in labels else ()),
        root_namespace=case.mesh.get("rootNamespace", "istio-system"),
    )


@pytest.mark.parametrize("name", CASES)
def test_the_policies_that_apply_are_the_recorded_ones(name: str) -> None:
    case = golden.load_case(name)
    decoded = (decode_object(document).object for document in case.objects)
    policies = [one for one in decoded if isinstance(one, AuthorizationPolicy)]
    found = set()
    for proxy in case.look_from:
        recorded = set(_RULE.findall(str(golden.expected(case, proxy)["listeners"])))
        applied = decide(policies, workload_of(case, proxy), Request()).applied
        assert {(key.namespace, key.name) for key in applied} == recorded, proxy
        found |= recorded
    assert found
