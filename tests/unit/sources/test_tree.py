"""Which files are read, in which order, and what is said of those that are not."""

import os
import pathlib

import pytest

from mizzen.errors import SourceError
from mizzen.sources import tree


def names(root: pathlib.Path) -> list[str]:
    return [os.path.relpath(path, root) for path in tree.list_files(root).files]


def findings(root: pathlib.Path) -> list[tuple[str, str]]:
    return [(os.path.relpath(origin.file, root), problem.code) for origin, problem in tree.list_files(root).findings]


def write(root: pathlib.Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("a: 1\n")


def test_files_come_in_path_order(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "b.yaml", "a/z.yml", "a/b/c.json", "c.yaml")
    assert names(tmp_path) == ["a/b/c.json", "a/z.yml", "b.yaml", "c.yaml"]


def test_hidden_temporary_and_other_files_are_ignored(tmp_path: pathlib.Path) -> None:
    ignored = (".a.yaml", ".git/b.yaml", "c.yaml~", "#d.yaml#", "e.yaml.swp", "f.txt", "README", ".#g.yaml")
    write(tmp_path, "z.yaml", *ignored)
    assert names(tmp_path) == ["z.yaml"]
    assert findings(tmp_path) == []


def test_named_file_is_read_whatever_it_is_called(tmp_path: pathlib.Path) -> None:
    write(tmp_path, ".hidden.txt")
    assert list(tree.list_files(tmp_path / ".hidden.txt").files) == [str(tmp_path / ".hidden.txt")]


def test_missing_path_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SourceError, match="missing: No such file"):
        tree.list_files(tmp_path / "missing")


def test_link_back_to_a_folder_above_is_not_followed(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a/b/c.yaml")
    (tmp_path / "a/b/loop").symlink_to(tmp_path / "a")
    (tmp_path / "self").symlink_to("self")
    assert names(tmp_path) == ["a/b/c.yaml"]
    assert findings(tmp_path) == [("a/b/loop", "symlink-loop"), ("self", "symlink-loop")]


def test_link_that_leads_nowhere_is_reported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.yaml").symlink_to("gone.yaml")
    assert names(tmp_path) == []
    assert findings(tmp_path) == [("x.yaml", "dangling-link")]


def test_file_reached_twice_is_read_once(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "real/a.yaml")
    (tmp_path / "again").symlink_to("real")
    (tmp_path / "b.yaml").symlink_to("real/a.yaml")
    assert names(tmp_path) == ["again/a.yaml"]
    assert findings(tmp_path) == []


def test_mounted_config_map_is_read_once(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "..2024_01/mesh.yaml")
    (tmp_path / "..data").symlink_to("..2024_01")
    (tmp_path / "mesh.yaml").symlink_to("..data/mesh.yaml")
    assert names(tmp_path) == ["mesh.yaml"]


def test_pipes_and_sockets_are_not_read(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    write(tmp_path, "a.yaml")
    assert names(tmp_path) == ["a.yaml"]


def test_file_over_the_limit_is_refused_by_its_size(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "big.yaml"
    with open(path, "wb") as file:
        file.truncate(50 * 1000 * 1000)
    with pytest.raises(tree.Unreadable, match=r"50,000,000 bytes; files over 32 MiB.*split"):
        tree.read_bytes(str(path))


def test_file_at_the_limit_is_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "big.yaml"
    with open(path, "wb") as file:
        file.truncate(tree.LARGEST_FILE)
    assert len(tree.read_bytes(str(path))) == tree.LARGEST_FILE


def test_named_pipe_is_read_to_its_end(tmp_path: pathlib.Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a: 1\n")
    os.close(writing)
    assert tree.read_bytes(f"/dev/fd/{reading}") == b"a: 1\n"
    os.close(reading)


def test_folder_in_place_of_a_file_is_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tree.Unreadable, match="directory"):
        tree.read_bytes(str(tmp_path))


def test_text_may_have_a_byte_order_mark_but_must_be_utf_8() -> None:
    assert tree.decode_text(b"\xef\xbb\xbfa: 1") == "a: 1"
    with pytest.raises(tree.Unreadable, match="line 2 is not UTF-8"):
        tree.decode_text(b"a: 1\nb: \xff\n")
