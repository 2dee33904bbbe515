"""Objects of one kind: all of them, or those of a namespace.

In: a kind, as a `Key` spells it. Out: sorted keys. There is one index of each sort for a kind, whoever asks, so that a
change is sorted in but once.
"""

import functools
from typing import cast

from mizzen.api.meta import Key
from mizzen.incremental import Engine, Index


@functools.cache
def _all(kind: str) -> Index:
    return Index(kind, "all", lambda _key, _value: ((),))


@functools.cache
def _by_namespace(kind: str) -> Index:
    return Index(kind, "namespace", lambda key, _value: (key[1],))


def of_kind(db: Engine, kind: str) -> tuple[Key, ...]:
    """All objects of a kind."""
    return cast(tuple[Key, ...], db.lookup(_all(kind), ()))


def in_namespace(db: Engine, kind: str, namespace: str) -> tuple[Key, ...]:
    """The objects of a kind in a namespace."""
    return cast(tuple[Key, ...], db.lookup(_by_namespace(kind), namespace))
