"""Findings: one message of the catalogue about one object, and how its arguments are printed.

In: a `Message`, its arguments, and where it belongs. Out: a `Finding`. Texts print as Go prints them, since operators
grep for them: lists as `[a b]`, `%q` in double quotes.
"""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from mizzen.api.meta import Key
from mizzen.api.validate.faults import quote

Level = Literal["Error", "Warning", "Info"]
LEVELS: tuple[Level, ...] = ("Error", "Warning", "Info")
"""The gravest first."""

_VERB = re.compile(r"%[vsdq]")
_SHOWN_KINDS = {"KubernetesGateway": "Gateway"}


class Message(msgspec.Struct, frozen=True):
    """One code of the catalogue."""

    code: str
    name: str
    level: Level
    template: str

    def text(self, *args: object) -> str:
        """The template with its arguments, one for each verb."""
        rest = iter(args)
        return _VERB.sub(lambda verb: _print(verb.group(), next(rest)), self.template)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A message about an object."""

    code: str
    level: Level
    message: str
    key: Key | None = None
    """The object; None for what belongs to none."""
    path: str = ""
    """The field that shows best what is meant, as `spec.hosts[0]`; empty for the object."""
    cluster: str = ""
    """Where more than one cluster is analysed."""

    @property
    def origin(self) -> str:
        """The object as `Kind namespace/name`."""
        return describe(self.key) if self.key is not None else ""


def describe(key: Key) -> str:
    """An object as messages name it; both kinds of Gateway are `Gateway`."""
    return str(key._replace(kind=_SHOWN_KINDS.get(key.kind, key.kind)))


def full_name(key: Key) -> str:
    """`namespace/name`, or the name of an object of the whole cluster."""
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def report(message: Message, key: Key | None, *args: object, path: str = "") -> Finding:
    """The finding of that message on an object."""
    return Finding(code=message.code, level=message.level, message=message.text(*args), key=key, path=path)


def _print(verb: str, value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{' '.join(_print('%q' if verb == '%q' else '%v', each) for each in value)}]"
    return quote(str(value)) if verb == "%q" else str(value)


def format_labels(labels: Iterable[tuple[str, str]]) -> str:
    """Labels as `a=b,c=d`, sorted."""
    return ",".join(f"{name}={value}" for name, value in sorted(labels))
