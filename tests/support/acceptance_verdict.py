"""Whether an Envoy has taken all that it was told: one run of one Envoy, and the list of what is wrong.

In: a case's engine and a proxy of the case. Out: a `Verdict`: how many resources of each type were sent, and the
faults. Looked at are the answers on the stream, Envoy's own counters, its configuration as it stands, and its log, in
which nothing may be said above the level of information: that is where deprecated fields show.
"""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import acceptance_control
import acceptance_envoy
import golden
import msgspec
from acceptance_control import Control
from acceptance_envoy import Envoy

from mizzen.incremental import Engine

_LOOK_EVERY = 0.03
_STILL_COMING = re.compile(r"(warming_clusters|total_listeners_warming)$")
_BAD = re.compile(r"(update_rejected|init_fetch_timeout|deprecated_feature_use|listener_create_failure)$")
_SURROUNDINGS = re.compile(r"Dynatrace OpenTelemetry resource detector is configured but could not detect")
"""What is missing on a machine of tests, and no fault of the configuration."""

_PLACES = {
    "cds": ("ClustersConfigDump", "dynamic_active_clusters", "cluster", "name"),
    "eds": ("EndpointsConfigDump", "dynamic_endpoint_configs", "endpoint_config", "cluster_name"),
    "lds": ("ListenersConfigDump", "dynamic_listeners", "active_state", "listener"),
    "rds": ("RoutesConfigDump", "dynamic_route_configs", "route_config", "name"),
    "sds": ("SecretsConfigDump", "dynamic_active_secrets", "secret", "name"),
    "ecds": ("EcdsConfigDump", "ecds_filters", "ecds_filter", "name"),
}
_COUNTERS = {
    "cds": re.compile(r"cluster_manager\.cds\.update_success$"),
    "eds": re.compile(r"cluster\..*\.update_success$"),
    "lds": re.compile(r"listener_manager\.lds\.update_success$"),
    "rds": re.compile(r"http\..*\.rds\..*\.update_success$"),
    "sds": re.compile(r"sds\..*\.update_success$"),
    "ecds": re.compile(r"extension_config_discovery\..*\.update_success$"),
}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one Envoy made of what it was told."""

    sent: Mapping[str, int]
    """Resources sent, by the short name of their type."""
    faults: tuple[str, ...]
    seconds: float


async def judge(db: Engine, case: golden.Case, name: str, patience: float = 60.0) -> Verdict:
    """Run an Envoy as the case's proxy of that name until it has taken everything, at most `patience` seconds."""
    identity = golden.node_of(case.proxies[name])
    identity["metadata"]["MIZZEN_DIALECT"] = "envoy"
    with acceptance_envoy.room() as root:
        started = time.monotonic()
        async with (
            acceptance_control.serve(db, root / acceptance_envoy.XDS, root / acceptance_envoy.SDS) as control,
            acceptance_envoy.running(root, identity, case.objects) as envoy,
        ):
            faults = await faults_now(envoy, control, patience)
            seconds = time.monotonic() - started
            faults += control.unanswered()
            if not envoy.has_ended:
                faults += _miscounts(await envoy.stats(), control.sent())
            sent = {kind: len(names) for kind, names in control.sent().items()}
    return Verdict(sent=sent, faults=tuple(faults), seconds=seconds)


async def faults_now(envoy: Envoy, control: Control, patience: float = 60.0, said: int = 0) -> list[str]:
    """What is wrong once Envoy has settled; of its log counts what comes after the first `said` characters."""
    faults = [*await _settle(envoy, control, patience), *control.rejections()]
    if not envoy.has_ended:
        faults += await _differences(envoy, control, 0 if faults else patience)
    lines = (line for line in envoy.log[said:].splitlines() if not _SURROUNDINGS.search(line))
    return [*faults, *(f"Envoy says: {line}" for line in lines)]


async def _differences(envoy: Envoy, control: Control, patience: float) -> list[str]:
    """What Envoy holds otherwise than it was told; what it has just let go of it may not have said yet."""
    deadline = time.monotonic() + patience
    while True:
        found = list(_compare(await envoy.config_dump(), control.sent()))
        if not found or time.monotonic() >= deadline:
            return found
        await asyncio.sleep(_LOOK_EVERY)


async def _settle(envoy: Envoy, control: Control, patience: float) -> list[str]:
    """Wait until Envoy serves with all that it was told; otherwise what it still waits for.

    Patience begins when it has connected: how long it takes to start is no matter of what it is told.
    """
    while not len(control.discovery.connections) and not envoy.has_ended:  # noqa: ASYNC110 (either may come)
        await asyncio.sleep(_LOOK_EVERY)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and not envoy.has_ended:
        await asyncio.sleep(_LOOK_EVERY)
        if control.is_settled() and control.rejections():
            return []  # What was refused may be waited for without end.
        if (await envoy.get("/ready")).strip() == "LIVE" and control.is_settled():
            stats = await envoy.stats()
            if not any(value for stat, value in stats.items() if _STILL_COMING.search(stat)):
                return []
    if envoy.has_ended:
        return ["Envoy has ended"]
    state = (await envoy.get("/ready")).strip()
    waiting = [t for _, t in re.findall(r'"(name|target_names)": "([^"]+)"', await envoy.get("/init_dump"))]
    return [f"not settled within {patience:.0f} s: {state}, waiting for {', '.join(waiting) or 'nothing known'}"]


def _miscounts(stats: Mapping[str, int], sent: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Counters of refusals that are not 0, and those of successes that do not reach what was sent."""
    faults = [f"{stat} is {value}" for stat, value in sorted(stats.items()) if value and _BAD.search(stat)]
    for kind, counter in _COUNTERS.items():
        taken = sum(value for stat, value in stats.items() if counter.search(stat))
        least = min(len(sent.get(kind, ())), 1) if kind in ("cds", "lds") else len(sent.get(kind, ()))
        if taken < least:
            faults.append(f"{kind.upper()}: {taken} successful updates are counted, {least} or more are due")
    return faults


def _compare(dump: list[dict[str, Any]], sent: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """What stands in Envoy's configuration beside what was sent."""
    for kind, (section, entries, *path) in _PLACES.items():
        found = [part for part in dump if part["@type"].endswith(f".{section}")]
        standing = {_name(entry, *path) for part in found for entry in part.get(entries, ())}
        for name in sorted(set(sent.get(kind, ())) - standing):
            yield f"{kind.upper()}: {name} does not stand in Envoy's configuration"
        for part in found:
            for entry in part.get(entries, ()):
                if "error_state" in entry:
                    yield f"{kind.upper()}: {entry['error_state'].get('details', entry['error_state'])}"
            for warming in ("dynamic_warming_clusters", "dynamic_warming_secrets"):
                yield from (f"{kind.upper()}: warming: {json.dumps(one)[:200]}" for one in part.get(warming, ()))


def _name(entry: Mapping[str, Any], outer: str, inner: str) -> str:
    value = entry.get(outer, {}).get(inner, "")
    return value if isinstance(value, str) else value.get("name", "")
