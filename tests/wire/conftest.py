"""What tests on the wire share."""

import pytest

from mizzen.xds import stream


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listeners and routes wait for new clusters however long those take: that a machine is slow is no sign of anything."""
    monkeypatch.setattr(stream, "_WARMING_PATIENCE", 600.0)
