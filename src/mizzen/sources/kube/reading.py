"""An object's bytes to the object, with what is not read left out on the way.

In: JSON of one object and the `Resource` it was asked for as. Out: a `Reading`. Kubernetes' own kinds go straight into
their Structs; the server has validated them. Those of the mesh are judged like ones in files, since a CRD's schema and
webhooks may have been off when they were written. An object that does not decode counts as absent, but for policies,
which are closed.
"""

from typing import NamedTuple

import msgspec

from mizzen.api.kinds import Kind, is_our_group
from mizzen.api.kube.pods import as_running
from mizzen.api.meta import Key, Object, without_remarks
from mizzen.api.problems import Problem
from mizzen.api.scalars import decode_scalar
from mizzen.sources.judgement import judge
from mizzen.sources.kube.depth import shallow
from mizzen.sources.kube.selection import REVISION
from mizzen.sources.kube.served import Resource


class Reading(NamedTuple):
    """What one object of the server comes to."""

    key: Key
    resource_version: str
    object: Object | None
    """What to serve; None when nothing of it can be."""
    problems: tuple[Problem, ...] = ()
    revision: str | None = None
    """The revision that it says it is written for; None where it says none."""


class Head(NamedTuple):
    """By what an object is recognised before it is read."""

    key: Key
    resource_version: str
    revision: str | None


class _Labels(msgspec.Struct, frozen=True):
    revision: str | None = msgspec.field(name=REVISION, default=None)


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    labels: _Labels | None = None


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


_named = msgspec.json.Decoder(_Named)


class Reader:
    """Reads objects of one resource."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._kind = resource.kind
        self._decoder = msgspec.json.Decoder(resource.kind.type, dec_hook=decode_scalar)
        self._judged = is_our_group(resource.kind.group)

    def head(self, raw: bytes | msgspec.Raw) -> Head:
        """What it is, unread. Raises msgspec.DecodeError for what is no object."""
        metadata = _named.decode(raw).metadata
        key = Key(self._kind.name, metadata.namespace, metadata.name)
        return Head(key, metadata.resource_version, metadata.labels.revision if metadata.labels else None)

    def read(self, raw: bytes | msgspec.Raw, head: Head | None = None) -> Reading:
        """The object, its head read already or not. Raises msgspec.DecodeError for what is no object."""
        try:
            return self._read(raw, head)
        except RecursionError:
            return self._read(shallow(bytes(raw)), head)

    def _read(self, raw: bytes | msgspec.Raw, head: Head | None) -> Reading:
        key, version, revision = head or self.head(raw)
        if not self._judged:
            try:
                found = self._decoder.decode(raw)
            except (msgspec.ValidationError, UnicodeError):
                pass  # Judged below, which forgives more and names every fault.
            else:
                held = as_running(_without_remarks(found, self._kind))
                return Reading(key, version, held, revision=revision)
        document = msgspec.json.decode(raw)
        # Items of a list do not say what they are.
        document |= {"apiVersion": self._api_version, "kind": self._kind.kind}
        decoded, problems, stand_in = judge(document)
        return Reading(key, version, decoded.object or stand_in, problems, revision)

    @property
    def _api_version(self) -> str:
        group, version = self._kind.group, self._resource.version
        return f"{group}/{version}" if group else version


def _without_remarks(found: Object, kind: Kind) -> Object:
    """The object without annotations that mean nothing."""
    annotations = found.metadata.annotations
    kept = without_remarks(annotations, of_tools=kind.takes_remarks)
    if kept is annotations:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, annotations=kept))
