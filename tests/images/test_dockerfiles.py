"""The reader of Dockerfiles takes what ours use, and nothing that it would not carry out."""

import pytest
from image_dockerfile import DockerfileError, Ignored, parse


def test_stages_have_their_instructions_with_lines_put_together() -> None:
    text = """
# what it is
FROM debian:bookworm-slim AS build
RUN one \\
  # in between
 && two
FROM debian:bookworm-slim
COPY --from=build /a /b/
COPY c d /e/
ENV A=1 B="x y"
ENTRYPOINT ["run", "it"]
"""
    build, image = parse(text)

    assert (build.name, build.base) == ("build", "debian:bookworm-slim")
    assert [(each.word, each.text.split()) for each in build.instructions] == [("RUN", ["one", "&&", "two"])]
    assert [each.words for each in image.instructions] == [
        ("/a", "/b/"),
        ("c", "d", "/e/"),
        ("A=1", "B=x y"),
        ("run", "it"),
    ]
    assert [each.source for each in image.instructions] == ["build", "", "", ""]


@pytest.mark.parametrize(
    "line",
    [
        "HEALTHCHECK CMD true",
        "ARG A",
        "RUN --mount=type=cache,target=/x true",
        'RUN ["true"]',
        "COPY --chown=1:1 a b",
        "COPY --from=build --chmod=755 a b",
        "COPY *.py /a/",
        "COPY a",
        "ENV PATH=/x:$PATH",
        "ENV A b",
        "CMD run it",
    ],
)
def test_what_ours_do_not_use_is_an_error_with_its_line(line: str) -> None:
    with pytest.raises(DockerfileError, match="line 2: "):
        parse(f"FROM debian:bookworm-slim\n{line}\n")


def test_the_last_pattern_decides_what_is_ignored() -> None:
    ignored = Ignored("*\n!src\n!README.md\n**/__pycache__\n")

    assert [path for path in ("src/a.py", "README.md", "src") if path in ignored] == []
    assert [path for path in ("tests/a.py", "src/a/__pycache__/b.pyc", ".git") if path not in ignored] == []
