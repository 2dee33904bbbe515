"""Which of the edited objects is behind the change of which class.

In: the edited objects, and a function that gives what one proxy is told if one of these edits had not been made. Out:
for each class the edits without which it would be told something else. Where several edits come to the same each alone
changes nothing; then all of them are named.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from mizzen.api.meta import Key, Object
from mizzen.compile.resource import ResourceSet

Sets = Mapping[str, ResourceSet]
Without = Callable[[Key], Mapping[str, Sets]]
"""What each of the asked proxies is told without one edit."""


def edits(old: Mapping[Key, Object], new: Mapping[Key, Object]) -> tuple[Key, ...]:
    """The objects that were added, removed or changed."""
    return tuple(key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key))


def assign(
    edited: Iterable[Key], representatives: Mapping[str, Sets], without: Without
) -> Mapping[str, tuple[Key, ...]]:
    """The edits behind each class, by its representative proxy."""
    keys = tuple(edited)
    found: dict[str, list[Key]] = {reference: [] for reference in representatives}
    for key in keys if len(keys) > 1 else ():
        told = without(key)
        for reference, sets in representatives.items():
            if _differ(sets, told.get(reference)):
                found[reference].append(key)
    return {reference: tuple(own) or keys for reference, own in found.items()}


def _differ(one: Sets, other: Sets | None) -> bool:
    return other is None or any(one[url] != other.get(url) for url in one)


def say(keys: Sequence[Key], old: Mapping[Key, Object], new: Mapping[Key, Object]) -> tuple[str, ...]:
    """Objects with what was done to them."""
    return tuple(f"{key} {_done(key, old, new)}" for key in keys)


def _done(key: Key, old: Mapping[Key, Object], new: Mapping[Key, Object]) -> str:
    if key not in old:
        return "added"
    return "changed" if key in new else "removed"
