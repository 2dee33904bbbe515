"""EnvoyFilters: patches whose effect hangs on the order, and operations that Istio ignores.

In: EnvoyFilters. Out: IST0151 to IST0155. A filter is looked at up to the first patch without a `patch` block.
"""

from collections.abc import Iterator

from mizzen.analysis import catalogue, objects
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.api.networking.envoy_filter import EnvoyConfigObjectPatch, EnvoyFilter
from mizzen.incremental import Engine, query

_UNCHANGEABLE = ("ROUTE_CONFIGURATION", "HTTP_ROUTE")
_REPLACEABLE = ("NETWORK_FILTER", "HTTP_FILTER", "VIRTUAL_HOST")


@query
def check_patches(db: Engine, key: Key) -> tuple[Finding, ...]:
    """What is doubtful in the patches of a filter."""
    found: EnvoyFilter | None = db.input(key)
    return tuple(_check(db, key, found)) if found is not None else ()


def _check(db: Engine, key: Key, found: EnvoyFilter) -> Iterator[Finding]:
    versioned = set(_versioned_before(db, key))
    for index, each in enumerate(found.spec.config_patches):
        if each.patch is None:
            return
        path = f"spec.configPatches[{index}].patch.operation"
        operation = each.patch.operation
        if operation == "ADD" and each.apply_to in _UNCHANGEABLE:
            yield report(catalogue.ENVOY_FILTER_USES_ADD_OPERATION_INCORRECTLY, key, path=path)
        elif operation == "REMOVE" and each.apply_to in _UNCHANGEABLE:
            yield report(catalogue.ENVOY_FILTER_USES_REMOVE_OPERATION_INCORRECTLY, key, path=path)
        elif operation == "REPLACE" and each.apply_to not in _REPLACEABLE:
            yield report(catalogue.ENVOY_FILTER_USES_REPLACE_OPERATION_INCORRECTLY, key, path=path)
        elif operation in ("REMOVE", "REPLACE", "INSERT_BEFORE", "INSERT_AFTER") and found.spec.priority == 0:
            name = instance_name(each)
            message = catalogue.ENVOY_FILTER_USES_RELATIVE_OPERATION
            if name and name in versioned:
                message = catalogue.ENVOY_FILTER_USES_RELATIVE_OPERATION_WITH_PROXY_VERSION
            yield report(message, key, path=path)
        if _has_version(each):
            versioned.add(instance_name(each))


def instance_name(each: EnvoyConfigObjectPatch) -> str:
    """The name of what a patch makes, or else of the filter that it is about."""
    value = each.patch.value if each.patch is not None else None
    name = value.get("name") if value is not None else None
    if isinstance(name, str) and name:
        return name
    listener = each.match.listener if each.match is not None else None
    chain = listener.filter_chain if listener is not None else None
    return chain.filter.name if chain is not None and chain.filter is not None else ""


def _has_version(each: EnvoyConfigObjectPatch) -> bool:
    proxy = each.match.proxy if each.match is not None else None
    return proxy is not None and bool(proxy.proxy_version)


@query
def _versioned(db: Engine, key: Key) -> tuple[str, ...]:
    """What a filter patches for some versions of the proxy only."""
    found: EnvoyFilter | None = db.input(key)
    patches = found.spec.config_patches if found is not None else ()
    return tuple(sorted({instance_name(each) for each in patches if each.patch is not None and _has_version(each)}))


@query
def _versioned_before(db: Engine, key: Key) -> tuple[str, ...]:
    """The same of all filters that come before this one by namespace and name."""
    earlier = (each for each in objects.keys(db, "EnvoyFilter") if each < key)
    return tuple(sorted({name for each in earlier for name in _versioned(db, each)}))
