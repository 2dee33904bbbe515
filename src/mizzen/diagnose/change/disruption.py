"""What a real Envoy does to open connections when it is told something else.

In: what one proxy was and will be told. Out: a `Forecast`. The rules, each observed with real Envoys:

- A listener of which nothing but filter chains changes is updated in place. A chain that is the same message in both
  stays with its connections; those of every other old chain are cut once the drain time is over.
- A listener of which anything else changes is replaced, and all its connections are cut then. So they are where it is
  removed. In this comparison repeated fields count as sets, and a default that is stated as absent.
- A changed cluster is warmed and replaces the old one. Open requests, upgraded and TCP connections go on over the old
  connections; idle ones are closed. A cluster or an endpoint that is gone cuts nothing by itself either.
- Routes, endpoints, extensions and secrets change under open connections; new requests and handshakes see them.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from mizzen.compile import resource
from mizzen.diagnose.change import fields, listeners
from mizzen.diagnose.change.changes import few
from mizzen.diagnose.change.clusters import TLS_FIELDS, describe, tls_mode
from mizzen.diagnose.change.told import Reader, Told
from mizzen.diagnose.dump import Json

Update = Literal["added", "removed", "in place", "replaced"]
Effect = Literal[
    "pod replaced",
    "new listener",
    "chains drain",
    "in place",
    "cluster warm-up",
    "route only",
    "endpoint only",
    "secrets rotate",
    "extension only",
]


_EFFECTS: Mapping[str, Effect] = {
    resource.CLUSTER: "cluster warm-up",
    resource.ROUTE: "route only",
    resource.ENDPOINT: "endpoint only",
    resource.SECRET: "secrets rotate",
    resource.EXTENSION: "extension only",
}
"""Of types that cut nothing, the gravest first."""


class ListenerUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """How Envoy takes one changed listener."""

    name: str
    address: str
    update: Update
    because: tuple[str, ...] = ()
    """The fields for which it cannot be made in place."""
    drained: tuple[str, ...] = ()
    """Titles of the chains whose connections are cut."""
    kept: int = 0
    """Chains whose connections stay."""
    marks: frozenset[str] = frozenset()
    """The contents of the drained chains."""

    @property
    def cuts(self) -> bool:
        """Whether connections that are open through it may be cut."""
        return self.update in ("removed", "replaced") or bool(self.drained)

    def cuts_chain(self, chain: Json) -> bool:
        """Whether a connection on this chain is cut."""
        return self.update in ("removed", "replaced") or fields.canonical(chain) in self.marks

    def __str__(self) -> str:
        where = self.name if self.address.replace(":", "_") == self.name else f"{self.name} at {self.address}"
        if self.update == "removed":
            return f"{where} is removed: its connections drain"
        if self.update == "replaced":
            return f"{where} is replaced, for its {', '.join(self.because)}: all its connections drain"
        if self.update == "added":
            return f"{where} is new"
        if not self.drained:
            return f"{where} changes in place, no chain that is in use"
        return f"{where} changes in place: connections of {few(self.drained)} drain, of {self.kept} other chains stay"


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to the connections of one proxy."""

    effects: tuple[Effect, ...] = ()
    """The gravest first; empty where nothing is sent."""
    listeners: tuple[ListenerUpdate, ...] = ()
    warmed: tuple[str, ...] = ()
    """Clusters that are replaced once they are warm."""
    tls: tuple[str, ...] = ()
    """What changes in TLS or identity for new connections."""

    @property
    def cuts(self) -> bool:
        """Whether any open connection may be cut."""
        return "pod replaced" in self.effects or any(each.cuts for each in self.listeners)

    def updates(self) -> Mapping[str, ListenerUpdate]:
        """Changed listeners by name."""
        return {each.name: each for each in self.listeners}


def update_listener(name: str, old: Json | None, new: Json | None) -> ListenerUpdate:
    """How Envoy takes the change of one listener."""
    if old is None or new is None:
        there = old or new or {}
        return ListenerUpdate(name=name, address=listeners.address(there), update="added" if old is None else "removed")
    because = tuple(_outside_chains(old, new))
    if not new.get("filterChains"):
        because = (*because, "filterChains, of which none is left")
    if because:
        return ListenerUpdate(name=name, address=listeners.address(old), update="replaced", because=because)
    before = listeners.chains(old)
    stay = _marks(new, default=False), _marks(new, default=True)
    drained = {
        title: fields.canonical(chain)
        for title, chain in before.items()
        if fields.canonical(chain) not in stay[chain is old.get("defaultFilterChain")]
    }
    return ListenerUpdate(
        name=name,
        address=listeners.address(old),
        update="in place",
        drained=tuple(drained),
        kept=len(before) - len(drained),
        marks=frozenset(drained.values()),
    )


def _marks(listener: Json, *, default: bool) -> frozenset[str]:
    chains = [listener.get("defaultFilterChain")] if default else listener.get("filterChains", ())
    return frozenset(fields.canonical(chain) for chain in chains if chain)


def _outside_chains(old: Json, new: Json) -> Iterator[str]:
    for field in dict.fromkeys((*old, *new)):
        if field not in listeners.CHAINS and fields.equivalent(old.get(field)) != fields.equivalent(new.get(field)):
            yield field


# -- a whole proxy ----------------------------------------------------------------------------------------------------


def forecast(reader: Reader, old: Told, new: Told) -> Forecast:
    """What becomes of the connections of this proxy."""
    if old.incarnation != new.incarnation:
        return Forecast(effects=("pod replaced",))
    changed = {url: changed_names(old, new, url) for url in (resource.LISTENER, *_EFFECTS)}
    updates, tls, warmed = [], [], []
    for name in changed[resource.LISTENER]:
        before, after = _both(reader, old, new, resource.LISTENER, name)
        updates.append(update_listener(name, before, after))
        if before is not None and after is not None and _sockets(before) != _sockets(after):
            tls.append(f"at {name}: what it takes of TLS")
    tls += [f"secret {name}" for name in changed[resource.SECRET]]
    for name in changed[resource.CLUSTER]:
        before, after = _both(reader, old, new, resource.CLUSTER, name)
        if before is not None and after is not None:
            warmed.append(describe(name))
            tls += _cluster_tls(name, before, after)
    return Forecast(
        effects=(*_listener_effects(updates), *(effect for url, effect in _EFFECTS.items() if changed[url])),
        listeners=tuple(updates),
        warmed=tuple(warmed),
        tls=tuple(dict.fromkeys(tls)),
    )


def changed_names(old: Told, new: Told, type_url: str) -> list[str]:
    """The resources of one type that differ, by name; what is merely no longer asked for does not count."""
    before, after = old.sets[type_url], new.sets[type_url]
    if before == after:
        return []
    names = {each.name for each in after.upserts_since(before)}.union(after.names_gone_since(before))
    wanted = new.asked.get(type_url)
    return sorted(names if wanted is None else names & wanted)


def _both(reader: Reader, old: Told, new: Told, type_url: str, name: str) -> tuple[Json | None, Json | None]:
    return reader.printed(old.sets[type_url].get(name)), reader.printed(new.sets[type_url].get(name))


def _listener_effects(updates: list[ListenerUpdate]) -> Iterator[Effect]:
    if any(each.update in ("removed", "replaced") for each in updates):
        yield "new listener"
    if any(each.drained for each in updates):
        yield "chains drain"
    if any(each.update == "added" or (each.update == "in place" and not each.drained) for each in updates):
        yield "in place"


def _cluster_tls(name: str, old: Json, new: Json) -> Iterator[str]:
    if tls_mode(old) != tls_mode(new):
        yield f"to {describe(name)}: {tls_mode(old)} → {tls_mode(new)}"
    elif any(old.get(field) != new.get(field) for field in TLS_FIELDS):
        yield f"to {describe(name)}: whom it expects, or what it shows"


def _sockets(listener: Json) -> frozenset[str]:
    chains = listeners.chains(listener).items()
    return frozenset(f"{title} {fields.canonical(chain.get('transportSocket'))}" for title, chain in chains)
