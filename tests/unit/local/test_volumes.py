"""The files of a pod's volumes."""

import stat
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from local_objects import pod

from mizzen.api.kube.data import ConfigMap, Secret
from mizzen.api.kube.pods import Container, Volume
from mizzen.api.meta import Key, ObjectMeta
from mizzen.errors import LocalError
from mizzen.local.pods import volumes
from mizzen.local.pods.volumes import File, Folder

OBJECTS = {
    Key("ConfigMap", "shop", "site"): ConfigMap(
        metadata=ObjectMeta(name="site", namespace="shop"), data={"index.html": "hello"}, binary_data={"logo": b"\x00"}
    ),
    Key("Secret", "shop", "tls"): Secret(
        metadata=ObjectMeta(name="tls", namespace="shop"), data={"tls.crt": b"C", "tls.key": b"K"}
    ),
}


def files(*mounts: dict[str, object], **sources: object) -> dict[str, File]:
    container = msgspec.convert({"name": "app", "volumeMounts": mounts}, Container)
    declared = tuple(msgspec.convert({"name": name, **source}, Volume) for name, source in sources.items())
    owner = pod("cart-0", "10.44.0.10", "cart", container, volumes=declared)
    found = volumes.build_files(owner, OBJECTS.get, lambda audience: f"token for {audience}")
    return {file.path: file for file in found}


def mount(name: str, path: str, **more: object) -> dict[str, object]:
    return {"name": name, "mountPath": path, **more}


def test_keys_become_files_below_the_mount():
    found = files(mount("v", "/srv/www"), v={"configMap": {"name": "site"}})
    assert {path: file.content for path, file in found.items()} == {
        "srv/www/index.html": b"hello",
        "srv/www/logo": b"\0",
    }


def test_items_choose_keys_paths_and_modes():
    source = {
        "secret": {"secretName": "tls", "defaultMode": 0o440, "items": [{"key": "tls.key", "path": "k", "mode": 0o400}]}
    }
    assert files(mount("v", "/etc/tls"), v=source) == {"etc/tls/k": File("etc/tls/k", b"K", 0o400, shared=True)}


def test_a_sub_path_mounts_one_file():
    found = files(mount("v", "/etc/one.pem", subPath="tls.crt"), v={"secret": {"secretName": "tls"}})
    assert found == {"etc/one.pem": File("etc/one.pem", b"C", shared=True)}


def test_tokens_are_for_their_audience_and_private():
    projected = {"sources": [{"serviceAccountToken": {"path": "istio-token", "audience": "istio-ca"}}]}
    (file,) = files(mount("v", "/var/run/secrets/tokens"), v={"projected": projected}).values()
    assert file == File("var/run/secrets/tokens/istio-token", b"token for istio-ca", 0o600, shared=True)


def test_the_downward_api_writes_labels():
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    found = files(mount("v", "/etc/istio/pod"), v={"downwardAPI": {"items": items}})
    assert found["etc/istio/pod/labels"].content == b'app="cart"'


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        ("/a", {"configMap": {"name": "no"}}, "ConfigMap shop/no does not exist"),
        ("/a", {"configMap": {"name": "site", "items": [{"key": "x", "path": "x"}]}}, "no entry x"),
        ("/a", {"persistentVolumeClaim": {}}, "of a kind"),
        ("/a/../../etc", {"configMap": {"name": "site"}}, "leaves the pod's folder"),
    ],
)
def test_what_cannot_be_mounted_is_named(path, source, message):
    with pytest.raises(LocalError, match=message):
        files(mount("v", path), v=source)


def test_a_key_cannot_climb_out_of_its_mount():
    source = {"configMap": {"name": "site", "items": [{"key": "index.html", "path": "../../../etc/passwd"}]}}
    with pytest.raises(LocalError, match="leaves"):
        files(mount("v", "/srv"), v=source)


def test_an_optional_source_that_is_not_there_is_empty():
    assert files(mount("v", "/a"), v={"secret": {"secretName": "no", "optional": True}}) == {}


def test_files_are_laid_with_their_modes_and_replaced_whole(tmp_path):
    folder = Folder(tmp_path / "pod")
    listed = [File("etc/a", b"1", 0o600), File("data", mode=None, shared=True), File("own", mode=None)]
    folder.lay(listed, None)
    laid = folder.root / "etc/a"
    first = laid.stat().st_ino
    folder.lay([File("etc/a", b"2", 0o644)], None)
    assert (laid.read_bytes(), stat.S_IMODE(laid.stat().st_mode)) == (b"2", 0o644)
    assert laid.stat().st_ino != first
    assert [stat.S_IMODE((folder.root / name).stat().st_mode) for name in ("data", "own")] == [0o777, 0o700]
    assert sorted(path.name for path in laid.parent.iterdir()) == ["a"]


def test_files_may_be_laid_twice_at_once(tmp_path):
    folder = Folder(tmp_path / "pod")
    listed = [File(f"etc/{name}", b"x" * 20_000) for name in "abc"]
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(folder.lay, listed, None) for _ in range(200)]:
            done.result()
    assert sorted(path.name for path in (folder.root / "etc").iterdir()) == ["a", "b", "c"]


def test_a_folder_that_is_gone_stays_so_whoever_still_lays_files(tmp_path):
    folder = Folder(tmp_path / "pod")
    listed = [File(f"etc/{name}", b"x") for name in "abc"]
    with ThreadPoolExecutor(2) as threads:
        laying = [threads.submit(folder.lay, listed, None) for _ in range(50)]
        threads.submit(folder.remove).result()
        for done in laying:
            done.result()
    folder.lay(listed, None)
    assert not folder.root.exists()


def test_what_is_in_the_way_of_a_file_is_named(tmp_path):
    folder = Folder(tmp_path)
    (tmp_path / "etc").write_text("a program made this")
    with pytest.raises(LocalError, match=r"volume: .*etc"):
        folder.lay([File("etc/a", b"1")], None)
