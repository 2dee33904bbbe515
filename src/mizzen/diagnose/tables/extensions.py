"""`proxy-config ecds`: extension configurations that a proxy discovered by name.

In: the EcdsConfigDump sections, merged (Envoy writes one a kind of filter). Out: messages and their table, or the one
section that they come to.
"""

from collections.abc import Iterator

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json, MissingSection
from mizzen.diagnose.table import Table

COLUMNS = ("ECDS NAME", "TYPE")


def select_extensions(source: Dump) -> list[Json]:
    """The discovered configurations, sorted by type and name."""
    found = [f for entry in _entries(source) if (f := dump.message(entry, "ecds_filter"))]
    return sorted(found, key=lambda f: (_type(f), dump.text(f, "name")))


def merge_sections(source: Dump) -> Json:
    """All sections as one, without its `@type`."""
    entries = list(_entries(source))
    return {"ecdsFilters": entries} if entries else {}


def _entries(source: Dump) -> Iterator[Json]:
    sections = source.sections("Ecds")
    if not sections:
        raise MissingSection("Ecds")
    return (entry for section in sections for entry in dump.items(section, "ecds_filters"))


def build_table(extensions: list[Json]) -> Table:
    """Name and type of each; the type without its usual prefix."""
    return Table(columns=COLUMNS, rows=tuple((dump.text(e, "name"), _type(e)) for e in extensions))


def _type(extension: Json) -> str:
    url = dump.message(extension, "typed_config").get("@type")
    return str(url).removeprefix("type.googleapis.com/") if url else ""
