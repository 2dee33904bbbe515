"""Statuses that the reference control plane wrote, in a form in which what means the same is equal."""

import json
from typing import Any

import golden


def recorded_statuses(case: golden.Case) -> dict[str, Any]:
    return json.loads((case.expected_dir / "status.json").read_text())


def plain(status: dict[str, Any]) -> dict[str, Any]:
    """A status with its lists keyed by what they are about; a conflicted listener's ResolvedRefs comes and goes."""
    found: dict[str, Any] = {k: v for k, v in status.items() if not isinstance(v, list)}
    found["addresses"] = status.get("addresses", [])
    found["conditions"] = conditions(status.get("conditions", []))
    for listener in status.get("listeners", []):
        own = conditions(listener["conditions"])
        if own["Conflicted"][0] == "True":
            own.pop("ResolvedRefs", None)
        found[f"listener {listener['name']}"] = {
            "conditions": own,
            "routes": listener["attachedRoutes"],
            "kinds": [kind["kind"] for kind in listener["supportedKinds"]],
        }
    for field in ("parents", "ancestors"):
        for one in status.get(field, []):
            reference = one.get("parentRef") or one.get("ancestorRef")
            name = f"{field} {json.dumps(reference, sort_keys=True)} {one['controllerName']}"
            found[name] = conditions(one["conditions"])
    return found


def conditions(listed: list[dict[str, Any]]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in listed}
