"""The mesh config in force: ConfigMap before file before defaults; what is broken changes nothing."""

import os
import pathlib
import time

import pytest

from mizzen.api.kube.data import ConfigMap
from mizzen.api.mesh.merge import default_mesh_config
from mizzen.api.meta import Key, ObjectMeta
from mizzen.control.mesh import MeshSettings, config_map_key
from mizzen.errors import SourceError
from mizzen.sources.origins import Origin

MAP = Origin("cm.yaml", 3)


def config_map(text: str | None) -> ConfigMap:
    return ConfigMap(
        metadata=ObjectMeta(name="istio", namespace="istio-system"), data={} if text is None else {"mesh": text}
    )


def write(path: pathlib.Path, text: str) -> str:
    path.write_text(text)
    os.utime(path, (1_700_000_000 + len(text), 1_700_000_000 + len(text)))
    return str(path)


def test_defaults_hold_where_nobody_says_otherwise() -> None:
    assert MeshSettings().config == default_mesh_config()


def test_file_lies_over_the_defaults(tmp_path: pathlib.Path) -> None:
    mesh = MeshSettings(write(tmp_path / "mesh", "trustDomain: mesh.example\n"))
    assert mesh.config.trust_domain == "mesh.example"
    assert mesh.config.root_namespace == "istio-system"
    assert mesh.findings == ()


def test_empty_file_means_the_defaults(tmp_path: pathlib.Path) -> None:
    assert MeshSettings(write(tmp_path / "mesh", "# nothing\n")).config == default_mesh_config()


def test_file_without_a_byte_leaves_what_it_held_in_force(tmp_path: pathlib.Path) -> None:
    mesh = MeshSettings(write(tmp_path / "mesh", "trustDomain: mesh.example\n"))
    write(tmp_path / "mesh", "")
    mesh.reload()
    assert mesh.config.trust_domain == "mesh.example"
    assert [finding.problem.code for finding in mesh.findings] == ["empty-file"]
    write(tmp_path / "mesh", "# nothing\n")
    mesh.reload()
    assert (mesh.config, mesh.findings) == (default_mesh_config(), ())


def test_config_map_counts_before_the_file(tmp_path: pathlib.Path) -> None:
    mesh = MeshSettings(write(tmp_path / "mesh", "trustDomain: file.example\n"))
    mesh.follow(config_map("trustDomain: map.example\n"), MAP)
    assert mesh.config.trust_domain == "map.example"
    mesh.follow(None, MAP)
    assert mesh.config.trust_domain == "file.example"


def test_what_is_written_is_told_as_it_is(tmp_path: pathlib.Path) -> None:
    assert MeshSettings().written == {}
    mesh = MeshSettings(write(tmp_path / "mesh", "defaultConfig: {concurrency: 3}\n"))
    assert mesh.written == {"defaultConfig": {"concurrency": 3}}
    mesh.follow(config_map("trustDomain: map.example\n"), MAP)
    assert mesh.written == {"trustDomain": "map.example"}
    for broken in ("trustDomain: [\n", "trustDomain: {a: b}\n"):
        mesh.follow(config_map(broken), MAP)
        assert mesh.written == {"trustDomain": "map.example"}
    mesh.follow(config_map(""), MAP)
    assert mesh.written == {}
    mesh.follow(None, MAP)
    assert mesh.written == {"defaultConfig": {"concurrency": 3}}


def test_config_map_without_the_key_does_not_count() -> None:
    mesh = MeshSettings()
    mesh.follow(config_map(None), MAP)
    assert mesh.config == default_mesh_config()


def test_broken_config_map_leaves_the_last_one_in_force() -> None:
    mesh = MeshSettings()
    mesh.follow(config_map("trustDomain: map.example\n"), MAP)
    mesh.follow(config_map("trustDomain: [\n"), MAP)
    assert mesh.config.trust_domain == "map.example"
    (finding,) = mesh.findings
    assert finding.origin == MAP
    assert finding.problem.key == Key("ConfigMap", "istio-system", "istio")
    assert finding.problem.path == "data[mesh]"
    mesh.follow(config_map("trustDomain: map.example\n"), MAP)
    assert mesh.findings == ()


def test_field_at_fault_keeps_its_default_and_names_its_line(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "mesh", "trustDomain: mesh.example\nproxyListenPort: many\n")
    mesh = MeshSettings(path)
    assert (mesh.config.trust_domain, mesh.config.proxy_listen_port) == ("mesh.example", 15001)
    (finding,) = mesh.findings
    assert (finding.origin, finding.problem.path) == (Origin(path, 2), "proxyListenPort")


@pytest.mark.parametrize("text", ["a: [\n", None])
def test_unreadable_file_at_the_start_is_an_error(tmp_path: pathlib.Path, text: str | None) -> None:
    path = tmp_path / "mesh"
    if text is not None:
        write(path, text)
    with pytest.raises(SourceError, match=f"--meshConfig: {path}"):
        MeshSettings(str(path))


def test_file_of_a_clock_that_was_ahead_is_read(tmp_path: pathlib.Path) -> None:
    mesh = MeshSettings(write(tmp_path / "mesh", "trustDomain: mesh.example\n"))
    (tmp_path / "mesh").write_text("trustDomain: other.example\n")
    os.utime(tmp_path / "mesh", (time.time() + 3600,) * 2)
    assert mesh.has_changed()


def test_file_that_breaks_later_leaves_the_last_one_in_force(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "mesh", "trustDomain: mesh.example\n")
    mesh = MeshSettings(path)
    assert not mesh.has_changed()
    write(tmp_path / "mesh", "trustDomain: [\n")
    assert mesh.has_changed()
    mesh.reload()
    assert not mesh.has_changed()
    assert mesh.config.trust_domain == "mesh.example"
    assert mesh.findings[0].origin == Origin(path, 1)
    (tmp_path / "mesh").unlink()
    assert mesh.has_changed()
    mesh.reload()
    assert mesh.config.trust_domain == "mesh.example"


def test_config_map_of_a_revision_has_its_own_name() -> None:
    assert config_map_key("istio-system", "default") == Key("ConfigMap", "istio-system", "istio")
    assert config_map_key("mesh", "canary") == Key("ConfigMap", "mesh", "istio-canary")
