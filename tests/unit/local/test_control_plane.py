"""Who signs in a local mesh, and what its pods are told of that."""

import os
import pathlib
import subprocess
import sys
import time

import pytest
from plugged_authority import make_node, revoke, write_authority

from mizzen import settings
from mizzen.ca import store
from mizzen.control.authority import RunningAuthority
from mizzen.errors import AuthorityError
from mizzen.local.control_plane import Credentials

ROOT = make_node("root", time.time())


def config(tmp_path: pathlib.Path) -> settings.Authority:
    return settings.Authority(directory=str(tmp_path / "plugged"))


def credentials(tmp_path: pathlib.Path) -> Credentials:
    (tmp_path / "control").mkdir(exist_ok=True)
    return Credentials(tmp_path / "control", config(tmp_path), "cluster.local", time.time)


def test_a_root_is_made_once(tmp_path: pathlib.Path) -> None:
    made = credentials(tmp_path)
    assert credentials(tmp_path).roots == made.roots
    assert made.distributed == (made.roots, "")


def test_an_authority_that_is_plugged_in_signs_from_the_start(tmp_path: pathlib.Path) -> None:
    write_authority(tmp_path / "plugged", ROOT, [], [ROOT])
    assert credentials(tmp_path).roots.encode() == ROOT.pem
    state = store.load_state(tmp_path / "control")
    assert state is not None
    assert state.current.certificate == ROOT.certificate


def test_pods_are_told_of_the_lists_that_the_control_plane_has_put_in_force(tmp_path: pathlib.Path) -> None:
    write_authority(tmp_path / "plugged", ROOT, [], [ROOT])
    lists = revoke(ROOT, time.time(), [1])
    (tmp_path / "plugged" / "ca-crl.pem").write_bytes(lists)
    made = credentials(tmp_path)
    assert made.revocations == ""
    RunningAuthority(config(tmp_path), str(tmp_path / "control"), "cluster.local")
    assert made.distributed == (ROOT.pem.decode(), lists.decode())


def test_a_comment_among_the_lists_is_utf_8_whatever_the_locale_is(tmp_path: pathlib.Path) -> None:
    credentials(tmp_path)
    (tmp_path / "control" / "revoked.pem").write_text("ä", encoding="utf-8")
    script = (
        "import pathlib, sys\n"
        "from mizzen import settings\n"
        "from mizzen.local.control_plane import Credentials\n"
        "made = Credentials(pathlib.Path(sys.argv[1]), settings.Authority(directory='none'), 'x', lambda: 0.0)\n"
        "print(ascii(made.revocations))\n"
    )
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "control"], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (r"'\xe4'" + "\n", "")


@pytest.mark.parametrize("name", ["ca-key.pem", "ca-crl.pem"])
def test_a_broken_one_ends_the_start(tmp_path: pathlib.Path, name: str) -> None:
    write_authority(tmp_path / "plugged", ROOT, [], [ROOT])
    (tmp_path / "plugged" / name).write_bytes(b"nonsense")
    with pytest.raises(AuthorityError, match=name):
        credentials(tmp_path)
