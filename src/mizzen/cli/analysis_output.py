"""What `analyze` prints: lines, JSON, YAML and SARIF.

In: Findings in order, each with its place. Out: text. Lines and objects are the reference's; SARIF 2.1.0 is for code
scanning. Codes of our own have no page of documentation, so they carry no address.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from mizzen.analysis.catalogue import CATALOGUE, DOCUMENTATION
from mizzen.analysis.findings import Finding, Message
from mizzen.analysis.own_codes import OWN_CODES
from mizzen.analysis.reports import fingerprint
from mizzen.cli.render import render_yaml

_COLOURS = {"Error": "\x1b[1;31m", "Warning": "\x1b[33m", "Info": ""}
_RESET = "\x1b[0m"
_SARIF_LEVELS = {"Error": "error", "Warning": "warning", "Info": "note"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Placed(NamedTuple):
    """A finding, and its place as `file:line`; empty where it is in no file."""

    finding: Finding
    reference: str


def render(output: str, findings: Sequence[Placed], *, colour: bool) -> str:
    """In one of the forms `log`, `json` and `yaml`."""
    if output == "log":
        return render_log(findings, colour=colour)
    return render_json(findings) if output == "json" else render_yaml(to_plain(findings))


def render_log(findings: Sequence[Placed], *, colour: bool) -> str:
    """A line for each finding."""
    return "\n".join(_line(each, colour) for each in findings) + "\n"


def _line(placed: Placed, colour: bool) -> str:
    finding, reference = placed
    level = f"{_COLOURS[finding.level]}{finding.level}{_RESET}" if colour else finding.level
    cluster = f" [cluster-{finding.cluster}]" if finding.cluster else ""
    place = " ".join(filter(None, (finding.origin, reference)))
    origin = f"{cluster} ({place})" if place else cluster
    return f"{level} [{finding.code}]{origin} {finding.message}"


def to_plain(findings: Sequence[Placed]) -> list[dict[str, str]]:
    """The findings as JSON and YAML show them."""
    return [_plain(finding, reference) for finding, reference in findings]


def _plain(finding: Finding, reference: str) -> dict[str, str]:
    address = f"{DOCUMENTATION}/{finding.code.lower()}/?ref=istioctl-analyze"
    fields = {
        "cluster": finding.cluster,
        "code": finding.code,
        "documentationUrl": address if finding.code in CATALOGUE else "",
        "level": finding.level,
        "message": finding.message,
        "origin": finding.origin,
        "reference": reference,
    }
    return {name: value for name, value in fields.items() if value or name == "origin"}


def render_json(findings: Sequence[Placed]) -> str:
    """An array of objects, indented with tabs."""
    return json.dumps(to_plain(findings), indent="\t", ensure_ascii=False) + "\n"


def render_sarif(findings: Sequence[Placed], version: str) -> str:
    """A SARIF log of one run."""
    codes = sorted({finding.code for finding, _ in findings})
    driver = {
        "name": "mizzen analyze",
        "version": version,
        "rules": [_sarif_rule(_message(code)) for code in codes],
    }
    results = [_sarif_result(each, codes.index(each.finding.code)) for each in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _message(code: str) -> Message:
    return CATALOGUE.get(code) or OWN_CODES[code]


def _sarif_rule(message: Message) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": message.code,
        "name": message.name,
        "shortDescription": {"text": message.template},
        "defaultConfiguration": {"level": _SARIF_LEVELS[message.level]},
    }
    if message.code in CATALOGUE:
        rule["helpUri"] = f"{DOCUMENTATION}/{message.code.lower()}/"
    return rule


def _sarif_result(placed: Placed, index: int) -> dict[str, Any]:
    finding, reference = placed
    location: dict[str, Any] = {}
    if finding.key is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.origin, "kind": "resource"}]
    if reference:
        file, colon, line = reference.rpartition(":")
        physical: dict[str, Any] = {"artifactLocation": {"uri": file if colon else reference}}
        if colon:
            physical["region"] = {"startLine": int(line)}
        location["physicalLocation"] = physical
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _SARIF_LEVELS[finding.level],
        "message": {"text": finding.message},
        "locations": [location] if location else [],
        "partialFingerprints": {"mizzen/v1": "|".join(fingerprint(finding))},
    }
