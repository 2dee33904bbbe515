"""Who may come in: addresses, external authentication, clients' certificates.

What cannot be said as it is said to nginx is said more strictly, never less.
"""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from mizzen.migrate.annotations import Annotations, has_variable
from mizzen.migrate.settings import Access, ClientTLS, ExternalAuth

_AUTH_DETAILS = ("auth-method", "auth-cache-key", "auth-cache-duration", "auth-request-redirect", "auth-snippet")
_PASSWORDS = ("auth-type", "auth-secret", "auth-secret-type", "auth-realm")


def read_access(annotations: Annotations) -> dict[str, Any]:
    """The fields of `Settings` that speak of access."""
    annotations.impossible(*_PASSWORDS, how="the gateway knows no passwords; ask an external service with CUSTOM")
    return {
        "access": Access(
            allowed=_ranges(annotations, "whitelist-source-range", "allowlist-source-range"),
            denied=_ranges(annotations, "denylist-source-range", "blacklist-source-range"),
            auth=_external(annotations),
        ),
        "client_tls": _client_tls(annotations),
    }


def _ranges(annotations: Annotations, *names: str) -> tuple[str, ...]:
    name, _ = annotations.first(*names)
    if not name:
        return ()
    asked = annotations.items(name)
    good = tuple(text for text in asked if _is_range(text))
    if good != asked:
        wrong = ", ".join(text for text in asked if text not in good)
        annotations.approximated(name, how=f"403 by an AuthorizationPolicy, without {wrong}")
    annotations.exact(name, how="403 by an AuthorizationPolicy")
    return good


def _is_range(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _external(annotations: Annotations) -> ExternalAuth | None:
    url = annotations.text("auth-url")
    if not url:
        annotations.exact("auth-response-headers", *_AUTH_DETAILS, how="nothing without auth-url")
        return None
    parts = urlsplit(url)
    if has_variable(url) or parts.scheme not in ("http", "https") or not parts.hostname:
        annotations.impossible("auth-url", how="only a fixed URL of a service can be asked")
        return None
    how = "an extension provider of the mesh's config; it sees the path behind that of the URL, and the method"
    annotations.approximated("auth-url", "auth-response-headers", how=how)
    annotations.impossible("auth-signin", "auth-signin-redirect-param", how="the service itself has to redirect")
    annotations.impossible(*_AUTH_DETAILS, how="the provider's own settings")
    return ExternalAuth(
        host=parts.hostname,
        port=parts.port or (443 if parts.scheme == "https" else 80),
        path=parts.path,
        headers=annotations.items("auth-response-headers"),
    )


def _client_tls(annotations: Annotations) -> ClientTLS | None:
    secret = annotations.text("auth-tls-secret")
    mode = annotations.text("auth-tls-verify-client", "on")
    names = ("auth-tls-secret", "auth-tls-verify-client")
    details = ("auth-tls-error-page", "auth-tls-pass-certificate-to-upstream", "auth-tls-match-cn")
    if not secret or mode == "off":
        annotations.exact(*names, *details, "auth-tls-verify-depth", how="clients are not asked for certificates")
        return None
    annotations.impossible(*details, how="the gateway checks the certificate and says no more about it")
    annotations.approximated("auth-tls-verify-depth", how="chains of any depth are verified")
    if mode == "optional_no_ca":
        annotations.approximated(*names, how="as optional: a certificate that is shown has to be valid")
    namespace, _, name = secret.rpartition("/")
    how = "connections without a good certificate fail; ca.crt has to be in a Secret named as the host's, with -cacert"
    annotations.approximated(*names, how=how)
    return ClientTLS(
        namespace=namespace or annotations.ingress.namespace, secret=name, optional=mode.startswith("optional")
    )
