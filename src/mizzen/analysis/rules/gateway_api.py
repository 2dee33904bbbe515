"""The Gateway API: selectors on managed gateways, and CRDs that are too old.

In: policies with selectors, pods, CustomResourceDefinitions. Out: IST0166, IST0176.
"""

import re
from typing import Any

from mizzen.analysis import catalogue, objects
from mizzen.analysis.cluster import CustomResourceDefinition
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.workloads import freeze

GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"
_BUNDLE_VERSION = "gateway.networking.k8s.io/bundle-version"
_LOWEST = {"grpcroutes": "1.1.0", "backendtlspolicies": "1.4.0", "tlsroutes": "1.5.0", "tcproutes": "1.6.0"}
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


@query
def check_selector(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A policy that selects the pods of a managed gateway by their labels."""
    found: Any = db.input(key)
    if found is None:
        return ()
    spec = found.spec
    if spec.selector is None or not spec.selector.match_labels or spec.target_ref is not None or spec.target_refs:
        return ()
    names = {
        name
        for pod in objects.matching_pods(db, key.namespace, freeze(spec.selector.match_labels))
        if (name := objects.pod_labels(db, pod).get(GATEWAY_NAME))
    }
    return tuple(report(catalogue.INEFFECTIVE_SELECTOR, key, name, path="spec.selector") for name in sorted(names))


@query
def check_definition(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A CRD below the version from which on Istio reads its kind."""
    found: CustomResourceDefinition | None = db.input(key)
    plural = key.name.removesuffix(".gateway.networking.k8s.io")
    if found is None or plural not in _LOWEST or plural == key.name:
        return ()
    written = found.metadata.annotations.get(_BUNDLE_VERSION, "")
    version, lowest = _parse(written), _parse(_LOWEST[plural])
    if version is None or lowest is None or version >= lowest:
        return ()
    message = catalogue.GATEWAY_API_CRD_VERSION_BELOW_MINIMUM
    return (report(message, key, key.name, written, f"v{_LOWEST[plural]}"),)


def _parse(text: str) -> tuple[int, ...] | None:
    match = _VERSION.match(text)
    return tuple(int(part or 0) for part in match.groups()) if match is not None else None
