"""Every object and mesh config of the recorded corpus decodes, without a word."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import merge_mesh_config

CORPUS = Path(__file__).parents[2] / "golden" / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*.yaml") if path.name != "proxies.yaml")


def load_documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a file that are not empty."""
    return [document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document]


def test_the_corpus_is_there() -> None:
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_everything_recorded_decodes(path: Path) -> None:
    problems: list[str] = []
    for document in load_documents(path):
        if "kind" in document:
            decoded = decode_object(document)
            problems += map(str, decoded.problems)
            assert decoded.outcome == "decoded"
        else:
            mesh = document if path.name == "mesh.yaml" else document.get("mesh", {})
            problems += map(str, merge_mesh_config(mesh)[1])
    assert problems == []
