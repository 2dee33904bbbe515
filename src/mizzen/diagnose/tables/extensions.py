"""`proxy-config ecds`: extension configurations that a proxy discovered by name.

In: the EcdsConfigDump sections, merged (Envoy writes one a kind of filter). Out: messages and their table.
"""

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json, MissingSection
from mizzen.diagnose.table import Table

COLUMNS = ("ECDS NAME", "TYPE")


def select_extensions(source: Dump) -> list[Json]:
    """The discovered configurations, sorted by type and name."""
    sections = source.sections("Ecds")
    if not sections:
        raise MissingSection("Ecds")
    entries = (entry for section in sections for entry in dump.items(section, "ecds_filters"))
    found = [f for entry in entries if (f := dump.message(entry, "ecds_filter"))]
    return sorted(found, key=lambda f: (_type(f), dump.text(f, "name")))


def build_table(extensions: list[Json]) -> Table:
    """Name and type of each; the type without its usual prefix."""
    return Table(columns=COLUMNS, rows=tuple((dump.text(e, "name"), _type(e)) for e in extensions))


def _type(extension: Json) -> str:
    url = dump.message(extension, "typed_config").get("@type")
    return str(url).removeprefix("type.googleapis.com/") if url else ""
