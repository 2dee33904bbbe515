"""A small incremental engine: inputs, memoised queries, and exactly the re-runs that a change requires.

In: `Engine.set` and `Engine.remove` of inputs (`tables`). Out: the values
of functions decorated `@query`. While a query runs, the engine records what it reads (inputs, index entries, other
queries). A change marks the direct readers *dirty* and everything above them *maybe stale*, no more; asked again, a
maybe-stale query first brings what it read up to date, in the order it was read, and re-runs only if one of those
really changed. A re-run that gives an equal value stops the change there (early cutoff). At a `barrier` it stops before
anything above is so much as marked.

Absence is read like presence: an input that does not exist yet and an empty index entry are nodes too. What a query
raises is its value: it is remembered, raised to whoever asks, and re-run when what it read changes. Values must not be
mutated by anyone.

A `Root` keeps a query's value alive; `take_stale_roots` names those that a change may have reached. `collect` forgets
nodes that no root needs. Beside its value a query may make *remarks*, which nothing depends on: diagnostics of what it
decided. The engine belongs to one thread and knows nothing of meshes.
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

from mizzen.nodes import CHECKING, CLEAN, DIRTY, MAYBE, RUNNING, Node
from mizzen.tables import Entry, Tables

# Whoever asks an engine knows this module alone: these two stand in the engine's own signatures.
from mizzen.tables import Index as Index
from mizzen.tables import Key as Key

_BARRIER = "is_barrier"

P = ParamSpec("P")
T = TypeVar("T")


class CycleError(Exception):
    """A query asked, through others, for its own value. Do not catch it in a query: it is an error of the program."""


class _Failure:
    """What a query raised, as a value. Two are equal when they raise the same type with the same arguments."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Failure)
            and type(self.error) is type(other.error)
            and self.error.args == other.error.args
        )

    __hash__ = None  # type: ignore[assignment]


class Raised(NamedTuple):
    """A query that raises by itself, and the inputs that it read itself."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    error: Exception
    reads: tuple[Key, ...]


class Root(Generic[T]):
    """A query value that somebody outside holds on to: shared by all who ask for it, counted, and released by each."""

    __slots__ = ("_engine", "_node", "holders")

    def __init__(self, engine: "Engine", node: Node) -> None:
        self._engine = engine
        self._node = node
        self.holders = 0

    @property
    def stale(self) -> bool:
        """Whether a change since the last `value()` may have reached it."""
        self._engine._settle()
        return bool(self._node.state != CLEAN)

    def value(self) -> T:
        """The value now, brought up to date first; raises what the query raises."""
        result: T = self._engine._ask(self._node)
        return result

    def release(self) -> None:
        """Undo one `Engine.root`; the last one makes the node collectable."""
        self.holders -= 1
        if self.holders == 0:
            self._node.root = None
            self._engine._stale_roots.pop(self, None)
            self._engine._loosen(self._node)


class Engine:
    """Inputs and the memo of every query asked over them."""

    def __init__(self) -> None:
        self._inputs = Tables()
        self._input_nodes: dict[Key, Node] = {}
        self._nodes: defaultdict[Any, dict[Hashable, Node]] = defaultdict(dict)
        """Queries and index entries by function or index, then by arguments or group."""
        self._stack: list[tuple[Node, dict[Node, None]]] = []
        self._stale_roots: dict[Root[Any], None] = {}
        self._reached: list[Node] = []
        """Barriers at which a change has stopped; their readers have not heard of it."""
        self._marks = 0
        """Counts the barriers that were found to be others now."""
        self._loose: dict[Node, None] = {}
        self._remarks: dict[Node, list[Any]] = {}
        self.runs = 0
        """Query executions since the start."""
        self.hits = 0
        """Query values answered from the memo since the start."""
        self.runs_by_query: dict[str, int] = {}
        """Executions by the query's name."""
        self.failures: dict[Any, Exception] = {}
        """What queries raise now, by function and arguments, whether or not someone above made up for it."""

    # -- inputs ---------------------------------------------------------------------------------------------------

    def set(self, key: Key, value: Any) -> bool:
        """Set an input; False when it already had an equal value, which changes nothing."""
        if self._stack:
            raise RuntimeError("a query may not set inputs")
        return self._touch(key, value, self._inputs.put(key, value))

    def remove(self, key: Key) -> bool:
        """Remove an input; False when there was none."""
        if self._stack:
            raise RuntimeError("a query may not remove inputs")
        return self._touch(key, None, self._inputs.take(key))

    def peek(self, key: Key) -> Any:
        """An input's value without recording a read; for those outside queries."""
        return self._inputs.get(key)

    def keys(self, table: str) -> Iterator[Key]:
        """The keys of a table without recording a read, in no order; for those outside queries."""
        return self._inputs.keys(table)

    def inputs(self) -> dict[Key, Any]:
        """A copy of all inputs, without recording reads; for those outside queries."""
        return dict(self._inputs.items())

    def _touch(self, key: Key, new: Any, changed: list[Entry] | None) -> bool:
        if changed is None:
            return False
        node = self._input_nodes.get(key)
        if node is not None:
            node.value = new
            self._mark_readers(node)
        for entry in changed:
            index, group = entry
            node = self._nodes[index].get(group)
            if node is not None:
                node.value = self._inputs.entry(entry)
                self._mark_readers(node)
        return True

    # -- reads ----------------------------------------------------------------------------------------------------

    def input(self, key: Key) -> Any:
        """An input's value, or None where there is none; either way a dependency of the asking query."""
        if not self._stack:
            return self.peek(key)
        node = self._input_nodes.get(key)
        if node is None:
            node = self._input_nodes[key] = Node(None, key, self.peek(key))
        self._stack[-1][1][node] = None
        return node.value

    def lookup(self, index: Index, group: Hashable) -> tuple[Key, ...]:
        """The sorted keys of the inputs under `group`; empty where there are none."""
        if not self._stack:
            return self._inputs.entry((index, group))
        entries = self._nodes[index]
        node = entries.get(group)
        if node is None:
            node = entries[group] = Node(index, group, self._inputs.entry((index, group)))
        self._stack[-1][1][node] = None
        result: tuple[Key, ...] = node.value
        return result

    def _query(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Node:
        memo = self._nodes[function]
        node = memo.get(args)
        if node is None:
            node = memo[args] = Node(function, args, state=DIRTY, is_barrier=hasattr(function, _BARRIER))
            if not self._stack:
                self._loosen(node)
        return node

    def _ask(self, node: Node) -> Any:
        if self._stack:
            self._stack[-1][1][node] = None
        elif self._reached:
            self._settle()
        if node.state == CLEAN:
            self.hits += 1
        else:
            self._bring_up_to_date(node)
        if isinstance(node.value, _Failure):
            raise node.value.error.with_traceback(None)
        return node.value

    # -- change ---------------------------------------------------------------------------------------------------

    def _mark_readers(self, node: Node) -> None:
        """A leaf changed: its direct readers become dirty, everything above them maybe stale."""
        self._mark_maybe(node)
        _tell_readers(node)

    def _mark_maybe(self, start: Node) -> None:
        """Everything above a node, but nothing above a barrier."""
        waiting = [start]
        while waiting:
            for node in waiting.pop().readers:
                if node.state == CLEAN:
                    node.state = MAYBE
                    if node.root is not None:
                        self._stale_roots[node.root] = None
                    (self._reached if node.is_barrier else waiting).append(node)

    def _settle(self) -> None:
        """Look at the barriers that changes have reached, and let through what has made one another."""
        while self._reached:
            reached, self._reached = self._reached, []
            for node in reached:
                if node.state != CLEAN and node.readers:
                    self._bring_up_to_date(node)

    def _bring_up_to_date(self, node: Node) -> None:
        """Anew, if meanwhile a barrier let something through: then what was read before may be outdated."""
        if node.state in (CHECKING, RUNNING):
            raise self._cycle(node)
        while node.state != CLEAN:
            marks = self._marks
            if node.state == MAYBE:
                node.state, node.dep_changed = CHECKING, False
                try:
                    self._check_deps(node)
                finally:
                    node.state = DIRTY
                if not node.dep_changed and marks == self._marks:
                    node.state = CLEAN
                    self.hits += 1
                    return
            self._run(node)

    def _check_deps(self, node: Node) -> None:
        """Bring what the node read up to date, in the order it was read, until one is found changed."""
        for dep in node.deps:
            # As a rule it is: for each that runs many are checked.
            if dep.state == CLEAN:
                continue
            if dep.state in (CHECKING, RUNNING):
                node.dep_changed = True
                return
            self._bring_up_to_date(dep)
            if node.dep_changed:
                return

    def _run(self, node: Node) -> None:
        function, args = node.of, node.args
        marks = self._marks
        self.runs += 1
        name = function.__qualname__
        self.runs_by_query[name] = self.runs_by_query.get(name, 0) + 1
        reads: dict[Node, None] = {}
        self._stack.append((node, reads))
        self._remarks.pop(node, None)
        node.state = RUNNING
        value: Any
        try:
            value = function(self, *args)
            self.failures.pop((function, args), None)
        except Exception as error:
            value = _Failure(error)
            self.failures[function, args] = error
        finally:
            self._stack.pop()
            node.state = DIRTY
        self._rewire(node, reads)
        if marks != self._marks:
            return
        node.state = CLEAN
        if _equal(node.value, value):
            return
        node.value = value
        if node.is_barrier and any(reader.state == CLEAN for reader in node.readers):
            self._marks += 1
            self._mark_maybe(node)
        _tell_readers(node)

    def _cycle(self, node: Node) -> CycleError:
        """The same error whichever member of the cycle was asked first."""
        running = [member for member, _ in self._stack]
        members = running[running.index(node) :] if node in running else [node, *running]
        return CycleError("these queries need each other: " + ", ".join(sorted({_describe(m) for m in members})))

    def _rewire(self, node: Node, reads: dict[Node, None]) -> None:
        before, after = node.deps, tuple(reads)
        if before == after:
            return
        for dep in before:
            if dep not in reads:
                dep.remove_reader(node)
                self._loosen(dep)
        known = set(before)
        for dep in after:
            if dep not in known:
                dep.add_reader(node)
        node.deps = after

    # -- remarks and failures -------------------------------------------------------------------------------------

    def remark(self, value: Hashable) -> None:
        """Say something beside the value of the running query; its next run starts anew."""
        self._remarks.setdefault(self._stack[-1][0], []).append(value)

    def remarks(self) -> list[Any]:
        """What queries that some root needs have remarked, each once; as old as the roots are."""
        return list(dict.fromkeys(value for node, made in self._remarks.items() if _is_needed(node) for value in made))

    def raised(self) -> Iterator[Raised]:
        """The queries that some root needs and that raise by themselves, whether or not someone made up for it."""
        for (function, args), error in self.failures.items():
            node = self._nodes[function][args]
            if _is_needed(node) and all(dep.value != node.value for dep in node.deps):
                yield Raised(function, args, error, tuple(dep.args for dep in node.deps if dep.of is None))

    # -- roots and collection -------------------------------------------------------------------------------------

    def root(self, function: Callable[..., T], *args: Any) -> Root[T]:
        """A handle on the query's value; the same handle for the same arguments, until each holder released it."""
        node = self._query(function.__wrapped__, args)  # type: ignore[attr-defined]
        if node.is_barrier:
            raise TypeError("a barrier is up to date before anybody asks whether it was stale")
        if node.root is None:
            node.root = Root(self, node)
        root: Root[T] = node.root
        root.holders += 1
        return root

    def take_stale_roots(self) -> list[Root[Any]]:
        """The roots that changes since the last call may have reached, in the order they were reached."""
        self._settle()
        stale, self._stale_roots = list(self._stale_roots), {}
        return stale

    def _loosen(self, node: Node) -> None:
        if not node.readers and node.root is None:
            self._loose[node] = None

    def collect(self) -> int:
        """Forget every node that no root needs; the number forgotten. Cost follows what is forgotten, not the memo."""
        self._settle()
        waiting, self._loose = list(self._loose), {}
        forgotten = 0
        while waiting:
            node = waiting.pop()
            if node.readers or node.root is not None:
                continue
            memo: dict[Any, Node] = self._input_nodes if node.of is None else self._nodes[node.of]
            if memo.get(node.args) is not node:
                continue
            del memo[node.args]
            self.failures.pop((node.of, node.args), None)
            self._remarks.pop(node, None)
            forgotten += 1
            for dep in node.deps:
                dep.remove_reader(node)
                if not dep.readers and dep.root is None:
                    waiting.append(dep)
            node.deps = ()
        return forgotten

    def __len__(self) -> int:
        """Nodes remembered: inputs and index entries that were read, and query values."""
        return sum(map(len, self._nodes.values())) + len(self._input_nodes)


def _tell_readers(node: Node) -> None:
    """It has another value."""
    for reader in node.readers:
        if reader.state == MAYBE:
            reader.state = DIRTY
        elif reader.state == CHECKING:
            reader.dep_changed = True


def _equal(old: Any, new: Any) -> bool:
    return old is new or (type(old) is type(new) and bool(old == new))


def _is_needed(start: Node) -> bool:
    """Whether any root reads the node, itself or through others."""
    reached = {start: None}
    waiting = [start]
    for node in waiting:  # grows meanwhile
        if node.root is not None:
            return True
        waiting += [reader for reader in node.readers if reader not in reached]
        reached |= dict.fromkeys(node.readers)
    return False


def _describe(node: Node) -> str:
    return f"{node.of.__qualname__}{node.args!r}"


def query(function: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Engine, P], T]:
    """Memoise `function(engine, *args)` by its arguments, which are positional and hashable.

    The function must be pure but for what it reads through the engine, and returns a value that nobody mutates.
    """

    @functools.wraps(function)
    def ask(engine: Engine, *args: Any) -> T:
        result: T = engine._ask(engine._query(function, args))
        return result

    return ask  # type: ignore[return-value]


def barrier(function: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Engine, P], T]:
    """As `query`, between much that reads it and what changes often, but rarely this: one group of a long list, say.

    It is brought up to date before anything is asked after a change, and those above it hear of the change only if its
    value is another. So it should cost little, and be an answer also where nobody would ask any more. It is no root.
    """
    setattr(function, _BARRIER, True)
    return query(function)


def attempt(ask: Callable[..., T], db: Engine, *args: Any) -> T | None:
    """A query's value, or None where it raises: for what must not take its neighbours down.

    The failure stays in `Engine.failures`, where whoever watches the engine reports it.
    """
    try:
        return ask(db, *args)
    except CycleError:
        raise
    except Exception:
        return None
