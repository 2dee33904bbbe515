"""The suite needs the real istioctl (`make test-istioctl` builds it)."""

import istioctl_runs
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is here where the program is not."""
    if istioctl_runs.find() is None:
        for item in items:
            if "tests/istioctl/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason="no istioctl (scripts/test-istioctl)"))
