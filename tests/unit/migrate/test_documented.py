"""The guide's tables of annotations say what the code says."""

import pathlib
import re

import pytest
from migrations import ingress, migrated

from mizzen.migrate.ingress import DIFFERENCES
from mizzen.migrate.reading import catalogue

GUIDE = (pathlib.Path(__file__).parents[3] / "docs" / "ingress-nginx.md").read_text()
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: answers, namespace: web}
data: {X-Answer: 42%}
"""
LEAST = 40


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a title."""
    section = re.split(r"^## ", GUIDE, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(title))
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def annotations(cell: str) -> dict[str, str]:
    return dict(span.split(": ", 1) for span in re.findall(r"`([^`]+)`", cell))


def named(title: str) -> dict[str, str]:
    """Why, by annotation."""
    return {name: why for cell, why in rows(title) for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize(("cell", "verdict", "how"), rows("What a value becomes"))
def test_an_annotation_becomes_what_the_guide_says(cell: str, verdict: str, how: str) -> None:
    asked = annotations(cell)
    done = migrated(ingress(asked, secret="tls"), CONFIG_MAP)
    found = [(f.verdict, f.how or "the same") for f in done.findings if f.subject == next(iter(asked))]
    assert (verdict, how) in found


def test_the_guide_lists_what_is_not_needed_and_what_is_lost() -> None:
    assert named("Not needed") == catalogue._NOT_NEEDED
    assert named("Lost") == catalogue._LOST


def test_the_most_used_annotations_are_handled() -> None:
    handled = {
        next(iter(annotations(cell))) for cell, verdict, _ in rows("What a value becomes") if verdict != "impossible"
    }
    assert len(handled) >= LEAST


def test_the_guide_tells_what_differs_for_every_host() -> None:
    plain = " ".join(GUIDE.split())
    assert all(text in plain for text in DIFFERENCES)
