"""`mizzen proxy-status --explain`: why proxies have not what they were sent, and what to do next.

In: control planes with their pages and metrics, and of a local mesh its pods. Out: findings as text, JSON or YAML. What
a proxy holds is compared with what it would be sent now, for the proxy that was named and for those not in step; of
others, as far as they are few, only differences are told. An Envoy that cannot be reached is left out of that.
"""

import datetime
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from mizzen.cli import options, render, targets
from mizzen.cli.planes import Plane, Statuses, find_sent
from mizzen.cli.reach import Reach
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.diagnose.sync_causes.scope import Finding, Told

_COMPARED = 10


def explain(planes: Sequence[Plane], pod: str, *, namespace: str, reach: Reach, output: str) -> None:
    """Print the findings about all proxies, or about one."""
    from mizzen.diagnose.sync_causes import scope, text

    expected = _expected(reach, namespace)
    only = _full_name(pod, namespace, reach)
    statuses = [plane.statuses("" if only else namespace) for plane in planes]
    connected = {proxy.name for answer in statuses for proxy in answer.proxies}
    now = datetime.datetime.now(datetime.UTC)
    told = [_told(plane, answer, now) for plane, answer in zip(planes, statuses, strict=True)]
    findings = [finding for each in told for finding in scope.explain(each, now=now)]
    findings += scope.explain_absent(connected, [only] if only else expected)
    if only:
        findings = [finding for finding in findings if only in finding.proxies]
    suspects = [only] if only else _suspects(findings)
    others = [] if only else sorted(connected.intersection(expected).difference(suspects))[: _COMPARED - len(suspects)]
    drift = _drift(planes, suspects, expected, reach)
    drift |= {name: kinds for name, kinds in _drift(planes, others, expected, reach).items() if kinds}
    if output == "table":
        click.echo(text.render(findings, drift, len(connected)), nl=False)
        return
    document = {"findings": msgspec.to_builtins(findings), "drift": drift}
    click.echo(render.render_as(output, document, indent=2), nl=False)


def _told(plane: Plane, answer: Statuses, now: datetime.datetime) -> "Told":
    from mizzen.diagnose.sync_causes import scope, timing

    try:
        problems = json.loads(plane.page("problems"))
    except ValueError:
        problems = {}  # Another control plane has no such page.
    metrics = plane.metrics()
    return scope.Told(
        proxies=answer.proxies,
        problems=problems if isinstance(problems, dict) else {},
        timings=timing.read_timings(metrics),
        load=timing.read_load(metrics, now.timestamp()),
    )


def _expected(reach: Reach, namespace: str) -> list[str]:
    """The pods of the local mesh that have a proxy; nobody tells of other meshes."""
    if reach.names_control_plane:
        return []
    pods = targets.read_state(reach.mesh).pods
    return [f"{pod.name}.{pod.namespace}" for pod in pods if pod.admin and namespace in ("", pod.namespace)]


def _full_name(pod: str, namespace: str, reach: Reach) -> str:
    """`POD.NAMESPACE` of the proxy that was named; empty where none was."""
    if not pod:
        return ""
    if reach.names_control_plane:
        return targets.qualify(pod, namespace or options.DEFAULT_NAMESPACE)
    return targets.find_proxy(pod, namespace=namespace, mesh=reach.mesh).name


def _suspects(findings: "Iterable[Finding]") -> list[str]:
    """Proxies of which something is not in step; of the many that wait for the control plane none is special."""
    few = (f for f in findings if f.culprit in ("configuration", "proxy"))
    return list(dict.fromkeys(name for finding in few for name in finding.proxies))[:_COMPARED]


def _drift(
    planes: Sequence[Plane], names: Iterable[str], expected: Iterable[str], reach: Reach
) -> dict[str, list[str]]:
    """By proxy, the kinds of resources in which it differs from what it would be sent."""
    from mizzen.diagnose import diff, dump

    found: dict[str, list[str]] = {}
    known = set(expected)
    for name in names:
        if name not in known:
            continue
        try:
            actual = dump.parse_dump(targets.find_proxy(name, namespace="", mesh=reach.mesh).get("config_dump"))
            sent = find_sent(planes, name)
        except MizzenError:
            continue
        found[name] = [each.kind.lower() for each in diff.compare(sent, actual) if each.difference]
    return found
