"""ReferenceGrant and BackendTLSPolicy: who may refer across namespaces, and TLS towards backends."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from mizzen.api.gateway_api.references import LocalObjectReference, LocalPolicyTargetReference
from mizzen.api.message import Message
from mizzen.api.meta import Object

SubjectAltNameType = Literal["Hostname", "URI"]


class ReferenceGrantFrom(Message, frozen=True, kw_only=True):
    """Objects that may refer."""

    group: str = ""
    kind: str = ""
    namespace: str = ""


class ReferenceGrantTo(Message, frozen=True, kw_only=True):
    """Objects that may be referred to; all of the kind if no name is given."""

    group: str = ""
    kind: str = ""
    name: str = ""


class ReferenceGrantSpec(Message, frozen=True, kw_only=True):
    """Any of the first may refer to any of the second."""

    from_: tuple[ReferenceGrantFrom, ...] = field(name="from", default=())
    to: tuple[ReferenceGrantTo, ...] = ()


class ReferenceGrant(Object, frozen=True, kw_only=True):
    """The kind ReferenceGrant; it stands in the namespace of what is referred to."""

    spec: ReferenceGrantSpec = ReferenceGrantSpec()


class SubjectAltName(Message, frozen=True, kw_only=True):
    """A name that a backend's certificate must have."""

    type: SubjectAltNameType | None = None
    hostname: str = ""
    uri: str = ""


class BackendTLSPolicyValidation(Message, frozen=True, kw_only=True):
    """How a backend's certificate is checked."""

    ca_certificate_refs: tuple[LocalObjectReference, ...] = ()
    well_known_ca_certificates: str = field(name="wellKnownCACertificates", default="")
    hostname: str = ""
    subject_alt_names: tuple[SubjectAltName, ...] = ()


class BackendTLSPolicySpec(Message, frozen=True, kw_only=True):
    """TLS towards the targets."""

    target_refs: tuple[LocalPolicyTargetReference, ...] = ()
    validation: BackendTLSPolicyValidation | None = None
    options: Mapping[str, str] = {}


class BackendTLSPolicy(Object, frozen=True, kw_only=True):
    """The kind BackendTLSPolicy."""

    spec: BackendTLSPolicySpec = BackendTLSPolicySpec()
