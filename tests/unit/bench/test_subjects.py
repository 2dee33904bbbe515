"""Where objects are written for a control plane."""

import json

from bench.subjects import Commands, Folder

DOCUMENT = {"kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}
OTHER = {"kind": "Namespace", "metadata": {"name": "shop"}}


def test_a_folder_has_one_file_for_each_object(tmp_path):
    folder = Folder(tmp_path)
    folder.write([DOCUMENT, OTHER])
    files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*") if path.is_file()}
    assert sorted(files) == ["cluster/namespace-shop.yaml", "shop/service-web.yaml"]
    assert json.loads(files["shop/service-web.yaml"].read_text()) == DOCUMENT
    folder.write_text(DOCUMENT, "# a comment\n")
    assert files["shop/service-web.yaml"].read_text() == "# a comment\n"
    folder.remove([DOCUMENT])
    assert not files["shop/service-web.yaml"].exists()


def test_commands_read_all_objects_from_standard_input(tmp_path):
    place = Commands(f"cat > {tmp_path}/written", f"cat > {tmp_path}/removed")
    place.write([DOCUMENT, OTHER])
    first, second = (tmp_path / "written").read_text().split("---")
    assert (json.loads(first), json.loads(second)) == (DOCUMENT, OTHER)
    place.write_text(DOCUMENT, "text")
    assert (tmp_path / "written").read_text() == "text"
    place.remove([OTHER])
    assert json.loads((tmp_path / "removed").read_text()) == OTHER
