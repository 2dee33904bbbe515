"""A table as data: what a diagnosis found, before anybody decides how it looks.

In: columns and cells as text. Out: the same, frozen, with the two numbers that istioctl gives its table writer for
this kind of table. `mizzen.cli.render` turns it into aligned text.
"""

import msgspec

Row = tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under a header; an empty header prints no header line."""

    columns: Row = ()
    rows: tuple[Row, ...] = ()
    padding: int = 5
    """Blanks between a column's longest cell and the next column."""
    min_width: int = 0

    def lines(self) -> tuple[Row, ...]:
        """The header, if there is one, and the rows."""
        return ((self.columns, *self.rows)) if self.columns else self.rows
