"""Which names say that the value beside them is secret: of headers, fields, variables and flags.

In: a name in any spelling (`clientSecret`, `client_secret`, `CLIENT-SECRET`). Out: whether its value is to be cut. A
name that ends as the name of a secret value does is taken for one; those that tell where a secret is
(`credentialName`, `secretName`, `token_endpoint`) do not end so. Variables of programs are named with less care: there
the word may stand anywhere.
"""

import functools
import re

_HEADERS = frozenset({"authorization", "proxyauthorization", "cookie", "setcookie"})
_ENDINGS = (
    *("password", "passwd", "passphrase", "secret", "token", "credential", "credentials", "pkcs12"),
    *("apikey", "accesskey", "secretkey", "privatekey", "signingkey", "encryptionkey", "clientkeydata"),
)
_OTHERS = frozenset({"secrets", "sessionticketkeys"})
_REFERENCES = frozenset({"imagepullsecret", "pullsecret"})
"""They hold the names of Secrets."""
_VARIABLE = re.compile(
    "password|passwd|passphrase|secret|token|credential|apikey|accesskey|privatekey|signingkey|encryptionkey"
)
_ABOUT = ("file", "path", "dir", "name", "ttl", "audience", "audiences", "endpoint")
"""Endings of variables that tell about a secret, and do not hold it."""
_CONDITION = re.compile(r"request\.headers\[(?P<header>[^\]]+)\]")


@functools.lru_cache(maxsize=1 << 14)
def normalize_name(name: str) -> str:
    """The name in lower case without what separates its words."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@functools.lru_cache(maxsize=1 << 14)
def is_secret_name(name: str) -> bool:
    """Whether the value of a header, a field or a flag is secret; `KIND/NAMESPACE/NAME` is none of them."""
    plain = normalize_name(name)
    if plain in _REFERENCES or name.count("/") > 1:
        return False
    return plain in _HEADERS or plain in _OTHERS or plain.endswith(_ENDINGS)


@functools.lru_cache(maxsize=1 << 14)
def is_secret_variable(name: str) -> bool:
    """Whether the value of a variable, or of a pair of a name and a value, is secret.

    The condition `request.headers[NAME]` of an AuthorizationPolicy counts as its header.
    """
    condition = _CONDITION.fullmatch(name)
    if condition:
        return is_secret_variable(condition["header"])
    plain = normalize_name(name)
    return is_secret_name(name) or (_VARIABLE.search(plain) is not None and not plain.endswith(_ABOUT))
