"""Which objects of an API server are taken: by the revision that they are written for, and by their namespace.

In: the names of a revision, the mesh config's `discoverySelectors`, the labels of namespaces. Out: yes or no for an
object by its metadata alone, and, when one of them becomes another, the parts of the server's state that are taken
from then on. What is not taken is neither decoded nor held.

Objects of the mesh that are labelled for another revision are not taken; a Gateway of the Gateway API is, so that
proxies which still serve it lose nothing when it is given to another revision. Objects of namespaces that no selector
selects are not taken, of whatever kind; Namespaces themselves and what belongs to none always are.
"""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from mizzen.api.kinds import Kind, is_our_group
from mizzen.api.meta import Key
from mizzen.api.selectors import Selector, selects

REVISION = "istio.io/rev"
"""The label by which an object says for which revision it is written."""

_GATEWAY = "KubernetesGateway"

Labels = Mapping[str, str]


class Part(NamedTuple):
    """A part of what a server has of a kind; all of it where nothing is said."""

    namespace: str = ""
    revisions: tuple[str, ...] = ()
    """Only what is labelled for one of these."""


class Change(NamedTuple):
    """What another selection means."""

    parts: tuple[Part, ...] = ()
    """What may hold objects that were not taken before."""
    shrinks: bool = False
    """Whether some of what was taken may be so no longer."""


NO_CHANGE = Change()


class Selection:
    """The selection in force."""

    def __init__(
        self,
        revisions: Iterable[str] = (),
        selectors: Iterable[Selector] = (),
        always: Iterable[Key] = (),
        never: Iterable[Key] = (),
    ) -> None:
        """Without revisions objects are taken whatever their label says.

        `always` are taken from any namespace; `never` are the control plane's own affair, and no object of the mesh.
        """
        self.revisions: Set[str] = frozenset(revisions)
        self._selectors = tuple(selectors)
        self._always, self._never = frozenset(always), frozenset(never)
        self._labels: dict[str, Labels] = {}
        self._selected: set[str] = set()

    def takes(self, kind: Kind, key: Key, revision: str | None) -> bool:
        """Whether an object is taken; `revision` is its label, None where it has none."""
        if key in self._never:
            return False
        if revision is not None and self.revisions and is_revisioned(kind) and revision not in self.revisions:
            return False
        return not key.namespace or self.takes_namespace(key.namespace) or key in self._always

    def takes_namespace(self, name: str) -> bool:
        """Whether objects of a namespace are taken."""
        return not self._selectors or name in self._selected

    def set_revisions(self, revisions: Iterable[str]) -> Change:
        """A revision has these names now."""
        before, self.revisions = self.revisions, frozenset(revisions)
        if before == self.revisions:
            return NO_CHANGE
        if not before or not self.revisions:
            return Change((Part(),), shrinks=bool(self.revisions))
        added = tuple(sorted(self.revisions - before))
        return Change((Part(revisions=added),) if added else (), shrinks=bool(before - self.revisions))

    @property
    def selectors(self) -> tuple[Selector, ...]:
        """What namespaces are selected by; without any, all are."""
        return self._selectors

    def set_selectors(self, selectors: Iterable[Selector]) -> Change:
        """The mesh config selects namespaces by these now."""
        wanted = tuple(selectors)
        if wanted == self._selectors:
            return NO_CHANGE
        had_any, before = bool(self._selectors), self._selected
        self._selectors = wanted
        self._selected = {name for name, labels in self._labels.items() if self._is_selected(labels)}
        if not had_any or not wanted:
            return Change((Part(),) if not wanted else (), shrinks=bool(wanted))
        return _gained(self._selected - before, shrinks=bool(before - self._selected))

    def see_namespace(self, name: str, labels: Labels | None) -> Change:
        """A namespace has these labels now; None when it is gone."""
        if labels is None:
            self._labels.pop(name, None)
        else:
            self._labels[name] = labels
        before = name in self._selected
        now = labels is not None and self._is_selected(labels)
        (self._selected.add if now else self._selected.discard)(name)
        if before == now or not self._selectors:
            return NO_CHANGE
        return _gained({name} if now else set(), shrinks=before)

    def _is_selected(self, labels: Labels) -> bool:
        return any(selects(selector, labels) for selector in self._selectors)


def is_revisioned(kind: Kind) -> bool:
    """Whether objects of a kind are written for a revision."""
    return is_our_group(kind.group) and kind.name != _GATEWAY


def _gained(names: Set[str], *, shrinks: bool) -> Change:
    return Change(tuple(Part(namespace=name) for name in sorted(names)), shrinks=shrinks)
