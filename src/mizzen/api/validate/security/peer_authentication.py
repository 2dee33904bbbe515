"""PeerAuthentication: exceptions by port need workloads whose ports they are."""

from mizzen.api.policy import PeerAuthentication
from mizzen.api.validate.faults import Faults, at, error
from mizzen.api.validate.values.addresses import port_fault
from mizzen.api.validate.values.selectors import check_match_labels


def check_peer_authentication(authentication: PeerAuthentication, path: str) -> Faults:
    """All rules of a PeerAuthentication."""
    spec = authentication.spec
    selects = spec.selector is not None and bool(spec.selector.match_labels)
    if spec.port_level_mtls and not selects:
        message = "mesh/namespace peer authentication cannot have port level mTLS"
        yield error(f"{path}.portLevelMtls", message)
    for port in spec.port_level_mtls:
        fault = port_fault(port)
        yield from at(f"{path}.portLevelMtls[{port}]", fault and "port must be in range 1..65535")
    yield from check_match_labels(spec.selector, f"{path}.selector")
