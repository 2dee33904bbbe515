"""States of manifests as users write them: paths, revisions, and paths at revisions."""

import pathlib
import subprocess

import pytest

from mizzen.cli import revisions
from mizzen.errors import MizzenError


@pytest.fixture
def tree(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A work tree whose one file says `old` at the tag `first`, and `new` now."""
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh" / "a.yaml").write_text("old")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first")
    git(tmp_path, "tag", "first")
    (tmp_path / "mesh" / "a.yaml").write_text("new")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(folder: pathlib.Path, *arguments: str) -> None:
    subprocess.run(("git", "-C", str(folder), *arguments), check=True, capture_output=True)


def read(written: str, other: str) -> str:
    with revisions.state(written, other) as path:
        found = pathlib.Path(path)
        return (found if found.is_file() else found / "a.yaml").read_text()


def test_a_path_is_itself(tree: pathlib.Path) -> None:
    with revisions.state("mesh", "first") as path:
        assert path == "mesh"


def test_a_revision_is_the_place_of_the_other_state(tree: pathlib.Path) -> None:
    assert read("first", "mesh") == "old"
    assert read("first", "mesh/a.yaml") == "old"
    assert read("first", str(tree / "mesh")) == "old"


def test_a_path_may_follow_a_revision(tree: pathlib.Path) -> None:
    assert read("first:mesh", "elsewhere") == "old"
    assert read("first:mesh/a.yaml", "mesh") == "old"


def test_two_revisions_share_a_path(tree: pathlib.Path) -> None:
    assert read("first", "HEAD:mesh") == "old"


def test_a_path_that_is_gone_now_was_there_then(tree: pathlib.Path) -> None:
    (tree / "mesh" / "a.yaml").unlink()
    (tree / "mesh").rmdir()

    assert read("first:mesh", "nothing") == "old"


def test_what_is_taken_out_goes_away(tree: pathlib.Path) -> None:
    with revisions.state("first", "mesh") as path:
        assert pathlib.Path(path).exists()
    assert not pathlib.Path(path).exists()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("nothing", "neither a path nor a git revision"),
        ("first:other", "did not exist"),
        ("--all", "neither a path"),
        ("-", "neither a path"),
    ],
)
def test_what_is_neither_is_refused(tree: pathlib.Path, written: str, said: str) -> None:
    with pytest.raises(MizzenError, match=said), revisions.state(written, "mesh"):
        pass
