"""What is secret, cut out of text that has no structure: logs, and strings within documents.

In: text. Out: the same with `[redacted]` in place of private keys, tokens, and the values that stand behind the names
of secret headers, variables and flags. It goes by patterns, so it finds what looks like a secret and no more; documents
are walked by `diagnose.redaction`. Certificates stay: a reader of a report needs them.
"""

import base64
import re

REDACTED = "[redacted]"

_BREAK = r"(?:\\[rn]|\s)"
_BEGIN, _END = (rf"-----{word} (?:[A-Z0-9]+ )*PRIVATE KEY-----" for word in ("BEGIN", "END"))
_KEY = re.compile(rf"(?P<begin>{_BEGIN})(?P<body>(?:[^-]|-(?!----))*+)(?P<end>{_END})")
_TORN_KEY = re.compile(
    rf"(?P<begin>{_BEGIN})(?P<break>{_BREAK}++)(?!\[redacted\])(?:[A-Za-z0-9+/=:,]|-(?![-\s])|{_BREAK})+"
)
_KEY_TAIL = re.compile(rf"\A(?:[A-Za-z0-9+/=]|{_BREAK})++(?P<end>{_END})")
"""What `--tail` leaves of a key."""
_INDENT = re.compile(r"(?:\\n|\n)[ \t]*\Z")
_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")
_URL = re.compile(r"(://[^\s:/@]*:)[^\s/@]+(@)")
_ENCODED = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{40,}={0,2}")
"""`-----BEGIN` in base64."""
_JWK = re.compile(r'(\\*"(?:d|p|q|dp|dq|qi|k)\\*"\s*:\s*\\*")[A-Za-z0-9_-]{16,}')
_QUOTE = r"\\*[\"']?"
_SEPARATOR = rf"{_QUOTE}\s*(?:[:=]|(?<=')\s*,)\s*{_QUOTE}"
"""Between name and value; Envoy's debug log has it as `'name', 'value'`."""
_HEADER = re.compile(
    rf"(\b(?:proxy-)?authorization{_SEPARATOR})"
    r"(?:((?:bearer|basic)\s+)(?!\[redacted\])[^\s\"',\\]+|(?!(?:bearer|basic)\s|\[redacted\])[^\s\"'\\][^\n\"'\\]*)",
    re.IGNORECASE,
)
"""Of the usual schemes one word is secret, of others the rest of the line."""
_COOKIE = re.compile(rf"(\b(?:set-)?cookie{_SEPARATOR})(?!\[redacted\])[^\s\"'\\][^\n\"'\\]*", re.IGNORECASE)
_NAMED = (
    r"(?:password|passwd|passphrase|client[_-]?secret|secret[_-]?key|api[_-]?key|access[_-]?key|"
    r"(?:access|refresh|id|auth|session|security|vault)[_-]?token)"
)
_FIELD = re.compile(rf"({_NAMED}{_SEPARATOR})(?!\[redacted\])[^\s\"',;&\\}}]+", re.IGNORECASE)
_FLAG = re.compile(
    r"((?<![\w-])--?[\w.-]*(?:password|passwd|passphrase|secret|token|api-?key)(?:=|[ \t]+)[\"']?)"
    r"(?!-|\[redacted\])[^\s\"']+",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"(\b[A-Z0-9_]*(?:SECRET|TOKEN|CREDENTIALS?)=[\"']?)(?!\[redacted\])[^\s\"',;&]+")


def redact_text(text: str) -> str:
    """The text without keys, tokens and passwords, also where a key is in base64."""
    if "PRIVATE KEY-----" in text:
        text = _KEY.sub(_redact_key, text)
        text = _TORN_KEY.sub(_redact_torn_key, text)
        text = _KEY_TAIL.sub(rf"{REDACTED}\n\g<end>", text)
    text = _ENCODED.sub(_redact_encoded, text)
    text = _TOKEN.sub(REDACTED, text)
    text = _HEADER.sub(lambda found: f"{found[1]}{found[2] or ''}{REDACTED}", text)
    for pattern in (_COOKIE, _JWK, _FIELD, _VARIABLE, _FLAG):
        text = pattern.sub(rf"\g<1>{REDACTED}", text)
    return _URL.sub(rf"\g<1>{REDACTED}\g<2>", text)


def _redact_key(found: re.Match[str]) -> str:
    """The lines around the key's own, indented as they were."""
    indent = _INDENT.search(found["body"])
    separator = indent[0] if indent else "\n"
    return f"{found['begin']}{separator}{REDACTED}{separator}{found['end']}"


def _redact_torn_key(found: re.Match[str]) -> str:
    return f"{found['begin']}{found['break']}{REDACTED}"


def _redact_encoded(found: re.Match[str]) -> str:
    """Certificates stay; what cannot be decoded is taken for a key."""
    try:
        plain = base64.b64decode(found[0], validate=True)
    except ValueError:
        return REDACTED
    return REDACTED if b"PRIVATE KEY" in plain else found[0]
