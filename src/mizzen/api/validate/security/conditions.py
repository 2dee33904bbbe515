"""Conditions of an AuthorizationPolicy: the attributes of `when`, and values that a rule may name."""

from collections.abc import Iterable, Sequence

from mizzen.api.message import names
from mizzen.api.policy import Condition
from mizzen.api.validate.faults import Faults, at, error
from mizzen.api.validate.values.addresses import is_cidr, is_ip

_FREE = names(
    "source.namespace source.serviceAccount source.principal source.trustDomain request.auth.principal "
    "request.auth.audiences request.auth.presenter connection.sni"
)
_ADDRESSES = ("source.ip", "remote.ip", "destination.ip")
_MAPS = ("request.headers", "request.auth.claims", "experimental.envoy.filters.")
_REMOVED = ("destination.name", "destination.user")


def check_condition(condition: Condition, path: str) -> Faults:
    """An attribute and the values that it must or must not have."""
    key = condition.key
    if not key:
        yield error(f"{path}.key", "`key` must not be empty")
    elif not condition.values and not condition.not_values:
        yield error(path, f"at least one of `values` or `notValues` must be set for key {key}")
    else:
        for field, word, values in (
            ("values", "value", condition.values),
            ("notValues", "notValue", condition.not_values),
        ):
            fault = _attribute_fault(key, values)
            yield from at(f"{path}.{field}", fault and f"invalid `{word}` for `key` {key}: {fault}")


def _attribute_fault(key: str, values: Sequence[str]) -> str | None:
    """What is wrong with an attribute or its values; an attribute of no use is wrong whatever its values."""
    if key in _ADDRESSES:
        return first_fault(map(ip_block_fault, values))
    if key == "destination.port":
        return first_fault(map(policy_port_fault, values))
    if key.startswith(_MAPS):
        name, bracket, inside = key.partition("[")
        well_formed = name and bracket and inside.endswith("]") and len(inside) > 1
        return None if well_formed else f"bad key ({key}): should have format a[b]"
    if key in _FREE:
        return None
    if key == "destination.namespace":
        return f"attribute {key} is replaced by the metadata.namespace"
    if key.startswith("destination.labels"):
        return f"attribute {key} is replaced by the workload selector"
    if key in _REMOVED:
        return f"deprecated attribute {key}: only supported in v1alpha1"
    return f"unknown attribute: {key}"


def first_fault(faults: Iterable[str | None]) -> str | None:
    """The first that is one."""
    return next((fault for fault in faults if fault is not None), None)


def ip_block_fault(block: str) -> str | None:
    """What is wrong with an address or a range of them."""
    if "/" in block:
        return None if is_cidr(block) else f"bad CIDR range ({block}): invalid CIDR address: {block}"
    return None if is_ip(block) else f"bad IP address ({block})"


def policy_port_fault(port: str) -> str | None:
    """What is wrong with a port written as text; 0 passes, as in the reference."""
    digits = port.isascii() and port.isdigit()
    return None if digits and int(port[:10]) <= 65535 else f"bad port ({port}): not a number from 0 to 65535"
