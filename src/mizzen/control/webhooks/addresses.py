"""What the path of an injection says: `/inject/cluster/remote/net/network-1/KEY/VALUE…`.

In: what follows `/inject/`. Out: variables of the proxy. One control plane may inject for several clusters, each of
which calls it by a path of its own. `--slash--` stands for a slash; the older form `:ENV:cluster=remote:ENV:net=n` is
read, too.
"""

from collections.abc import Iterator, Mapping

import msgspec

from mizzen import observe
from mizzen.inject.values import InjectionConfig

_log = observe.scope("injector")

CLUSTER = "ISTIO_META_CLUSTER_ID"
NETWORK = "ISTIO_META_NETWORK"
_VARIABLES = {"cluster": CLUSTER, "net": NETWORK}
_SLASH = "--slash--"
_MARK = ":ENV:"


def read_path(rest: str) -> Mapping[str, str]:
    """The variables by name."""
    pairs = _read_marked(rest) if rest.startswith(_MARK) else _read_steps(rest)
    return {_VARIABLES.get(key.lower(), key.upper()): value.replace(_SLASH, "/") for key, value in pairs if key}


def apply(config: InjectionConfig, variables: Mapping[str, str]) -> InjectionConfig:
    """The installation's choices for whoever was called by such a path."""
    if not variables:
        return config
    return msgspec.structs.replace(
        config,
        cluster_id=variables.get(CLUSTER) or config.cluster_id,
        network=variables.get(NETWORK) or config.network,
        environment={name: value for name, value in variables.items() if name not in (CLUSTER, NETWORK)},
    )


def _read_marked(rest: str) -> Iterator[tuple[str, str]]:
    for part in rest.split(_MARK):
        key, equals, value = part.partition("=")
        if equals:
            yield key, value


def _read_steps(rest: str) -> Iterator[tuple[str, str]]:
    steps = rest.strip("/").split("/") if rest.strip("/") else []
    if len(steps) % 2:
        _log.warning("/inject/%s ends with a key that has no value", rest)
    yield from zip(steps[::2], steps[1::2], strict=False)
