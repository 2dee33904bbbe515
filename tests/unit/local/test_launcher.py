"""What a detached start leaves behind when it fails."""

import os

import pytest

from mizzen.errors import LocalError
from mizzen.local import launcher, runtime
from mizzen.local.runtime import Layout


def test_a_second_detached_start_leaves_the_running_meshs_log_alone(tmp_path):
    layout = Layout(tmp_path / "shop")
    held = runtime.lock(layout)
    launcher.detached_log(layout).write_text("control plane ready\n")
    with pytest.raises(LocalError, match="already running"):
        launcher.detach([str(tmp_path), "--name", "shop"], layout, os.environ)
    os.close(held)
    assert launcher.detached_log(layout).read_text() == "control plane ready\n"


def test_a_detached_start_that_fails_says_why_and_leaves_no_log(tmp_path):
    layout = Layout(tmp_path / "shop")
    with pytest.raises(LocalError, match=r"^/nonexistent does not exist"):
        launcher.detach(["/nonexistent", "--name", "shop"], layout, os.environ)
    assert list(tmp_path.iterdir()) == []
