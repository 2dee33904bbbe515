"""ProxyConfig, the kind: settings of selected workloads' proxies."""

from mizzen.api.networking.proxy_config import ProxyConfig
from mizzen.api.validate.faults import Faults, error
from mizzen.api.validate.values.selectors import check_match_labels


def check_proxy_config(config: ProxyConfig, path: str) -> Faults:
    """All rules of a ProxyConfig."""
    yield from check_match_labels(config.spec.selector, f"{path}.selector")
    if config.spec.concurrency is not None and config.spec.concurrency < 0:
        yield error(f"{path}.concurrency", "concurrency must be greater than or equal to 0")
