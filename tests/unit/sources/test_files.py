"""Files over time: what is in force, where it stands, and what is kept when something breaks."""

import os
import pathlib
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.api.meta import Key
from mizzen.api.policy import AuthorizationPolicy
from mizzen.errors import SourceError
from mizzen.sources import files
from mizzen.sources.files import FileTree, load

CART, FRONT = Key("Service", "default", "cart"), Key("Service", "default", "front")
GUARD = Key("AuthorizationPolicy", "shop", "guard")


def service(name: str = "cart", port: object = 80) -> str:
    return f"apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  ports:\n  - port: {port}\n"


def policy(action: str = "ALLOW", tail: str = "") -> str:
    return (
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n"
        f"metadata: {{name: guard, namespace: shop}}\nspec:\n  action: {action}\n{tail}"
    )


class Folder:
    """A folder with a source on it; every write gets a later time, so that nothing hangs on the real clock."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.now = 1_700_000_000.0
        self.tree = FileTree(path, lambda: self.now)

    def write(self, name: str, text: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        self.now += 1
        os.utime(path, (self.now, self.now))
        self.now += 1

    def port(self, key: Key = CART) -> int:
        return self.tree.objects[key].object.spec.ports[0].port  # type: ignore[attr-defined]

    def codes(self) -> list[str]:
        return [problem.code for _, problem in self.tree.findings]

    def scan(self) -> bool:
        return self.tree.scan()


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path)


def test_objects_have_their_origin(folder: Folder) -> None:
    folder.write("a.yaml", service() + "---\n" + service("front"))
    folder.scan()
    assert folder.tree.objects[FRONT].origin == (str(folder.path / "a.yaml"), 9)
    assert folder.tree.objects[CART].origin.line == 1


def test_only_files_that_changed_are_parsed_again(folder: Folder) -> None:
    for number in range(20):
        folder.write(f"{number}.yaml", service(f"s{number}"))
    assert folder.scan()
    assert folder.tree.parsed == 20
    assert not folder.scan()
    folder.write("7.yaml", service("s7", 81))
    assert folder.scan()
    assert folder.tree.parsed == 21
    assert folder.port(Key("Service", "default", "s7")) == 81


def test_touched_file_is_not_parsed_again(folder: Folder) -> None:
    folder.write("a.yaml", service())
    folder.scan()
    folder.write("a.yaml", service())
    assert not folder.scan()
    assert folder.tree.parsed == 1


def test_change_without_a_new_stamp_is_seen_while_the_file_is_young(folder: Folder) -> None:
    path = folder.path / "a.yaml"
    path.write_text(service(port=80))
    os.utime(path, (folder.now, folder.now))
    folder.scan()
    path.write_text(service(port=81))
    os.utime(path, (folder.now, folder.now))
    folder.now += 10
    assert folder.scan()
    assert folder.port() == 81


def test_unchanged_objects_of_a_changed_file_stay_the_same_objects(folder: Folder) -> None:
    folder.write("a.yaml", service() + "---\n" + service("front"))
    folder.scan()
    before = folder.tree.objects[FRONT]
    folder.write("a.yaml", "# more\n" + service(port=81) + "---\n" + service("front"))
    folder.scan()
    after = folder.tree.objects[FRONT]
    assert after.object is before.object
    assert after.origin.line == before.origin.line + 1


def test_removed_file_removes_its_objects(folder: Folder) -> None:
    folder.write("a.yaml", service())
    folder.write("b.yaml", service("front"))
    folder.scan()
    (folder.path / "a.yaml").unlink()
    assert folder.scan()
    assert list(folder.tree.objects) == [FRONT]


def test_removed_document_removes_its_object(folder: Folder) -> None:
    folder.write("a.yaml", service() + "---\n" + service("front"))
    folder.scan()
    folder.write("a.yaml", service("front"))
    folder.scan()
    assert list(folder.tree.objects) == [FRONT]


def test_renamed_file_keeps_its_objects(folder: Folder) -> None:
    folder.write("a.yaml", service())
    folder.scan()
    (folder.path / "a.yaml").rename(folder.path / "b.yaml")
    folder.scan()
    assert folder.tree.objects[CART].origin.file.endswith("b.yaml")
    assert folder.codes() == []


# -- looking only where something was touched -------------------------------------------------------------------------


def test_touched_file_is_read_and_no_other(folder: Folder) -> None:
    folder.write("a.yaml", service(port=80))
    folder.write("b.yaml", service("front"))
    folder.scan()
    folder.write("a.yaml", service(port=81))
    folder.write("b.yaml", service("front", 91))
    assert folder.tree.scan(touched={str(folder.path / "a.yaml"), str(folder.path / ".a.yaml.swp")})
    assert (folder.port(CART), folder.port(FRONT)) == (81, 80)
    assert folder.scan()
    assert folder.port(FRONT) == 91


@pytest.mark.parametrize("name", ["c.yaml", "sub", "a.yaml", "gone", "..data"])
def test_touched_path_that_may_change_the_tree_means_looking_at_all_of_it(folder: Folder, name: str) -> None:
    folder.write("a.yaml", service(port=80))
    folder.write("gone/b.yaml", service("front"))
    folder.scan()
    (folder.path / "a.yaml").unlink()
    (folder.path / "gone" / "b.yaml").unlink()
    (folder.path / "gone").rmdir()
    (folder.path / "sub").mkdir()
    (folder.path / "..data").symlink_to("sub")
    folder.write("c.yaml", service("cart", 82))
    assert folder.tree.scan(touched={str(folder.path / name)})
    assert (list(folder.tree.objects), folder.port()) == ([CART], 82)


@pytest.mark.parametrize("name", ["x.txt", ".a.yaml", "never.yaml", "a.yaml~"])
def test_touched_path_that_has_no_part_in_the_tree_costs_nothing(folder: Folder, name: str) -> None:
    folder.write("a.yaml", service(port=80))
    folder.scan()
    folder.write("a.yaml", service(port=81))
    if name != "never.yaml":
        folder.write(name, service("front"))
    assert not folder.tree.scan(touched={str(folder.path / name)})
    assert folder.port() == 80


# -- what breaks ------------------------------------------------------------------------------------------------------


def test_object_that_no_longer_decodes_keeps_its_last_version(folder: Folder) -> None:
    folder.write("a.yaml", service(port=80) + "---\n" + service("front"))
    folder.scan()
    folder.write("a.yaml", service(port="eighty") + "---\n" + service("front", 90))
    folder.scan()
    assert (folder.port(CART), folder.port(FRONT)) == (80, 90)
    fault, stale = folder.tree.findings
    assert str(fault).startswith(f"{folder.path / 'a.yaml'}:7: Service default/cart: spec.ports[0].port: expected")
    assert "last readable version stays" in str(stale)
    folder.write("a.yaml", service(port=82))
    folder.scan()
    assert (folder.port(), folder.codes()) == (82, [])
    assert FRONT not in folder.tree.objects


def test_document_that_does_not_parse_takes_no_object_away(folder: Folder) -> None:
    folder.write("a.yaml", service() + "---\n" + service("front"))
    folder.scan()
    folder.write("a.yaml", "apiVersion: v1\nkind: [\n---\n" + service("front", 90))
    folder.scan()
    assert (folder.port(CART), folder.port(FRONT)) == (80, 90)
    assert folder.codes() == ["unreadable", "stale"]
    assert folder.tree.findings[0].origin.line == 2


@pytest.mark.parametrize("text", ["a: [\n", b"\xff"])
def test_what_is_kept_gives_way_to_what_another_file_says(folder: Folder, text: str | bytes) -> None:
    folder.write("a.yaml", service(port=80))
    folder.scan()
    folder.write("a.yaml", text)
    folder.write("b.yaml", service(port=81))
    folder.scan()
    assert folder.port() == 81
    assert "duplicate" not in folder.codes()


def test_broken_document_leaves_its_new_neighbours_readable(folder: Folder) -> None:
    folder.write("a.yaml", "a: [\n---\n" + service())
    folder.scan()
    assert list(folder.tree.objects) == [CART]
    assert folder.codes() == ["unreadable"]


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"\xff\xfe", "not-text"), (b"#" * (files.tree.LARGEST_FILE + 1), "too-large")],
)
def test_file_that_cannot_be_read_keeps_its_objects(folder: Folder, content: bytes, code: str) -> None:
    folder.write("a.yaml", service())
    folder.write("b.yaml", service("front"))
    folder.scan()
    folder.write("a.yaml", content)
    assert folder.scan()
    assert folder.codes() == [code]
    assert set(folder.tree.objects) == {CART, FRONT}
    assert not folder.scan()
    folder.write("a.yaml", service())
    assert folder.scan()
    assert folder.codes() == []


def test_missing_root_leaves_everything_as_it_was(folder: Folder, tmp_path: pathlib.Path) -> None:
    folder.write("a.yaml", service())
    folder.scan()
    tmp_path.rename(tmp_path.with_name("elsewhere"))
    assert folder.scan()
    assert folder.codes() == ["missing"]
    assert list(folder.tree.objects) == [CART]
    assert not folder.scan()
    tmp_path.with_name("elsewhere").rename(tmp_path)
    assert folder.scan()
    assert folder.codes() == []


def test_root_whose_mount_is_gone_leaves_everything_as_it_was(folder: Folder, tmp_path: pathlib.Path) -> None:
    folder.write("a.yaml", service())
    folder.scan()
    tmp_path.rename(tmp_path.with_name("unmounted"))
    tmp_path.mkdir()
    assert folder.scan()
    assert folder.codes() == ["missing"]
    assert list(folder.tree.objects) == [CART]
    assert not folder.scan()
    tmp_path.rmdir()
    tmp_path.with_name("unmounted").rename(tmp_path)
    assert folder.scan()
    assert folder.codes() == []
    (tmp_path / "a.yaml").unlink()
    assert folder.scan()
    assert not folder.tree.objects, "the same folder may become empty"


def test_file_without_a_byte_keeps_what_it_held(folder: Folder) -> None:
    folder.write("a.yaml", service())
    folder.write("b.yaml", service("front"))
    folder.scan()
    folder.write("a.yaml", "")
    assert folder.scan()
    assert folder.codes() == ["empty-file"]
    assert set(folder.tree.objects) == {CART, FRONT}
    assert not folder.scan()
    folder.write("b.yaml", service())
    folder.scan()
    assert set(folder.tree.objects) == {CART}
    folder.write("a.yaml", "# nothing\n")
    folder.write("b.yaml", "# nothing\n")
    assert folder.scan()
    assert (folder.codes(), dict(folder.tree.objects)) == ([], {})


def test_missing_root_at_the_start_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SourceError, match="cannot read"):
        FileTree(tmp_path / "missing").scan()


def test_file_that_is_being_written_is_left_alone_for_a_moment(folder: Folder) -> None:
    folder.write("a.yaml", service(port=80))
    folder.scan()
    folder.write("a.yaml", "")
    folder.now -= 1
    assert not folder.tree.scan(quiet=0.05)
    assert folder.tree.unsettled
    assert folder.port() == 80
    folder.write("a.yaml", service(port=81))
    assert folder.tree.scan(quiet=0.05)
    assert not folder.tree.unsettled
    assert folder.port() == 81


# -- policies fail closed ---------------------------------------------------------------------------------------------


def guard(folder: Folder) -> AuthorizationPolicy:
    found = folder.tree.objects[GUARD].object
    assert isinstance(found, AuthorizationPolicy)
    return found


@pytest.mark.parametrize("text", [policy("ALOW"), policy(tail="  rules: [\n")])
def test_unreadable_policy_without_an_earlier_version_denies(folder: Folder, text: str) -> None:
    folder.write("a.yaml", text)
    folder.scan()
    assert guard(folder).spec.action == "DENY"
    assert len(guard(folder).spec.rules) == 1
    assert folder.codes()[-1] == "denies-all"


def test_unreadable_peer_authentication_demands_mutual_tls_until_it_can_be_read(folder: Folder) -> None:
    head = "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: p, namespace: shop}\n"
    folder.write("a.yaml", head + "spec: {mtls: {mode: PERMISSIV}}\n")
    folder.scan()
    key = Key("PeerAuthentication", "shop", "p")
    assert folder.tree.objects[key].object.spec.mtls.mode == "STRICT"
    assert folder.codes()[-1] == "requires-mtls"
    folder.write("a.yaml", head + "spec: {mtls: {mode: PERMISSIVE}}\n")
    folder.scan()
    assert folder.tree.objects[key].object.spec.mtls.mode == "PERMISSIVE"
    assert folder.codes() == []


@pytest.mark.parametrize("text", [policy("ALOW"), policy(tail="  rules: [\n")])
def test_unreadable_policy_with_an_earlier_version_keeps_that(folder: Folder, text: str) -> None:
    folder.write("a.yaml", policy("AUDIT"))
    folder.scan()
    folder.write("a.yaml", text)
    folder.scan()
    assert guard(folder).spec.action == "AUDIT"
    assert folder.codes()[-1] == "stale"
    folder.write("a.yaml", text + "# again\n")
    folder.scan()
    assert guard(folder).spec.action == "AUDIT"


def test_denial_ends_when_the_policy_can_be_read(folder: Folder) -> None:
    folder.write("a.yaml", policy("ALOW"))
    folder.scan()
    folder.write("a.yaml", policy("ALOW") + "# still\n")
    folder.scan()
    assert guard(folder).spec.action == "DENY"
    folder.write("a.yaml", policy("AUDIT"))
    folder.scan()
    assert (guard(folder).spec.action, folder.codes()) == ("AUDIT", [])


def test_denial_ends_when_the_policy_is_removed(folder: Folder) -> None:
    folder.write("a.yaml", policy("ALOW"))
    folder.scan()
    folder.write("a.yaml", "# nothing\n")
    folder.scan()
    assert folder.tree.objects == {}


# -- order and rank ---------------------------------------------------------------------------------------------------


def test_object_defined_twice_is_reported_and_the_first_in_path_order_stays(folder: Folder) -> None:
    folder.write("b.yaml", service(port=81))
    folder.write("a.yaml", service(port=80))
    folder.scan()
    assert folder.port() == 80
    (finding,) = folder.tree.findings
    assert finding.origin.file.endswith("b.yaml")
    assert f"already defined at {folder.path / 'a.yaml'}:1" in str(finding)


def test_object_defined_twice_in_one_file_is_reported(folder: Folder) -> None:
    folder.write("a.yaml", service(port=80) + "---\n" + service(port=81))
    folder.scan()
    assert (folder.port(), folder.codes()) == (80, ["duplicate"])
    assert folder.tree.findings[0].origin.line == 9


def test_second_definition_takes_over_when_the_first_goes(folder: Folder) -> None:
    folder.write("a.yaml", service(port=80))
    folder.write("b.yaml", service(port=81))
    folder.scan()
    (folder.path / "a.yaml").unlink()
    folder.scan()
    assert (folder.port(), folder.codes()) == (81, [])


def test_later_path_replaces_objects_of_an_earlier_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / "base.yaml").write_text(service(port=80) + "---\n" + service("front"))
    (tmp_path / "case.yaml").write_text(service(port=81))
    contents = load([str(tmp_path / "base.yaml"), str(tmp_path / "case.yaml")])
    assert contents.objects[CART].spec.ports[0].port == 81  # type: ignore[attr-defined]
    assert contents.origins[CART].file.endswith("case.yaml")
    assert set(contents.objects) == {CART, FRONT}
    assert contents.findings == ()


def test_standard_input_is_a_path_like_others(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text(service(port=80))
    contents = load([str(tmp_path / "a.yaml"), "-"], lambda: service(port=82).encode())
    assert contents.objects[CART].spec.ports[0].port == 82  # type: ignore[attr-defined]
    assert str(contents.origins[CART]) == "-:1"


def test_standard_input_that_is_not_there_or_no_text_is_an_error() -> None:
    with pytest.raises(SourceError, match="no standard input"):
        load(["-"])
    with pytest.raises(SourceError, match="not UTF-8"):
        load(["-"], lambda: b"\xff")


def test_empty_file_is_fine(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    assert load([str(tmp_path)]).findings == ()


def test_documents_that_are_no_objects_give_one_warning_a_file(folder: Folder) -> None:
    folder.write("mesh.yaml", "accessLogFile: /dev/stdout\n---\n- 1\n---\n- 2\n")
    folder.scan()
    (finding,) = folder.tree.findings
    assert (finding.problem.level, finding.origin.line) == ("warning", 1)
    assert "3 documents without apiVersion and kind" in finding.problem.message


def test_every_document_is_accounted_for(folder: Folder) -> None:
    folder.write("a.yaml", service() + "---\nkind: X\napiVersion: example.com/v1\n---\na: [\n---\n---\nb: 1\n")
    folder.scan()
    outcomes = [(read.entry.outcome, read.origin.line) for read in folder.tree.documents]
    assert outcomes == [("decoded", 1), ("not-read", 9), ("unreadable", 11), ("empty", 14), ("not-an-object", 15)]


def test_folder_above_that_links_to_itself_is_safe(folder: Folder) -> None:
    folder.write("a/b.yaml", service())
    (folder.path / "a" / "loop").symlink_to(folder.path)
    folder.scan()
    assert (list(folder.tree.objects), folder.codes()) == ([CART], ["symlink-loop"])


NAMES = st.sampled_from(["a.yaml", "b.yaml", "c/d.yaml"])
SERVICES = st.lists(st.tuples(st.sampled_from(["x", "z", "w"]), st.integers(1, 3)), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAMES, st.none() | SERVICES), min_size=1, max_size=10))
def test_following_edits_ends_where_a_fresh_start_would(edits: list[tuple[str, list[tuple[str, int]] | None]]) -> None:
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(pathlib.Path(path))
        folder.scan()
        for name, services in edits:
            if services is None:
                (folder.path / name).unlink(missing_ok=True)
            else:
                folder.write(name, "---\n".join(service(each, port) for each, port in services) or "# nothing\n")
            folder.scan()
        fresh = FileTree(folder.path)
        fresh.scan()
        assert folder.tree.objects == fresh.objects
        assert folder.tree.findings == fresh.findings
