"""The engine's memory, node by node: what was read, by whom, and in which state it is.

In: reads, as `Engine` records them. Out: the readers of a node. When it is worked out again is the engine's business.
"""

from typing import Any

CLEAN, MAYBE, DIRTY, CHECKING, RUNNING = range(5)
"""The last two, while a value is being worked out: bringing up to date what the node read, or running it."""
_FEW = 4


class Node:
    """One memoised value: a leaf (an input or index entry) or a query, whose address is its function and arguments."""

    __slots__ = ("address", "dep_changed", "deps", "is_barrier", "readers", "root", "state", "value")

    def __init__(self, address: Any, value: Any = None, state: int = CLEAN, *, is_barrier: bool = False) -> None:
        self.address = address
        self.is_barrier = is_barrier
        """Whether its readers hear of a change only once it has another value."""
        self.value = value
        self.state = state
        self.dep_changed = False
        """While CHECKING: whether something it read was found changed."""
        self.deps: tuple[Node, ...] = ()
        self.readers: tuple[Node, ...] | dict[Node, None] = ()
        """Who read it: most nodes have one reader or two, for which a dictionary would be large."""
        self.root: Any = None
        """The handle of whoever holds on to it."""

    def add_reader(self, reader: "Node") -> None:
        """Who read it once more counts once."""
        readers = self.readers
        if isinstance(readers, dict):
            readers[reader] = None
        elif reader not in readers:
            more = (*readers, reader)
            self.readers = more if len(more) <= _FEW else dict.fromkeys(more)

    def remove_reader(self, reader: "Node") -> None:
        """It reads this no more, if it ever did."""
        readers = self.readers
        if isinstance(readers, dict):
            readers.pop(reader, None)
        else:
            self.readers = tuple(other for other in readers if other is not reader)
