"""Problems: what is wrong with something a user wrote, as a value.

A Problem names the object, the path of the field in it, says what is wrong in a sentence and carries a stable code.
Decoding makes them here; validation, analysis and the compiler make their own. Reporting is the business of who
receives them (log, status, `analyze`, metrics).
"""

from typing import Literal

from msgspec import Struct

from mizzen.api.meta import Key

Level = Literal["error", "warning", "info"]


class Problem(Struct, frozen=True, kw_only=True):
    """One fault of one object; an "error" means that some of what the user wrote is not in force."""

    message: str
    """What is wrong, without the object and the path."""
    code: str
    """A stable word for the kind of fault, such as `invalid-field`."""
    level: Level = "error"
    key: Key | None = None
    """The object; None when what was read is too broken to tell."""
    path: str = ""
    """The field in the object, as `spec.http[1].route[0].weight`; empty for the whole."""

    def __str__(self) -> str:
        parts = (str(self.key) if self.key else "", self.path, self.message)
        return ": ".join(part for part in parts if part)
