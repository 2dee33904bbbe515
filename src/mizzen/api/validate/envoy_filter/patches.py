"""Patches of an EnvoyFilter: what is missing, and what a patch may match by what it applies to.

As in the reference the first error of a patch ends its check, and patches of waypoints are not looked at.
"""

from collections.abc import Iterator

from mizzen.api.networking.envoy_filter import (
    EnvoyConfigObjectMatch,
    EnvoyConfigObjectPatch,
    EnvoyFilter,
    FilterMatch,
    ListenerMatch,
    ProxyMatch,
)
from mizzen.api.validate.envoy_filter.names import CONNECTION_MANAGER, CURRENT_NAMES, OLD_CONNECTION_MANAGER
from mizzen.api.validate.envoy_filter.values import check_value
from mizzen.api.validate.faults import Fault, Faults, error, quote, warning
from mizzen.api.validate.values.selectors import check_attachment, check_workload_selector
from mizzen.api.validate.values.texts import LONGEST_REGEX, syntax_fault

_SUBJECT = "Envoy filter"
_INTERNAL = (
    "EnvoyFilter exposes internal implementation details that may change at any time. Prefer other APIs if possible, "
    "and exercise extreme caution, especially around upgrades."
)
_LISTENER_CLASS = ("LISTENER", "FILTER_CHAIN", "NETWORK_FILTER", "HTTP_FILTER")
_ROUTE_CLASS = ("ROUTE_CONFIGURATION", "VIRTUAL_HOST", "HTTP_ROUTE")


def check_envoy_filter(envoy_filter: EnvoyFilter, path: str) -> Faults:
    """All rules of an EnvoyFilter."""
    spec = envoy_filter.spec
    yield from check_workload_selector(spec.workload_selector, f"{path}.workloadSelector", _SUBJECT)
    yield from check_attachment(spec.workload_selector, None, spec.target_refs, path)
    for index, patch in enumerate(spec.config_patches):
        yield from _up_to_error(_check_patch(patch, f"{path}.configPatches[{index}]"))
    yield warning("", _INTERNAL)


def _up_to_error(faults: Faults) -> Iterator[Fault]:
    for fault in faults:
        yield fault
        if fault.level == "error":
            return


def _check_patch(patch: EnvoyConfigObjectPatch, path: str) -> Faults:
    match = patch.match or EnvoyConfigObjectMatch()
    if match.context == "WAYPOINT":
        return
    if patch.apply_to == "INVALID":
        yield _refused(f"{path}.applyTo", "missing applyTo")
    if patch.patch is None:
        yield _refused(f"{path}.patch", "missing patch")
        return
    if patch.patch.operation == "INVALID":
        yield _refused(f"{path}.patch.operation", "missing patch operation")
    if patch.patch.operation != "REMOVE" and patch.patch.value is None:
        yield _refused(f"{path}.patch.value", "missing patch value for non-remove operation")
    if match.proxy is not None:
        yield from _check_version(match.proxy, f"{path}.match.proxy.proxyVersion")
    yield from _check_match(patch, match, f"{path}.match")
    if patch.patch.value is not None:
        yield from check_value(patch.apply_to, patch.patch.value, f"{path}.patch.value")


def _refused(path: str, message: str) -> Fault:
    return error(path, f"{_SUBJECT}: {message}")


def _check_version(proxy: ProxyMatch, path: str) -> Faults:
    if len(proxy.proxy_version) > LONGEST_REGEX:
        effect = f"proxyVersion match exceeds {LONGEST_REGEX} characters and will be ignored"
        yield warning(path, f"{_SUBJECT}: {effect}")
        return
    fault = syntax_fault(proxy.proxy_version) if proxy.proxy_version else None
    if fault is not None:
        yield _refused(path, f"invalid regex for proxy version, [{fault}]")


def _check_match(patch: EnvoyConfigObjectPatch, match: EnvoyConfigObjectMatch, path: str) -> Faults:
    objects = (match.listener, match.route_configuration, match.cluster, match.waypoint)
    if all(each is None for each in objects):
        return
    if patch.apply_to in _LISTENER_CLASS:
        if match.listener is None:
            what = "applyTo for listener class objects cannot have non listener match"
            yield _refused(path, what)
        else:
            yield from _check_listener(patch.apply_to, match.listener, f"{path}.listener")
    elif patch.apply_to in _ROUTE_CLASS and match.route_configuration is None:
        what = "applyTo for http route class objects cannot have non route configuration match"
        yield _refused(path, what)
    elif patch.apply_to == "CLUSTER" and match.cluster is None:
        yield _refused(path, "applyTo for cluster class objects cannot have non cluster match")


def _check_listener(apply_to: str, listener: ListenerMatch, path: str) -> Faults:
    if listener.filter_chain is None or listener.filter_chain.filter is None:
        return
    wanted, here = listener.filter_chain.filter, f"{path}.filterChain.filter"
    if apply_to in ("LISTENER", "FILTER_CHAIN"):
        yield warning(here, f"{_SUBJECT}: filter match has no effect when used with {apply_to}")
    if not wanted.name:
        yield _refused(f"{here}.name", "filter match has no name to match on")
    yield from _check_sub_filter(apply_to, wanted, f"{here}.subFilter")
    for name in (wanted.name, wanted.sub_filter.name if wanted.sub_filter is not None else ""):
        if name in CURRENT_NAMES:
            advice = f"use {quote(CURRENT_NAMES[name])} instead"
            yield warning(here, f"using deprecated filter name {quote(name)}; {advice}")


def _check_sub_filter(apply_to: str, wanted: FilterMatch, path: str) -> Faults:
    if wanted.sub_filter is None:
        return
    if apply_to != "HTTP_FILTER":
        yield _refused(path, "subfilter match can be used with applyTo HTTP_FILTER only")
    if wanted.name not in (CONNECTION_MANAGER, OLD_CONNECTION_MANAGER):
        yield _refused(path, f"subfilter match requires filter match with {CONNECTION_MANAGER}")
    if not wanted.sub_filter.name:
        yield _refused(f"{path}.name", "subfilter match has no name to match on")
