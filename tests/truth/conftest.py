"""What the suites of predictions share: they need the real Envoy and a mesh of their own."""

import pytest

_TEST_SECONDS = 1500


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/truth/" in item.nodeid or "truth" in item.path.parts:
            item.add_marker(pytest.mark.local)
            item.add_marker(pytest.mark.envoy)
            item.add_marker(pytest.mark.timeout(_TEST_SECONDS))
