"""JSON from an API server that nests deeper than a decoder follows.

An API server takes 10,000 levels in fields without a schema, such as a patch of an EnvoyFilter. One such object must
not cost the list that it is in, nor end the control plane, so its depths are cut off: text stands there where messages
would, far below the 100 levels that protobuf reads of JSON.
"""

import re

_MOST_LEVELS = 150
_CUT = b'"nested too deeply"'
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]')


def shallow(data: bytes) -> bytes:
    """The same JSON, with text in the place of what is nested deeper than anybody reads."""
    kept: list[bytes] = []
    level = begin = 0
    for found in _STRUCTURE.finditer(data):
        match found[0]:
            case b"[" | b"{":
                level += 1
                if level == _MOST_LEVELS + 1:
                    kept += [data[begin : found.start()], _CUT]
            case b"]" | b"}":
                if level == _MOST_LEVELS + 1:
                    begin = found.end()
                level -= 1
    return b"".join((*kept, data[begin:]))
