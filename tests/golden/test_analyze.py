"""Findings over the corpus equal the reference's, in code, level, object and message; others have codes of our own.

The recording was made on live objects, so what the reference passes over in files is here too.
"""

import pathlib

import pytest
import yaml
from recorded_findings import recorded_findings

from mizzen.cli import analysis_run

CORPUS = pathlib.Path(__file__).parent / "corpus"
CASES = sorted(f"{path.parent.parent.name}/{path.parent.stem}" for path in CORPUS.glob("*/*.expected/analyze.json"))


def _mesh_file(case: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The mesh config of a case as the ConfigMap that a cluster has it in."""
    head = next(yaml.safe_load_all(case.read_text()))
    config = {**yaml.safe_load((CORPUS / "mesh.yaml").read_text()), **(head.get("mesh") or {})}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "istio", "namespace": "istio-system"},
        "data": {"mesh": yaml.safe_dump(config)},
    }
    path = folder / "mesh.yaml"
    path.write_text(yaml.safe_dump(config_map))
    return path


@pytest.mark.parametrize("name", CASES)
def test_findings_equal_the_recorded_ones(name: str, tmp_path: pathlib.Path) -> None:
    case = CORPUS / f"{name}.yaml"
    head = next(yaml.safe_load_all(case.read_text()))
    base = [] if head.get("base") is False else [str(CORPUS / "base.yaml")]
    paths = (*base, str(case), str(_mesh_file(case, tmp_path)))
    answer = analysis_run.analyze(analysis_run.Asked(paths=paths, all_namespaces=True))
    found = {(f.code, f.level, f.origin, f.message) for f, _ in answer.findings if not f.code.startswith("MZ")}
    assert found == set(recorded_findings(name))
    assert all(reference for f, reference in answer.findings if f.key is not None)


def test_the_corpus_is_whole() -> None:
    assert len(CASES) >= 120
