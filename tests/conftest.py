"""What holds for every suite: long tests only on request, and no silent skips where the environment says so."""

import os
import signal

import hypothesis
import pytest

FULL = os.environ.get("FULL") == "1"

# Machines are shared: how long an example takes says nothing. An ordinary run says of one commit always the same: only
# long runs look for new examples, and what they find becomes an example that is written down.
hypothesis.settings.register_profile(
    "mizzen",
    deadline=None,
    database=None,
    derandomize=not FULL,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("mizzen")

# A run in the background is started with SIGINT ignored, and all that it starts would be.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked `slow` to runs with FULL=1."""
    if FULL:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With MIZZEN_NO_SKIPS=1 a skipped test fails the run: a part that it needs is missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", [])) if reporter is not None else 0
    if skipped and os.environ.get("MIZZEN_NO_SKIPS") == "1" and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
