"""Paths as Envoy hands them to policies."""

import pytest

from mizzen.diagnose.authorization.paths import Normalization, SeenPath, normalize_path

NONE = Normalization.of_mesh("NONE")
DEFAULT = Normalization.of_mesh("DEFAULT")
MERGE = Normalization.of_mesh("MERGE_SLASHES")
DECODE = Normalization.of_mesh("DECODE_AND_MERGE_SLASHES")


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/../a", "/a"),
        ("/a/..", "/"),
        ("/a/.", "/a/"),
        ("/a/%2e%2E/b", "/b"),
        ("/a//../b", "/a/b"),
        ("/a//b", "/a//b"),
        ("/a\\b", "/a/b"),
        ("/%41%7e%2F%2f", "/A~%2F%2f"),
        ("/a^b|é", "/a%5Eb%7C%C3%A9"),
        ("/100%", "/100%"),
        ("/a/...", "/a/..."),
        ("/a;x=1", "/a;x=1"),
        ("/a/../b?c=/../d", "/b?c=/../d"),
    ],
)
def test_dots_backslashes_and_needless_escapes_go(path, seen):
    assert normalize_path(path, DEFAULT) == SeenPath(seen)
    assert normalize_path(path, NONE) == SeenPath(path)


def test_slashes_are_merged_last():
    assert normalize_path("//a/./\\b?c=//", MERGE) == SeenPath("/a/b?c=//")


@pytest.mark.parametrize(("path", "seen"), [("//", "//"), ("////?a", "//?a"), ("/", "/"), ("//a//", "/a/")])
def test_nothing_but_slashes_is_never_merged_into_one(path, seen):
    assert normalize_path(path, MERGE) == SeenPath(seen)


def test_escaped_slashes_are_decoded_first():
    assert normalize_path("/a%2F..%5cb%2f%2Fc", DECODE) == SeenPath("/b/c")
    assert normalize_path("/a%2F..%2fb", MERGE) == SeenPath("/a%2F..%2fb")


@pytest.mark.parametrize("path", ["/a%00", "/a#b"])
def test_what_envoy_refuses(path):
    assert normalize_path(path, DEFAULT).fate == "bad-path"


def test_without_normalization_only_fragments_are_refused():
    assert normalize_path("/a%00", NONE) == SeenPath("/a%00")
    assert normalize_path("/a#b", NONE).fate == "bad-path"


def test_a_proxys_own_settings():
    assert normalize_path("/a%2Fb", Normalization(escaped_slashes="REJECT_REQUEST")).fate == "bad-path"
    redirecting = Normalization(escaped_slashes="UNESCAPE_AND_REDIRECT")
    assert normalize_path("/a%2Fb", redirecting) == SeenPath("/a/b", "redirected-path")
    assert normalize_path("/a/b", redirecting) == SeenPath("/a/b")
