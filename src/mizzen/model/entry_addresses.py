"""Virtual addresses of ServiceEntries: which hosts are to have some, and which they have.

In: ServiceEntries. Out: a `Wish` by key. Hosts without a resolution have none, nor wildcards unless each name is
resolved by itself, nor entries that state an address of their own or whose label says no. Who gives the addresses is
elsewhere.
"""

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.incremental import Engine, query
from mizzen.model import objects

ALLOCATES = "networking.istio.io/enable-autoallocate-ip"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a ServiceEntry asks for."""

    hosts: tuple[str, ...] = ()
    """Those that are to be given addresses."""
    stated: tuple[str, ...] = ()
    """Addresses that the user has written."""
    given: tuple[tuple[str, str], ...] = ()
    """Hosts and addresses that were given before."""


@query
def entry_keys(db: Engine) -> tuple[Key, ...]:
    """All ServiceEntries."""
    return objects.of_kind(db, "ServiceEntry")


@query
def address_wish(db: Engine, key: Key) -> Wish | None:
    """What the ServiceEntry of that key asks for."""
    entry: ServiceEntry | None = db.input(key)
    if entry is None:
        return None
    spec, status = entry.spec, entry.status
    given = tuple((each.host, each.value) for each in status.addresses) if status is not None else ()
    if spec.addresses or spec.resolution == "NONE" or entry.metadata.labels.get(ALLOCATES) == "false":
        return Wish(stated=spec.addresses, given=given)
    wildcards = spec.resolution == "DYNAMIC_DNS"
    hosts = tuple(dict.fromkeys(host for host in spec.hosts if wildcards or not host.startswith("*")))
    return Wish(hosts=hosts, given=given)
