"""Secrets (SDS): the certificates that gateways name by `credentialName`, from Secrets and ConfigMaps.

In: resource names such as `kubernetes://shop-tls` and `kubernetes://shop-tls-cacert`, the namespace of the proxy that
asks. Out: Secret messages with their bytes inside; a name that means nothing readable has no resource, for an Envoy
that once held certificates in vain refuses listeners until they change. A gateway gets Secrets of its own namespace
(which proxies are gateways is said by `model.credentials`), those of others that a Gateway it serves was granted, and
trusted roots from any ConfigMap; who it is must have been proved before this is asked (`xds` sees to that).
Certificates of workloads come from their agents, never from here.
Facts: key names and their order as in the reference's Secret table. Golden cases: gateway/tls-credentials,
gateway-api/tls-listeners.
"""

from typing import Any, NamedTuple

from mizzen import protos
from mizzen.api.kube.data import ConfigMap, Secret
from mizzen.api.meta import Key
from mizzen.compile import resource
from mizzen.compile.resource import Resource, ResourceSet, encode_resource
from mizzen.incremental import Engine, attempt, query
from mizzen.model.convert import certificates

_tls_v3 = protos.package("envoy.extensions.transport_sockets.tls.v3")

CA_SUFFIX = "-cacert"
"""Ends the names of trusted roots."""
ROOTS_SCHEME = "configmap://"
_SCHEMES = {"kubernetes://": "Secret", "kubernetes-gateway://": "Secret", ROOTS_SCHEME: "ConfigMap"}
_PAIRS = (("cert", "key"), ("tls.crt", "tls.key"))
_ROOTS = ("cacert", "ca.crt")
_REVOCATIONS = ("crl", "ca.crl")


class Credential(NamedTuple):
    """What a secret's resource name asks for."""

    kind: str
    namespace: str
    name: str
    is_ca: bool


def parse_credential(name: str, own_namespace: str) -> Credential | None:
    """The parts of a resource name; None for one that no Kubernetes object can answer."""
    for scheme, kind in _SCHEMES.items():
        if name.startswith(scheme):
            rest = name.removeprefix(scheme)
            namespace, slash, bare = rest.rpartition("/")
            if not bare or (kind == "ConfigMap" and not slash):
                return None
            is_ca = bare.endswith(CA_SUFFIX) or kind == "ConfigMap"
            return Credential(kind, namespace or own_namespace, bare.removesuffix(CA_SUFFIX) if is_ca else bare, is_ca)
    return None


def is_public(name: str) -> bool:
    """Whether a resource name asks for trusted roots only, which every proxy of the namespace may have."""
    return name.startswith(ROOTS_SCHEME) or name.endswith(CA_SUFFIX)


@query
def secrets(db: Engine, namespace: str, asked: frozenset[str], granted: frozenset[str] = frozenset()) -> ResourceSet:
    """The secrets of these names for proxies of a namespace, which were `granted` some of other namespaces."""
    built = (attempt(secret, db, namespace, name, name.removesuffix(CA_SUFFIX) in granted) for name in sorted(asked))
    return ResourceSet(resource.SECRET, (r for r in built if r is not None))


@query
def secret(db: Engine, namespace: str, name: str, is_granted: bool) -> Resource | None:
    """The secret of one name; None where it may not be read or does not hold what is asked."""
    credential = parse_credential(name, namespace)
    if credential is None:
        return None
    if credential.kind == "Secret" and credential.namespace != namespace and not is_granted:
        return None
    content = _authority(db, credential) if credential.is_ca else _certificate(db, credential)
    return encode_resource(name, _tls_v3.Secret(name=name, **content)) if content is not None else None


def _bytes(data: bytes) -> dict[str, Any]:
    return {"inline_bytes": data}


def _certificate(db: Engine, credential: Credential) -> dict[str, Any] | None:
    found: Secret | None = db.input(Key("Secret", credential.namespace, credential.name))
    if found is None:
        return None
    for chain_name, key_name in _PAIRS:
        chain, key = found.get(chain_name), found.get(key_name)
        if chain and key:
            if certificates.pair_fault(chain, key) is not None:
                return None
            certificate = {"certificate_chain": _bytes(chain), "private_key": _bytes(key)}
            if staple := found.get("tls.ocsp-staple"):
                certificate["ocsp_staple"] = _bytes(staple)
            return {"tls_certificate": certificate}
    return None


def _authority(db: Engine, credential: Credential) -> dict[str, Any] | None:
    """Trusted roots: from the Secret of the name with `-cacert`, else from the certificate's own Secret."""
    if credential.kind == "ConfigMap":
        config: ConfigMap | None = db.input(Key("ConfigMap", credential.namespace, credential.name))
        roots = [config.data.get(key) for key in _ROOTS] if config is not None else []
        texts = [text.encode() for text in roots if text]
        return _roots(texts[0], None) if texts else None
    for name in (credential.name + CA_SUFFIX, credential.name):
        found: Secret | None = db.input(Key("Secret", credential.namespace, name))
        trusted = next((v for key in _ROOTS if found is not None and (v := found.get(key))), None)
        if found is not None and trusted is not None:
            return _roots(trusted, next((v for key in _REVOCATIONS if (v := found.get(key))), None))
    return None


def _roots(trusted: bytes, revoked: bytes | None) -> dict[str, Any] | None:
    """Roots that can be read, with those of their certificates that are trusted no longer."""
    if certificates.roots_fault(trusted) is not None:
        return None
    if revoked is None:
        return {"validation_context": {"trusted_ca": _bytes(trusted)}}
    if certificates.revocations_fault(revoked) is not None:
        return None
    return {"validation_context": {"trusted_ca": _bytes(trusted), "crl": _bytes(revoked)}}
