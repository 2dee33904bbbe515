"""As whom a command asks a control plane: the node of its stream.

In: the token or certificate that it shows. Out: a node of the namespace that those are for, since a control plane
refuses a node of another one, and of a type that every control plane knows. Nothing is verified here.
"""

from typing import Any

from mizzen.errors import AuthorityError, MizzenError

_UNKNOWN = "istio-system"


def build_node(*, token: str = "", chain: bytes = b"") -> dict[str, Any]:
    """A node that is no proxy: it has no proxy config, and no page lists it."""
    namespace = _of_token(token) or _of_certificate(chain) or _UNKNOWN
    return {
        "id": f"sidecar~0.0.0.0~mizzen.{namespace}~{namespace}.svc.cluster.local",
        "metadata": {"GENERATOR": "event", "NAMESPACE": namespace},
    }


def _of_token(token: str) -> str:
    from mizzen.ca.tokens import peek_claims, read_account

    try:
        return read_account(peek_claims(token)).namespace if token else ""
    except AuthorityError:
        return ""


def _of_certificate(chain: bytes) -> str:
    from cryptography import x509

    from mizzen.ca import certificates
    from mizzen.model.spiffe import parse_spiffe

    try:
        own = certificates.decode(chain, "certificate")[0]
        names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (MizzenError, IndexError, x509.ExtensionNotFound):
        return ""
    found = (parse_spiffe(uri) for uri in names.get_values_for_type(x509.UniformResourceIdentifier))
    return next((identity.namespace for identity in found if identity is not None), "")
