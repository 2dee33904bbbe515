"""Which webhook configurations would stop a cluster while no control plane answers.

In: an entry of a configuration. Out: a sentence for the operator, or None. An entry that fails closed must not be asked
about the pods that a control plane needs to start, its own and those of the system's namespaces: then nothing could
start that would answer. Nor may validation that fails closed be asked about anything but the mesh's own objects.
"""

from collections.abc import Iterable, Iterator, Mapping

from mizzen.api.selectors import selects
from mizzen.control.webhooks.documents import FAIL, Entry
from mizzen.inject.selection import SYSTEM_NAMESPACES

_METADATA_NAME = "kubernetes.io/metadata.name"
_OURS = ".istio.io"

Labels = Mapping[str, str]


def blocked_by_injection(entry: Entry, spaces: Mapping[str, Labels], own_namespace: str, own: Labels) -> str | None:
    """What a failing entry would keep from starting; `spaces` are the labels of namespaces, `own` our pod's."""
    if entry.failure_policy != FAIL:
        return None
    for name in (*sorted(SYSTEM_NAMESPACES), own_namespace):
        if name not in spaces:
            continue
        pods = own if name == own_namespace else {}
        if _is_asked(entry, {_METADATA_NAME: name, **spaces[name]}, pods):
            what = "the control plane itself" if name == own_namespace else "what the system runs"
            return f"{what} in namespace {name} cannot start while no control plane answers: {entry.name} asks for it"
    return None


def blocked_by_validation(entry: Entry) -> str | None:
    """Why an entry must not fail closed."""
    foreign = sorted({group for rule in entry.rules for group in rule.api_groups if not group.endswith(_OURS)})
    if not foreign:
        return None
    shown = ", ".join(group or "core" for group in foreign)
    return f"{entry.name} is asked about other objects than the mesh's ({shown}), so it stays failing open"


def _is_asked(entry: Entry, namespace: Labels, pod: Labels) -> bool:
    return selects(entry.namespace_selector, namespace) and selects(entry.object_selector, pod)


def warn_once(told: set[str], found: Iterable[str | None]) -> Iterator[str]:
    """The sentences that were not told before; those that no longer hold are forgotten."""
    now = {sentence for sentence in found if sentence}
    yield from sorted(now - told)
    told.clear()
    told |= now
