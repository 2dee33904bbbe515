"""Secret and ConfigMap: named bytes and texts."""

from collections.abc import Mapping

from mizzen.api.meta import Object


class Secret(Object, frozen=True, kw_only=True):
    """The kind Secret; read it through `get`. Its values never show in its repr."""

    type: str = ""
    data: Mapping[str, bytes] = {}
    string_data: Mapping[str, str] = {}
    """Texts that replace entries of `data` (an API server merges them, a file does not)."""
    immutable: bool | None = None

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
    binary_data: Mapping[str, bytes] = {}
    immutable: bool | None = None
