"""What holds for every suite: long tests only on request, and no silent skips where the environment says so."""

import os
import signal

import hypothesis
import pytest

# Machines are shared: how long an example takes says nothing. Databases of past examples would make runs differ.
hypothesis.settings.register_profile("mizzen", deadline=None, database=None)
hypothesis.settings.load_profile("mizzen")

# A run in the background is started with SIGINT ignored, and all that it starts would be.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked `slow` to runs with FULL=1."""
    if os.environ.get("FULL") == "1":
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
