"""What was logged as a fault during a test."""

import logging

import pytest


def logged(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    """The messages from this level on.

    Left out is what gRPC says of a test before: it hands the last events of a call to the loop that made it, which may be
    closed by then.
    """
    messages = [record.getMessage() for record in caplog.records if record.levelno >= level]
    return [text for text in messages if "PollerCompletionQueue._handle_events" not in text]
