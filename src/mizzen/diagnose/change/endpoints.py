"""Changes of endpoints: which come, go, or count for more or less.

In: a load assignment on both sides. Out: `Change`s, with addresses while they are few and numbers where they are many.
"""

from collections.abc import Iterator, Mapping

from mizzen.diagnose import dump
from mizzen.diagnose.change.changes import Change, changed, generic, plural
from mizzen.diagnose.change.clusters import describe
from mizzen.diagnose.change.fields import canonical, differences
from mizzen.diagnose.dump import Json

_SHOWN = 4
_EMPTY: Json = {}


def compare(name: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    """What changes in this assignment."""
    before, after = _hosts(old or _EMPTY), _hosts(new or _EMPTY)
    texts = _listed("added", [h for h in after if h not in before])
    texts += _listed("removed", [h for h in before if h not in after])
    stay = [host for host in before if host in after and before[host] != after[host]]
    for field, word in (("healthStatus", "health"), ("loadBalancingWeight", "weight"), ("priority", "priority")):
        moved = [host for host in stay if before[host].get(field) != after[host].get(field)]
        texts += _listed(f"with another {word}", moved)
    if not texts and old is not None and new is not None:
        texts += generic(differences(dict(old), dict(new)))
    if old is None and not texts:
        texts.append("no endpoints")
    yield from changed("endpoint", describe(name), texts)


def _hosts(assignment: Json) -> Mapping[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for group in dump.items(assignment, "endpoints"):
        for each in dump.items(group, "lb_endpoints"):
            host = {**each, "priority": dump.number(group, "priority"), "locality": dump.field(group, "locality")}
            found[_address(each)] = host
    return found


def _address(endpoint: Json) -> str:
    address = dump.message(endpoint, "endpoint", "address")
    socket = dump.message(address, "socket_address")
    if socket:
        return f"{dump.text(socket, 'address')}:{dump.number(socket, 'port_value')}"
    return dump.text(address, "pipe", "path") or canonical(dict(address))


def _listed(what: str, hosts: list[str]) -> list[str]:
    if not hosts:
        return []
    if len(hosts) <= _SHOWN:
        return [f"{', '.join(hosts)} {what}"]
    return [f"{plural(len(hosts), 'endpoint')} {what}"]
