"""Control planes as commands ask them, whichever way they are reached.

In: a `Reach`. Out: `Plane`s, which tell their proxies, what each was sent, their builds, and single debug pages. Over
HTTP that is the monitoring port, over ADS the debug types.
"""

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from mizzen.cli import ads, targets
from mizzen.cli.reach import Reach
from mizzen.diagnose import dump, sync
from mizzen.errors import MizzenError

ABSENT = "Proxy not connected to this Pilot instance"
UNKNOWN_PAGE = "404 page not found"
UNSENT = "unable to find config dump in Istiod responses"


class Build(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a program tells of its build; the JSON keys are istioctl's."""

    version: str
    revision: str = ""
    status: str = ""
    golang_version: str = ""
    """Which language runs it, under istiod's key."""
    python_version: str = ""
    tag: str = ""


class Statuses(NamedTuple):
    """What a control plane tells of its proxies."""

    proxies: Sequence[sync.ProxyStatus]
    document: Mapping[str, Any]
    """The same as istioctl prints it for `-o json`."""


class Plane(Protocol):
    """One control plane."""

    @property
    def name(self) -> str:
        """How it is called where it says nothing itself."""
        ...

    def statuses(self, namespace: str) -> Statuses:
        """Its proxies of that namespace; of all when it is empty."""
        ...

    def sent(self, proxy: str) -> dump.Dump | None:
        """What it sent to a proxy; None where it does not serve it."""
        ...

    def release(self) -> tuple[str, Build]:
        """Its name and its build."""
        ...

    def page(self, name: str) -> str:
        """A debug page with its parameters (`edsz?proxyID=…`), errors as they are worded."""
        ...

    def metrics(self) -> str:
        """Its metrics in Prometheus' text; empty where the way to it leads to none."""
        ...


def find_planes(reach: Reach) -> list[Plane]:
    """The control planes to ask."""
    if reach.access is not None:
        return [AdsPlane(reach.access)]
    return [HttpPlane(plane) for plane in targets.find_control_planes(mesh=reach.mesh, addresses=reach.monitoring)]


def find_sent(planes: Sequence[Plane], proxy: str) -> dump.Dump:
    """What the first control plane that knows the proxy sent it."""
    for plane in planes:
        found = plane.sent(proxy)
        if found is not None:
            return found
    raise MizzenError(UNSENT)


class HttpPlane:
    """Over its monitoring port."""

    def __init__(self, plane: targets.ControlPlane) -> None:
        self._plane = plane
        self.name = plane.name

    def statuses(self, namespace: str) -> Statuses:
        """Of `/debug/syncz`."""
        found = sync.in_namespace(sync.read_syncz(self._plane.get_json("debug/syncz"), self.name), namespace)
        return Statuses(found, sync.build_document(found, {"Component": "istiod", "ID": self.name}))

    def sent(self, proxy: str) -> dump.Dump | None:
        """Of `/debug/config_dump`."""
        try:
            return dump.parse_dump(self._plane.get(f"debug/config_dump?proxyID={urllib.parse.quote(proxy)}"))
        except targets.NotConnected:
            return None

    def release(self) -> tuple[str, Build]:
        """Of `/version`: `VERSION-REVISION-STATUS`, where a version may hold dashes itself."""
        version, *rest = self._plane.get("version").decode().strip().rsplit("-", 2)
        return self.name, Build(version=version, **dict(zip(("revision", "status"), rest, strict=False)))

    def page(self, name: str) -> str:
        """Of `/debug/…`."""
        try:
            return self._plane.get(f"debug/{name}").decode(errors="replace")
        except targets.UnexpectedStatus as refused:
            return refused.body.decode(errors="replace")
        except targets.NotConnected as absent:
            cause = absent.__cause__
            return cause.body.decode(errors="replace") if isinstance(cause, targets.UnexpectedStatus) else str(absent)

    def metrics(self) -> str:
        """Of `/metrics`."""
        try:
            return self._plane.get("metrics").decode(errors="replace")
        except targets.NotConnected:
            return ""


class AdsPlane:
    """Over ADS."""

    def __init__(self, access: ads.Access) -> None:
        self._access = access
        self.name = access.address

    def statuses(self, namespace: str) -> Statuses:
        """Of `istio.io/debug/syncz`."""
        from mizzen.diagnose import printing

        document = printing.print_message(ads.ask(self._access, ads.SYNCZ))
        configs = [
            config
            for config in document.get("resources", ())
            if not namespace or sync.metadata_of(config).get("NAMESPACE") == namespace
        ]
        told = document.get("controlPlane", {}).get("identifier", "")
        shown = {**document, "resources": configs}
        return Statuses(sync.read_client_configs(configs, sync.control_plane_name(told)), shown)

    def sent(self, proxy: str) -> dump.Dump | None:
        """Of `istio.io/debug/config_dump`."""
        from mizzen.diagnose import printing

        sections = [printing.print_any(packed) for packed in ads.ask(self._access, ads.CONFIG_DUMP, proxy).resources]
        return dump.Dump(tuple(sections)) if sections else None

    def release(self) -> tuple[str, Build]:
        """Of the answer's identifier."""
        identifier = ads.ask(self._access, ads.SYNCZ).control_plane.identifier
        try:
            told = msgspec.json.decode(identifier, type=_Identifier)
        except msgspec.DecodeError as bad:
            raise MizzenError(f"the control plane at {self._access.address} does not say what it is: {bad}") from bad
        return told.ID, told.Info

    def page(self, name: str) -> str:
        """Of `istio.io/debug`."""
        (found,) = ads.ask(self._access, ads.PAGE, name).resources
        return bytes(found.value).decode(errors="replace")

    def metrics(self) -> str:
        """None: no debug type tells them."""
        return ""


class _Identifier(msgspec.Struct, frozen=True):
    ID: str
    Info: Build
