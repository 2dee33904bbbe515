"""Secret and ConfigMap: named bytes and texts."""

from collections.abc import Mapping
from typing import ClassVar

from mizzen.api.meta import Object
from mizzen.api.scalars import Base64


class Secret(Object, frozen=True, kw_only=True):
    """The kind Secret; read it through `get`. Its values never show in its repr."""

    type: str = ""
    data: Mapping[str, Base64] = {}
    string_data: Mapping[str, str] = {}
    """Texts that replace entries of `data` (an API server merges them, a file does not)."""
    immutable: bool | None = None

    confidential: ClassVar[bool] = True

    def get(self, name: str) -> bytes | None:
        """The entry, wherever it was written."""
        text = self.string_data.get(name)
        return text.encode() if text is not None else self.data.get(name)

    def __repr__(self) -> str:
        names = sorted({*self.data, *self.string_data})
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, type={self.type!r}, keys={names})"


class ConfigMap(Object, frozen=True, kw_only=True):
    """The kind ConfigMap."""

    data: Mapping[str, str] = {}
    binary_data: Mapping[str, Base64] = {}
    immutable: bool | None = None
