"""Regular expressions: nginx's, of PCRE, as Envoy's, of RE2."""

from mizzen.api.validate.values.texts import syntax_fault


def is_re2(pattern: str) -> bool:
    """Whether Envoy can read the pattern: RE2 has no look-around and no back references."""
    return syntax_fault(pattern) is None


def path_pattern(path: str) -> str:
    """What nginx looks for at the beginning of a path, in any case, as a pattern of the whole path."""
    return f"(?i){_anchored(path)}.*"


def rewrite_pattern(path: str) -> str:
    """What nginx replaces a whole path for, in any case; groups keep their numbers."""
    return f"(?i)^{_anchored(path)}.*$"


def _anchored(path: str) -> str:
    """Of alternatives nginx anchors the first alone; the others may stand anywhere."""
    return f".*?(?:^{path})" if _has_alternatives(path) else path


def _has_alternatives(path: str) -> bool:
    depth, escaped, in_class = 0, False, False
    for character in path:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            return True
    return False
