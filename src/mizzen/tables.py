"""Inputs in tables, and indexes over them; what was read of them, and by whom, is not known here.

In: values under tuple keys whose first element names their table. Out: values, the sorted keys under an index entry,
and for each change the entries that it made another. An index is built when it is first asked, and kept from then on.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

Key = tuple[str, ...]


class Index:
    """Input keys of one table grouped by what queries ask for, such as "virtual services by host".

    `group` gives the index keys of an input; an input may stand under several, or none. `Engine.lookup` returns the
    sorted input keys under one index key, and goes stale only when that tuple changes.
    """

    __slots__ = ("group", "name", "table")

    def __init__(self, table: str, name: str, group: Callable[[Key, Any], Iterable[Hashable]]) -> None:
        self.table = table
        self.name = name
        self.group = group

    def __repr__(self) -> str:
        return f"Index({self.table} by {self.name})"


Entry = tuple[Index, Hashable]
"""An index and one of its groups: the address of the keys that stand there."""


class Tables:
    """All inputs."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[Key, Any]] = {}
        self._entries: dict[Index, dict[Hashable, dict[Key, None]]] = {}
        self._indexes_of: dict[str, list[Index]] = {}

    def get(self, key: Key) -> Any:
        """A value; None where there is none."""
        return self._tables.get(key[0], {}).get(key)

    def keys(self, table: str) -> Iterator[Key]:
        """The keys of a table, in no order."""
        return iter(self._tables.get(table, ()))

    def items(self) -> Iterator[tuple[Key, Any]]:
        """All keys with their values, in no order."""
        return (item for table in self._tables.values() for item in table.items())

    def put(self, key: Key, value: Any) -> list[Entry] | None:
        """Set a value: the entries that are others now, or None where an equal value was there already."""
        table = self._tables.setdefault(key[0], {})
        old = table.get(key)
        if old is not None and (old is value or (type(old) is type(value) and old == value)):
            return None
        table[key] = value
        return self._regroup(key, old, value)

    def take(self, key: Key) -> list[Entry] | None:
        """Remove a value: the entries that are others now, or None where there was none."""
        table = self._tables.get(key[0], {})
        if key not in table:
            return None
        return self._regroup(key, table.pop(key), None)

    def entry(self, entry: Entry) -> tuple[Key, ...]:
        """The sorted keys of an entry."""
        index, group = entry
        entries = self._entries.get(index)
        if entries is None:
            entries = self._build(index)
        return tuple(sorted(entries.get(group, ())))

    def _build(self, index: Index) -> dict[Hashable, dict[Key, None]]:
        entries: dict[Hashable, dict[Key, None]] = {}
        for key, value in self._tables.get(index.table, {}).items():
            for group in index.group(key, value):
                entries.setdefault(group, {})[key] = None
        self._entries[index] = entries
        self._indexes_of.setdefault(index.table, []).append(index)
        return entries

    def _regroup(self, key: Key, old: Any, new: Any) -> list[Entry]:
        changed: list[Entry] = []
        for index in self._indexes_of.get(key[0], ()):
            entries = self._entries[index]
            before = dict.fromkeys(index.group(key, old)) if old is not None else {}
            after = dict.fromkeys(index.group(key, new)) if new is not None else {}
            for group in before:
                if group not in after:
                    del entries[group][key]
                    if not entries[group]:
                        del entries[group]
                    changed.append((index, group))
            for group in after:
                if group not in before:
                    entries.setdefault(group, {})[key] = None
                    changed.append((index, group))
        return changed
