"""One run of `analyze`: from paths to findings with their places.

In: what the command line asks for. Out: an `Answer`. With `--since`, the older state is analysed first and then
replaced in the same engine, so that only what changed between the two runs again.
"""

import pathlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from mizzen.analysis import analyzers, catalogue, left_out, own_codes, reports
from mizzen.analysis.findings import Finding, report
from mizzen.analysis.reports import Fingerprint, Suppression
from mizzen.analysis.settings import Settings
from mizzen.api.closed import EFFECTS, effect_of
from mizzen.api.meta import Key, key_of
from mizzen.api.problems import Problem
from mizzen.cli import analysis_files, offline, revisions
from mizzen.cli.analysis_files import Manifests
from mizzen.cli.analysis_live import Live
from mizzen.cli.analysis_mesh import Mesh
from mizzen.cli.analysis_output import Placed
from mizzen.errors import MizzenError


class Asked(NamedTuple):
    """What the command line asks for."""

    paths: tuple[str, ...]
    live: Live = Live()
    """What is read before the paths."""
    namespace: str = "default"
    """Of objects without one."""
    all_namespaces: bool = False
    revision: str = "default"
    istio_namespace: str = "istio-system"
    mesh_file: str = ""
    analyzers: tuple[str, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    since: str = ""
    baseline: str = ""

    @property
    def target(self) -> str:
        """What is analysed, for messages."""
        return "all namespaces" if self.all_namespaces else f"namespace: {self.namespace}"


class Answer(NamedTuple):
    """What came of it."""

    manifests: Manifests
    selection: analyzers.Selection
    findings: list[Placed]
    """In order, filtered and suppressed."""


def analyze(asked: Asked, stdin: bytes = b"") -> Answer:
    """Read, analyse, filter and place."""
    with offline.collector_off():
        return _analyze(asked, stdin)


def _analyze(asked: Asked, stdin: bytes) -> Answer:
    mesh = Mesh(Settings(istio_namespace=asked.istio_namespace, revision=asked.revision), asked.mesh_file)
    known = _known(asked, mesh)
    manifests = _load(asked, asked.paths, stdin)
    mesh.put(manifests)
    selection = analyzers.select(mesh.engine, asked.analyzers)
    findings = reports.only_new(_find(asked, mesh, selection, manifests), known)
    return Answer(manifests, selection, [Placed(each, _reference(each, manifests)) for each in findings])


def _load(asked: Asked, paths: Sequence[str], stdin: bytes) -> Manifests:
    how = analysis_files.Asked(asked.namespace, asked.revision)
    return analysis_files.load((*asked.live.paths, *paths), how, stdin, asked.live.documents)


def _find(asked: Asked, mesh: Mesh, selection: analyzers.Selection, manifests: Manifests) -> list[Finding]:
    found: Sequence[Finding] = analyzers.run(mesh.engine, selection.executed)
    if not asked.analyzers:
        found = _joined(found, _reading_findings(manifests))
        found += left_out.find(mesh.engine, found)

    def annotations(key: Key) -> Mapping[str, str]:
        owner = manifests.objects.get(key)
        return owner.metadata.annotations if owner is not None else {}

    return reports.filter_findings(
        found,
        namespace="" if asked.all_namespaces else asked.namespace,
        suppressions=asked.suppressions,
        annotations=annotations,
    )


def _reading_findings(manifests: Manifests) -> list[Finding]:
    """What decoding found in objects that were read, and objects that stand twice."""
    findings = []
    for problem in manifests.problems:
        text = f"{problem.path}: {problem.message}" if problem.path else problem.message
        effect = _effect(problem) if problem.level == "error" else ""
        if effect:
            findings.append(report(own_codes.FIELD_NOT_IN_FORCE, problem.key, effect, text, path=problem.path))
        else:
            findings.append(report(own_codes.FIELD_NOT_READ, problem.key, text, path=problem.path))
    for closed, place, why in manifests.closed:
        key = key_of(closed)
        manifests.places.setdefault(key, place)
        findings.append(report(own_codes.FIELD_NOT_IN_FORCE, key, effect_of(closed).message, why))
    for key, first in manifests.doubles:
        findings.append(report(own_codes.DEFINED_TWICE, key, first))
    return findings


def _effect(problem: Problem) -> str:
    """What a policy does that has a field nobody knows; no other kind fails for that."""
    own = problem.key.kind if problem.key is not None else ""
    return next((effect.message for kind, effect in EFFECTS.items() if kind == own), "")


def _joined(found: Sequence[Finding], read: Sequence[Finding]) -> list[Finding]:
    """All findings, with one alone for a field that nobody knows and for what is wrong without it.

    Of a policy that is the one that says what it denies; else the rule's, which is graver, with the field in it.
    """
    kept = dict.fromkeys(found)
    fields: list[Finding] = []
    for each in read:
        same = [known for known in kept if _is_due_to(known, each)]
        for known in same:
            del kept[known]
        if each.code == own_codes.FIELD_NOT_READ.code and same:
            kept |= dict.fromkeys(msgspec.structs.replace(k, message=f"{k.message} ({_field(each)})") for k in same)
        else:
            fields.append(each)
    return [*kept, *fields]


def _is_due_to(finding: Finding, read: Finding) -> bool:
    """Whether what a rule refuses is the place in which a field is written that nobody knows."""
    is_refusal = finding.code == catalogue.SCHEMA_VALIDATION_ERROR.code and finding.key == read.key
    return is_refusal and bool(finding.path) and read.path.startswith(f"{finding.path}.")


def _field(read: Finding) -> str:
    return read.message.partition(": ")[2]


def _reference(finding: Finding, manifests: Manifests) -> str:
    key = finding.key
    if key is None:
        return ""
    place = manifests.places.get(key)
    return place.reference(finding.path) if place is not None else ""


# -- what was found before ------------------------------------------------------------------------------------------


def _known(asked: Asked, mesh: Mesh) -> Counter[Fingerprint]:
    """The findings of the baseline and of the older revision."""
    known: Counter[Fingerprint] = Counter()
    if asked.baseline:
        try:
            known |= reports.read_baseline(pathlib.Path(asked.baseline).read_bytes())
        except OSError as error:
            raise MizzenError(f"cannot read {asked.baseline}: {error.strerror}") from error
    if asked.since:
        with revisions.checked_out(asked.paths, asked.since) as older:
            manifests = _load(asked, older, b"")
            mesh.put(manifests)
            selection = analyzers.select(mesh.engine, asked.analyzers)
            known |= Counter(map(reports.fingerprint, _find(asked, mesh, selection, manifests)))
    return known
