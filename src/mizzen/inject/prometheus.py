"""One scrape for application and proxy: the pod's Prometheus annotations point at the agent.

In: the pod's annotations. Out: `Scrape`: the annotations as they become, and the user's own in the form in which the
agent reads them (`ISTIO_PROMETHEUS_ANNOTATIONS`). `restore_annotations` is the inverse. A target that the agent could
not scrape, or that is a port of the proxy, is a Problem.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mizzen.api.problems import Problem
from mizzen.inject.overrides import annotation_problem

TARGETS = "prometheus.istio.io/scrape-targets"
PORT, PATH, SCRAPE = "prometheus.io/port", "prometheus.io/path", "prometheus.io/scrape"
MERGED_PATH = "/stats/prometheus"

_DEFAULT_PATH = "/metrics"
_RESERVED = frozenset({15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090})
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")

Annotations = Mapping[str, str]


class Scrape(msgspec.Struct, frozen=True, kw_only=True):
    """The pod's annotations after merging, and what the agent must scrape in turn (empty: nothing)."""

    annotations: Annotations
    application: Mapping[str, Any] = {}


def merge_scrape(annotations: Annotations, *, status_port: int) -> tuple[Scrape, tuple[Problem, ...]]:
    """Annotations that send Prometheus to the agent; unchanged if they do so already or scraping is off."""
    scrape, path, port = (_find(annotations, name) for name in ("scrape", "path", "port"))
    untouched = Scrape(annotations=annotations)
    if scrape == "false" or port == str(status_port):
        return untouched, ()
    targets, problems = _read_targets(annotations.get(TARGETS, ""), status_port)
    if port is not None and not targets:
        problems += _check_port(port, status_port, _spelling(annotations, "port"))
    if problems:
        return untouched, problems
    application: dict[str, Any] = {}
    if targets:
        application = {"scrape": scrape or "true", **targets[0], "targets": list(targets)}
    elif (scrape, path, port) != (None, None, None):
        application = {"scrape": scrape or "", "path": path or "", "port": port or ""}
    merged = {SCRAPE: "true", PORT: str(status_port), PATH: MERGED_PATH}
    return Scrape(annotations={**_without(annotations), **merged}, application=application), ()


def restore_annotations(annotations: Annotations, application: Mapping[str, Any]) -> dict[str, str]:
    """The annotations before merging, in the usual spelling; those of a pod that was not merged stay."""
    if annotations.get(PATH) != MERGED_PATH or annotations.get(SCRAPE) != "true":
        return dict(annotations)
    restored = _without(annotations)
    targets = application.get("targets")
    if targets:
        restored[TARGETS] = ",".join(f"{target['port']}:{target['path']}" for target in targets)
        return restored
    for name, field in ((SCRAPE, "scrape"), (PATH, "path"), (PORT, "port")):
        if application.get(field):
            restored[name] = str(application[field])
    return restored


def _read_targets(text: str, status_port: int) -> tuple[tuple[dict[str, str], ...], tuple[Problem, ...]]:
    targets: list[dict[str, str]] = []
    problems: list[Problem] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        port, _, path = part.partition(":")
        problems += _check_port(port, status_port, TARGETS)
        targets.append({"path": path or _DEFAULT_PATH, "port": port})
    return tuple(targets), tuple(problems)


def _check_port(text: str, status_port: int, annotation: str) -> tuple[Problem, ...]:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= 65535:
        message = f"{text!r} is no port between 1 and 65535"
    elif number == status_port or number in _RESERVED:
        message = f"port {number} belongs to the proxy and cannot be scraped as the application's"
    else:
        return ()
    return (annotation_problem(annotation, message),)


def _find(annotations: Annotations, name: str) -> str | None:
    spelling = _spelling(annotations, name)
    return annotations.get(spelling)


def _spelling(annotations: Annotations, name: str) -> str:
    """The annotation's name as this pod spells it: any separators do, as for Prometheus' own relabelling."""
    usual = f"prometheus.io/{name}"
    others = (key for key in annotations if _UNSAFE.sub("_", key) == f"prometheus_io_{name}")
    return usual if usual in annotations else next(others, usual)


def _without(annotations: Annotations) -> dict[str, str]:
    names = {f"prometheus_io_{name}" for name in ("scrape", "path", "port")}
    return {key: text for key, text in annotations.items() if _UNSAFE.sub("_", key) not in names and key != TARGETS}
