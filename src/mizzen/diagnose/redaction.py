"""What must not leave a machine in a report: private keys, passwords, tokens, the contents of Secrets.

In: documents as plain values (Kubernetes objects, dumps, debug pages), or text. Out: the same with `[redacted]` in
place of what is secret. Documents are walked: a value goes by the name of its field, by the name beside it (a header, a
variable), or by what it is (the private parts of a JWK). JSON and YAML within strings are walked, too; other strings,
and files that are no JSON, go through `diagnose.redacted_text`. Names, certificates and files' paths stay.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from mizzen.api.meta import LAST_APPLIED
from mizzen.diagnose.redacted_text import REDACTED, redact_text
from mizzen.diagnose.secret_names import is_secret_name, is_secret_variable, normalize_name

_OF_SECRETS = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
"""What stays of a Secret; all else may be its data under a wrong name."""
_OF_OBJECTS = frozenset({"metadata", "data", "stringData"})
"""Without any of these it is a reference to a Secret."""
_JWK_PARTS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_PAIRED = frozenset(
    {
        *("value", "values", "notvalues", "rawvalue", "stringvalue", "defaultvalue", "stringmatch", "exactmatch"),
        *("prefixmatch", "suffixmatch", "containsmatch", "saferegexmatch"),
    }
)
"""Fields beside a name that hold the value of what it names."""
_HOLDERS = _PAIRED | {
    *("inlinestring", "inlinebytes", "exact", "prefix", "suffix", "contains", "regex", "keys"),
}
"""Fields that hold the value itself, in a message that is secret: a DataSource, a matcher of strings."""
_BYTES = frozenset({"inlinebytes", "rawvalue"})
_ENCODED = base64.b64encode(REDACTED.encode()).decode()
_JWKS = frozenset({"jwks", "localjwks"})
_SCHEME = re.compile(r"(?:bearer|basic)\s+(?=\S)", re.IGNORECASE)
_REFERENCE = re.compile(r"%[A-Z_]+(?:\([^%]*\))?%|\$\([A-Za-z_]\w*\)")
"""Where Envoy, or Kubernetes, takes the value from."""
_PATH = re.compile(r"/[\w.@/-]+")
"""Objects of Istio name the file of a key in the field where Envoy has the key."""
_ASSIGNMENT = re.compile(r"(?P<dashes>-{0,2})(?P<name>[A-Za-z_][\w.-]*)=(?=.)", re.DOTALL)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)")


def redact_file(text: str) -> str:
    """The text of a file without secrets: walked if it is JSON, by patterns if not, but for lines that are objects."""
    return _redact_json(text, _redact_log)


def _redact_log(text: str) -> str:
    lines = text.split("\n")
    walked = [_redact_json(line, lambda same: same) if line.startswith("{") else line for line in lines]
    return redact_text("\n".join(walked))


def redact_object(document: Any) -> Any:
    """A document as plain values, without what is secret in it at any depth."""
    if isinstance(document, str):
        return _redact_json(document, _redact_lines)
    if isinstance(document, Mapping):
        return _redact_mapping(document)
    if isinstance(document, Sequence) and not isinstance(document, bytes):
        return _redact_list(document)
    return document


def _redact_json(text: str, otherwise: Callable[[str], str]) -> str:
    """JSON with its layout kept as far as lines go, and untouched if nothing in it is secret."""
    if not text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return otherwise(text)
    try:
        document = json.loads(text.lstrip("\ufeff"))
        found = redact_object(document)
    except (ValueError, RecursionError):
        return otherwise(text)
    if found == document:
        return text
    lines = "\n" in text.strip()
    return json.dumps(found, ensure_ascii=False, indent=1 if lines else None) + ("\n" if text.endswith("\n") else "")


def _redact_lines(text: str) -> str:
    """A string, such as a file in a ConfigMap: walked if it is more than a scalar in YAML, by patterns if not."""
    documents = _parse_yaml(text) if ":" in text and ("\n" in text.strip() or "{" in text) else []
    found = [redact_object(document) for document in documents]
    if found == documents:
        return redact_text(text)
    return str(yaml.safe_dump_all(found, sort_keys=False, allow_unicode=True, width=1 << 30))


def _parse_yaml(text: str) -> list[Any]:
    """The documents, mappings or lists each; none if it is something else, or refers to its own parts."""
    try:
        if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, _LOADER)):
            return []
        documents = list(yaml.load_all(text, _LOADER))
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    return documents if all(isinstance(document, (dict, list)) for document in documents) else []


# -- mappings -------------------------------------------------------------------------------------------------------


def _redact_mapping(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    if mapping.get("kind") == "Secret" and not _OF_OBJECTS.isdisjoint(mapping):
        return _redact_secret(mapping)
    paired, private_parts = _names_secret(mapping), "kty" in mapping
    result: dict[Any, Any] = {}
    for key, value in mapping.items():
        name = normalize_name(str(key))
        beside = (paired and name in _PAIRED) or (private_parts and key in _JWK_PARTS)
        if beside or is_secret_name(str(key)) or _is_secret_here(mapping, name, value):
            found = _cut(value, name)
        elif name in _JWKS:
            found = _redact_jwks(value)
        elif name == "inlinebytes":
            found = _redact_bytes(value)
        elif name == "env" and isinstance(value, Mapping):
            found = _redact_variables(value)
        else:
            found = redact_object(value)
        result[_redact_name(key)] = found
    return result


def _redact_name(key: Any) -> Any:
    """URLs and tokens may be names of entries, too."""
    return redact_text(key) if isinstance(key, str) and ("://" in key or "eyJ" in key) else key


def _names_secret(mapping: Mapping[Any, Any]) -> bool:
    """Whether it is a pair, of a name and a value, that is named as secrets are."""
    names = (mapping.get("name"), mapping.get("key"))
    return any(isinstance(name, str) and is_secret_variable(name) for name in names)


def _is_secret_here(mapping: Mapping[Any, Any], name: str, value: Any) -> bool:
    """Names that mean a secret only where they stand: logins of registries and of Envoy's filters, its ticket keys."""
    if name == "auth":
        return isinstance(value, str)
    if name == "users":
        return isinstance(value, Mapping)
    if name == "key":
        return "client" in mapping
    return name == "keys" and str(mapping.get("@type", "")).endswith(".TlsSessionTicketKeys")


def _redact_variables(variables: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        name: _cut(value, "value") if is_secret_variable(str(name)) else redact_object(value)
        for name, value in variables.items()
    }


def _redact_secret(secret: Mapping[Any, Any]) -> dict[Any, Any]:
    """The names of its data stay; kubectl's copy, which holds the values once more, does not."""
    result: dict[Any, Any] = {}
    for key, value in secret.items():
        if key in _OF_SECRETS:
            result[key] = redact_object(value)
        elif isinstance(value, Mapping):
            result[key] = dict.fromkeys(value, REDACTED)
        else:
            result[key] = value if value is None else REDACTED
    metadata = result.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        annotations.pop(LAST_APPLIED, None)
    return result


# -- values ---------------------------------------------------------------------------------------------------------


def _cut(value: Any, name: str) -> Any:
    """What stays of a secret value: of a message the fields that do not hold it, such as the path of a file."""
    if value is None or isinstance(value, bool) or value == "":
        return value
    if isinstance(value, Mapping):
        return _cut_message(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_cut(item, name) for item in value]
    if name in _BYTES:
        return _ENCODED
    text = str(value)
    if _REFERENCE.fullmatch(text) or (name == "privatekey" and _PATH.fullmatch(text)):
        return value
    scheme = _SCHEME.match(text)
    return f"{scheme[0]}{REDACTED}" if scheme else REDACTED


def _cut_message(message: Mapping[Any, Any]) -> dict[Any, Any]:
    walked = _redact_mapping(message)
    result = {}
    for key, value in message.items():
        name = normalize_name(str(key))
        if name in _HOLDERS or isinstance(value, Mapping):
            result[_redact_name(key)] = _cut(value, name)
        else:
            result[_redact_name(key)] = walked[_redact_name(key)]
    return result


def _redact_jwks(value: Any) -> Any:
    """A set of keys in a string, or in a DataSource; one that cannot be read is cut whole."""
    if isinstance(value, str):
        return _redact_json(value, lambda text: REDACTED if text.strip() else text)
    if isinstance(value, Mapping) and isinstance(value.get("inlineString", value.get("inline_string")), str):
        return {
            key: _redact_jwks(item) if isinstance(item, str) else redact_object(item) for key, item in value.items()
        }
    return redact_object(value)


def _redact_bytes(value: Any) -> Any:
    """Text in base64, walked like any other; what is no text stays."""
    if not isinstance(value, str):
        return redact_object(value)
    try:
        plain = base64.b64decode(value, validate=True).decode()
    except ValueError:
        return redact_text(value)
    found = redact_file(plain)
    return value if found == plain else base64.b64encode(found.encode()).decode()


# -- lists ----------------------------------------------------------------------------------------------------------


def _redact_list(items: Sequence[Any]) -> list[Any]:
    """Each item; in a list of arguments also the one behind a flag that takes a secret."""
    result: list[Any] = []
    flagged = False
    for item in items:
        if not isinstance(item, str):
            result.append(redact_object(item))
        elif flagged and not item.startswith("-"):
            result.append(_cut(item, ""))
        else:
            result.append(_redact_argument(item))
        flag = _FLAG.fullmatch(item) if isinstance(item, str) else None
        flagged = flag is not None and is_secret_name(flag["name"])
    return result


def _redact_argument(text: str) -> str:
    found = _ASSIGNMENT.match(text)
    if found is None:
        return str(redact_object(text))
    is_secret = is_secret_name if found["dashes"] else is_secret_variable
    if is_secret(found["name"]):
        return f"{found[0]}{_cut(text[found.end() :], '')}"
    return str(redact_object(text))
