"""What `trace --from-log` makes of the logs that the truth suite's requests left behind.

In: the compared faults with the lines of all Envoys, and the world of objects. Out: for each fault the objects that its
own lines are laid to, when all lines are read as one log.
"""

from collections.abc import Iterable

from fault_runs import Compared

from mizzen.diagnose.access_logs import blame, groups
from mizzen.diagnose.access_logs.lines import parse_line
from mizzen.diagnose.trace.world import World


def accused(compared: Iterable[Compared], world: World) -> dict[str, set[str]]:
    """By the fault's name the objects as `Kind/namespace/name`; none for a fault that left no line of anything wrong."""
    pairs = [(each, parse_line(line.text)) for each in compared for line in each.lines]
    known = [(each, entry) for each, entry in pairs if entry is not None]
    assert len(known) == len(pairs), "an access log's line was not read"
    entries = [entry for _, entry in known]
    found, _ = groups.group(entries)
    whom = {(group.code, group.mark, group.subject): blame.by_objects(world, group) for group in found}
    result: dict[str, set[str]] = {}
    for (each, _), key in zip(known, groups.assign(entries), strict=True):
        if key is not None:
            result.setdefault(each.fault.name, set()).update(_names(whom.get(key, blame.Blame())))
    return result


def _names(found: blame.Blame) -> set[str]:
    """The object, and those that the lines cannot tell from it."""
    return {f"{found.kind}/{found.namespace}/{found.name}", *(other.replace(" ", "/") for other in found.also)}
