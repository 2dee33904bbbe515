"""Dockerfiles, as far as ours go: stages of instructions, and what of a checkout they may be built from.

In: the text of a Dockerfile or of a .dockerignore. Out: values. An instruction, flag or form that ours do not use is an
error, so that nothing is ever built differently here than by Docker.
"""

import fnmatch
import json
import re
from typing import NamedTuple

_LISTS = ("ENTRYPOINT", "CMD")
_TEXTS = ("RUN", "WORKDIR", "USER", "EXPOSE")
_REFUSED_FLAG = re.compile(r"\s--(?!from=)")
_VARIABLE = re.compile(r'(\w+)=("[^"$\\]*"|[^\s"$\\]+)')


class DockerfileError(Exception):
    """What cannot be read, with its line."""


class Instruction(NamedTuple):
    """One instruction; `words` are what its form makes of the text."""

    word: str
    text: str
    words: tuple[str, ...] = ()
    source: str = ""
    """Of COPY: the stage that is copied from, empty for the checkout."""


class Stage(NamedTuple):
    """From a FROM to the next."""

    name: str
    base: str
    instructions: tuple[Instruction, ...]


def parse(text: str) -> tuple[Stage, ...]:
    """The stages of a Dockerfile, the image itself last."""
    stages: list[Stage] = []
    for number, line in _logical_lines(text):
        word, _, rest = line.partition(" ")
        try:
            if word == "FROM":
                stages.append(_stage(rest.strip()))
            elif not stages:
                raise DockerfileError("an instruction before FROM")
            else:
                last = stages[-1]
                stages[-1] = last._replace(instructions=(*last.instructions, _instruction(word, rest.strip())))
        except DockerfileError as wrong:
            raise DockerfileError(f"line {number}: {wrong}") from None
    if not stages:
        raise DockerfileError("no FROM")
    return tuple(stages)


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments, those that go on put together as Docker does."""
    found: list[tuple[int, str]] = []
    goes_on = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        content = stripped.removesuffix("\\")
        if goes_on:
            first, before = found[-1]
            found[-1] = (first, before + content)
        else:
            found.append((number, content))
        goes_on = stripped.endswith("\\")
    return found


def _stage(text: str) -> Stage:
    match = re.fullmatch(r"(\S+)(?: AS (\S+))?", text)
    if match is None:
        raise DockerfileError(f"FROM {text}: not IMAGE or IMAGE AS NAME")
    return Stage(match[2] or "", match[1], ())


def _instruction(word: str, text: str) -> Instruction:
    if word == "COPY":
        return _copy(text)
    if word == "ENV":
        return Instruction(word, text, _variables(text))
    if word in _LISTS:
        try:
            return Instruction(word, text, tuple(json.loads(text)))
        except ValueError:
            raise DockerfileError(f"{word} {text}: not a list of JSON") from None
    if word not in _TEXTS or (word == "RUN" and text.startswith(("--", "["))):
        raise DockerfileError(f"{word} {text}: not used here")
    return Instruction(word, text)


def _copy(text: str) -> Instruction:
    match = re.fullmatch(r"(?:--from=(\S+) )?([^-\[].*)", text)
    words = tuple(match[2].split()) if match else ()
    if match is None or len(words) < 2 or _REFUSED_FLAG.search(text) or "*" in text:
        raise DockerfileError(f"COPY {text}: not [--from=STAGE] SOURCE… TARGET")
    return Instruction("COPY", text, words, match[1] or "")


def _variables(text: str) -> tuple[str, ...]:
    if not re.fullmatch(rf"{_VARIABLE.pattern}(\s+{_VARIABLE.pattern})*", text):
        raise DockerfileError(f"ENV {text}: not NAME=VALUE…, without references")
    return tuple(f"{name}={value.strip(chr(34))}" for name, value in _VARIABLE.findall(text))


class Ignored:
    """What a .dockerignore keeps away from a build; the last pattern that fits decides."""

    def __init__(self, text: str) -> None:
        lines = (line.strip() for line in text.splitlines())
        self._patterns = [line for line in lines if line and not line.startswith("#")]

    def __contains__(self, path: str) -> bool:
        parts = path.split("/")
        folders = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
        ignored = False
        for pattern in self._patterns:
            bare = pattern.removeprefix("!")
            if any(_fits(bare, folder) for folder in folders):
                ignored = not pattern.startswith("!")
        return ignored


def _fits(pattern: str, path: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(path.rpartition("/")[2], pattern.removeprefix("**/"))
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)
