"""TLS of a listener: its certificates, how clients are validated, and Istio's own options.

In: a listener's `tls`, its Gateway's frontend validation, the Secrets and ConfigMaps that they name, grants. Out: the
TLS settings of an Istio server, and the fault that keeps the listener from being served, if there is one. Whether a
reference is permitted is asked before whether it leads anywhere.
Golden cases: gateway-api/tls-listeners, gateway-api/listener-sets.
"""

from typing import NamedTuple

import msgspec

from mizzen.api.gateway_api.listeners import FrontendTLSValidation, Gateway, Listener
from mizzen.api.gateway_api.references import ObjectReference, SecretObjectReference
from mizzen.api.meta import Key
from mizzen.api.networking.gateway import ServerTLSMode, ServerTLSSettings
from mizzen.incremental import Engine
from mizzen.model.convert import certificates, grants
from mizzen.model.convert.faults import Fault, join

TERMINATE_MODE = "gateway.istio.io/tls-terminate-mode"
CIPHER_SUITES = "gateway.istio.io/tls-cipher-suites"

INVALID_CERTIFICATE = "InvalidCertificateRef"
NOT_PERMITTED = "RefNotPermitted"
INVALID_AUTHORITY = "InvalidCACertificateRef"
INVALID_AUTHORITY_KIND = "InvalidCACertificateKind"

_OPTION_MODES: dict[str, ServerTLSMode] = {"MUTUAL": "MUTUAL", "OPTIONAL_MUTUAL": "OPTIONAL_MUTUAL"}
_MOST_CERTIFICATES = 2
_NETWORK = "topology.istio.io/network"
_NETWORK_PORT = "networking.istio.io/gatewayPort"


class Settings(NamedTuple):
    """TLS of a listener, and what is wrong with it."""

    tls: ServerTLSSettings | None
    fault: Fault | None = None


def listener_tls(db: Engine, gateway: Gateway, owner: Key, listener: Listener, port: int) -> Settings:
    """The settings of a listener; `owner` is the Gateway or the ListenerSet that has it, which refers for it."""
    if listener.tls is None:
        return Settings(None)
    if listener.tls.mode == "Passthrough":
        return Settings(ServerTLSSettings(mode=_passthrough_mode(gateway, owner, port)))
    option = listener.tls.options.get(TERMINATE_MODE, "")
    ciphers = tuple(c.strip() for c in listener.tls.options.get(CIPHER_SUITES, "").split(",") if c.strip())
    if option == "ISTIO_MUTUAL":
        return Settings(ServerTLSSettings(mode="ISTIO_MUTUAL"))
    if option == "ISTIO_SIMPLE":
        return Settings(ServerTLSSettings(mode="SIMPLE", credential_name="builtin://", cipher_suites=ciphers))
    names, fault = _server_credentials(db, owner, listener.tls.certificate_refs)
    if fault is not None:
        return Settings(None, fault)
    base = ServerTLSSettings(
        mode="SIMPLE",
        credential_name=names[0] if len(names) == 1 else "",
        credential_names=names if len(names) > 1 else (),
        cipher_suites=ciphers,
    )
    if option in _OPTION_MODES:
        return Settings(msgspec.structs.replace(base, mode=_OPTION_MODES[option]))
    return _validated(db, gateway, base, port)


def _passthrough_mode(gateway: Gateway, owner: Key, port: int) -> ServerTLSMode:
    """A Gateway that is labelled with a network lets the other networks' traffic through by its SNI."""
    labels = gateway.metadata.labels if owner.kind == "KubernetesGateway" else {}
    expected = labels.get(_NETWORK_PORT, "15443")
    return "AUTO_PASSTHROUGH" if _NETWORK in labels and str(port) == expected else "PASSTHROUGH"


# -- certificates of the server -----------------------------------------------------------------------------------


def _server_credentials(
    db: Engine, owner: Key, references: tuple[SecretObjectReference, ...]
) -> tuple[tuple[str, ...], Fault | None]:
    """The credentials that can be served; only if there is none, what is wrong with them."""
    if len(references) > _MOST_CERTIFICATES:
        return (), Fault(INVALID_CERTIFICATE, "TLS mode can only support up to 2 server certificates")
    names: list[str] = []
    fault: Fault | None = None
    for reference in references:
        bad = secret_fault(db, owner, reference)
        if bad is None:
            names.append(f"kubernetes-gateway://{reference.namespace or owner.namespace}/{reference.name}")
        fault = join(fault, bad)
    if names:
        return tuple(names), None
    return (), fault or Fault(INVALID_CERTIFICATE, "a certificateRef is required to terminate TLS")


def secret_fault(db: Engine, owner: Key, reference: SecretObjectReference) -> Fault | None:
    """What keeps a Gateway or ListenerSet from using a certificate."""
    text = f"{reference.group}/{reference.kind}/{reference.name}.{reference.namespace}"
    if (reference.group, reference.kind) != ("", "Secret"):
        return Fault(INVALID_CERTIFICATE, f"invalid certificate reference {text}, only secret is allowed")
    namespace = reference.namespace or owner.namespace
    if not _permitted(db, owner, "Secret", namespace, reference.name):
        return _not_permitted("certificateRef", reference.name, namespace, owner.namespace)
    bad = certificates.server_certificate_fault(db, Key("Secret", namespace, reference.name))
    return Fault(INVALID_CERTIFICATE, f"invalid certificate reference {text}, {bad}") if bad else None


def _permitted(db: Engine, owner: Key, kind: str, namespace: str, name: str) -> bool:
    referrer = "Gateway" if owner.kind == "KubernetesGateway" else owner.kind
    return grants.is_permitted(db, referrer, owner.namespace, grants.Target("", kind, namespace, name))


def _not_permitted(field: str, name: str, namespace: str, own: str) -> Fault:
    message = f'{field} {name}/{namespace} not accessible to a Gateway in namespace "{own}" (missing a ReferenceGrant?)'
    return Fault(NOT_PERMITTED, message)


# -- certificates of clients --------------------------------------------------------------------------------------


def frontend_validation(gateway: Gateway, port: int) -> FrontendTLSValidation | None:
    """How clients of a port are validated: as the port says, else as the Gateway does."""
    frontend = gateway.spec.tls.frontend if gateway.spec.tls is not None else None
    if frontend is None:
        return None
    own = next((entry.tls for entry in frontend.per_port if entry.port == port), frontend.default)
    return own.validation if own is not None else None


def _validated(db: Engine, gateway: Gateway, base: ServerTLSSettings, port: int) -> Settings:
    """The settings with the validation of clients that the Gateway asks for on this port."""
    validation = frontend_validation(gateway, port)
    if validation is None or not validation.ca_certificate_refs:
        return Settings(base)
    if len(validation.ca_certificate_refs) > 1:
        return Settings(None, Fault(INVALID_AUTHORITY, "only one caCertificateRef is supported"))
    name, fault = _authority(db, gateway, validation.ca_certificate_refs[0])
    if fault is not None:
        return Settings(None, fault)
    lenient = validation.mode == "AllowInsecureFallback"
    return Settings(
        msgspec.structs.replace(
            base,
            mode="OPTIONAL_MUTUAL" if lenient else "MUTUAL",
            ca_cert_credential_name=name,
            insecure_skip_verify=True if lenient else None,
        )
    )


def _authority(db: Engine, gateway: Gateway, reference: ObjectReference) -> tuple[str, Fault | None]:
    """The credential of trusted roots; the reference is the Gateway's, even where a ListenerSet has the listener."""
    text = f"{reference.group}/{reference.kind}/{reference.name}.{reference.namespace}"
    if reference.group or reference.kind not in ("ConfigMap", "Secret"):
        message = f"invalid CA certificate reference {text}, only secret and configMap are allowed"
        return "", Fault(INVALID_AUTHORITY_KIND, message)
    owner = Key("KubernetesGateway", gateway.metadata.namespace, gateway.metadata.name)
    namespace = reference.namespace or owner.namespace
    if not _permitted(db, owner, reference.kind, namespace, reference.name):
        return "", _not_permitted("caCertificateRef", reference.name, namespace, owner.namespace)
    bad = certificates.authority_fault(db, Key(reference.kind, namespace, reference.name))
    if bad is not None:
        return "", Fault(INVALID_AUTHORITY, f"invalid CA certificate reference {text}, {bad}")
    scheme = "configmap" if reference.kind == "ConfigMap" else "kubernetes-gateway"
    return f"{scheme}://{namespace}/{reference.name}-cacert", None
