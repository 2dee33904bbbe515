"""The tables that users write: which manifests, which requests, what each should meet.

In: the plain data of one YAML file. Out: a `Suite`; or DecodeError whose path leads to the field at fault. Unknown keys
are errors: a misspelt expectation would otherwise hold for ever.
"""

import datetime
import re
from typing import Any, Literal

import msgspec

from mizzen.diagnose.trace.verdict import Outcome
from mizzen.errors import DecodeError

Scalar = str | int | float | bool
Headers = dict[str, Scalar | None]
_LOCATED = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*?)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")


def _spell(field: str) -> str:
    """Field names as they stand in YAML: camelCase, and `from`, which Python keeps for itself."""
    head, *rest = field.split("_")
    return "from" if field == "source" else head + "".join(word.capitalize() for word in rest)


class Expect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_spell):
    """What a request should meet; what is not stated is not looked at."""

    outcome: Outcome | None = None
    status: int | None = None
    flag: str | None = None
    """The response flag of the proxy that answers; `-` for none."""
    details: str | None = None
    destination: str | None = None
    """`NAME.NAMESPACE` of the Service or the workload, or `HOST:PORT` outside the mesh."""
    subset: str | None = None
    shares: dict[str, int] | None = None
    """Weights by subset, Service (`NAME.NAMESPACE`) or both (`NAME.NAMESPACE/SUBSET`)."""
    path: str | None = None
    """As it arrives at the program, with the query."""
    host: str | None = None
    request: Headers | None = None
    """Headers that arrive at the program; null for one that must not."""
    response: Headers | None = None
    """Headers that proxies set on the response; null for one that none sets, or that is removed."""
    location: str | None = None
    policy: str | None = None
    """`NAMESPACE/NAME` or `NAMESPACE/NAME[RULE]` of the AuthorizationPolicy that decides; `none` where none allows."""
    cause: str | None = None
    """`Kind NAMESPACE/NAME` of the object to blame."""
    timeout: str | None = None
    """Of the first proxy's route: `5s`, or `none`."""
    retries: int | None = None
    certain: bool | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_spell):
    """What tests of a file have in common where they say nothing else."""

    source: str = ""
    method: str = "GET"
    headers: Headers = {}
    token: str = ""
    jwt: str = ""
    principal: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_spell):
    """One request, and what it should meet."""

    url: str
    name: str = ""
    source: str = ""
    method: str = ""
    headers: Headers = {}
    """Beside those of `defaults`; null takes one of these away."""
    token: str = ""
    """A token to send as bearer."""
    jwt: str = ""
    """A file with one, relative to the table."""
    principal: str = ""
    cert: str = ""
    """A file with the source's own certificate (PEM), relative to the table."""
    connect_to: str = ""
    takes: float = 0.0
    answers: int = 200
    at_once: int = 1
    earlier: int = 0
    gives_up: float = 0.0
    authorizer: int = 0
    """What an external authorizer answers that is asked."""
    expect: Expect | None = None

    @property
    def title(self) -> str:
        """How results call it."""
        return self.name or f"{self.method or 'GET'} {self.url}" + (f" from {self.source}" if self.source else "")


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_spell):
    """One file."""

    tests: tuple[Case, ...]
    manifests: tuple[str, ...] = ()
    """Relative to the file."""
    mesh: str = ""
    dialect: Literal["istio", "envoy"] = "envoy"
    now: datetime.datetime | None = None
    """The time against which tokens and certificates are held, so that a test does not expire with them."""
    defaults: Asked = Asked()


def read_suite(plain: Any) -> Suite:
    """The suite of a file's data; raises DecodeError."""
    if not isinstance(plain, dict):
        raise DecodeError("is not a table of tests: it has no key `tests`")
    try:
        suite = msgspec.convert(plain, Suite)
    except msgspec.ValidationError as wrong:
        raise _located(str(wrong)) from wrong
    for number, case in enumerate(suite.tests):
        if not (case.source or suite.defaults.source):
            raise DecodeError("says not where it comes `from`", f"tests[{number}]")
        if case.token and case.jwt:
            raise DecodeError("is `token` or `jwt`, not both", f"tests[{number}].token")
    if suite.now is not None and suite.now.tzinfo is None:
        raise DecodeError("has no time zone", "now")
    return suite


def _located(text: str) -> DecodeError:
    """msgspec's message as one with a path, which of an unknown key leads to that key."""
    found = _LOCATED.match(text)
    what, path = (found["what"], (found["path"] or "").lstrip(".")) if found else (text, "")
    unknown = _UNKNOWN.match(what)
    if unknown is None:
        return DecodeError(what[:1].lower() + what[1:], path)
    return DecodeError(f"unknown key {unknown['name']!r}", f"{path}.{unknown['name']}".lstrip("."))


def spell(value: Scalar) -> str:
    """A header's value as YAML's reader leaves it, as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)
