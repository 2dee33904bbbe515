"""How old what a control plane knows has become: warnings beside the tables of `proxy-status`.

In: a control plane's `/debug/sources`. Out: a sentence for each source that it hears nothing from. Proxies that are
SYNCED with such a control plane have what was true when it last heard.
"""

from collections.abc import Iterable

import msgspec

from mizzen.diagnose.sync import format_age


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """Where a control plane has objects from."""

    name: str
    age_seconds: float = 0.0
    troubles: tuple[str, ...] = ()


def read_sources(page: str) -> list[Source]:
    """The sources that a page tells; none of a control plane that has no such page."""
    try:
        return msgspec.json.decode(page, type=list[Source])
    except msgspec.DecodeError:
        return []


def warn(control_plane: str, sources: Iterable[Source]) -> list[str]:
    """A sentence for each source that is not heard from."""
    return [
        f"{control_plane} has heard nothing from {source.name} for {format_age(source.age_seconds)}; what it sends is "
        f"from then: {'; '.join(source.troubles) or 'it does not say why'}"
        for source in sources
        if source.age_seconds > 0
    ]
