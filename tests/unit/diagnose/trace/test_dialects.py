"""Over recorded meshes: whatever is asked is answered, and both dialects come to the same verdict."""

import golden
import pytest

from mizzen.diagnose.trace import request, walk, world_objects
from mizzen.model import services

CASES = ("security/authz-operations", "networking/vs-match-matrix", "networking/sidecar-egress-hosts")
_ASKED = 8


@pytest.mark.parametrize("name", CASES)
def test_both_dialects_come_to_the_same_verdict(name):
    db = golden.engine_of(golden.load_case(name))
    mine, theirs = (world_objects.of_objects(db, dialect=dialect) for dialect in ("envoy", "istio"))
    ports = [
        (found.host, port.number)
        for namespace in services.namespaces(db)
        for found in services.namespace_services(db, namespace)
        for port in found.ports[:1]
    ]
    source = next(pod.reference for pod in mine.pods if pod.proxy == "sidecar")
    for host, port in ports[:_ASKED]:
        for scheme in ("http", "tcp", "https"):
            asked = request.Request(source=source, scheme=scheme, host=host, port=port)
            one, other = walk.trace(mine, asked), walk.trace(theirs, asked)
            for field in ("outcome", "status", "flag", "details", "link", "certain", "cause", "seen_by_client"):
                assert getattr(one, field) == getattr(other, field), (host, port, scheme, field)
