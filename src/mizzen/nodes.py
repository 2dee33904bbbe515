"""The engine's memory, node by node: what was read, by whom, and in which state it is.

In: reads, as `Engine` records them. Out: the readers of a node. When it is worked out again is the engine's business.
"""

from typing import Any

CLEAN, MAYBE, DIRTY, CHECKING, RUNNING = range(5)
"""The last two, while a value is being worked out: bringing up to date what the node read, or running it."""
_FEW = 128


class Node:
    """One memoised value: of a query (`of` is its function, `args` the arguments), of an index entry (the index and the
    group) or of an input (None and the key)."""

    __slots__ = ("args", "dep_changed", "deps", "is_barrier", "of", "readers", "root", "state", "value")

    def __init__(self, of: Any, args: Any, value: Any = None, state: int = CLEAN, *, is_barrier: bool = False) -> None:
        self.of = of
        self.args = args
        self.is_barrier = is_barrier
        """Whether its readers hear of a change only once it has another value."""
        self.value = value
        self.state = state
        self.dep_changed = False
        """While CHECKING: whether something it read was found changed."""
        self.deps: tuple[Node, ...] = ()
        self.readers: tuple[Node, ...] | dict[Node, None] = ()
        """Who read it: few nodes have so many readers that a dictionary, five times as large, is worth it."""
        self.root: Any = None
        """The handle of whoever holds on to it."""

    def add_reader(self, reader: "Node") -> None:
        """Somebody reads this who did not before."""
        readers = self.readers
        if isinstance(readers, dict):
            readers[reader] = None
        else:
            more = (*readers, reader)
            self.readers = more if len(more) <= _FEW else dict.fromkeys(more)

    def remove_reader(self, reader: "Node") -> None:
        """It reads this no more."""
        readers = self.readers
        if isinstance(readers, dict):
            readers.pop(reader, None)
        else:
            self.readers = tuple([other for other in readers if other is not reader])
