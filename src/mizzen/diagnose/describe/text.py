"""Lines of a description: indented, and names without the namespace that is being described.

In: lines, and what is being looked at. Out: lines. An indent is three blanks, as in istioctl.
"""

from collections.abc import Iterable

from mizzen.api.meta import Key, ObjectMeta
from mizzen.model.convert.gateways.objects import PARENTS

INDENT = "   "
RULE = "-" * 20
REQUIREMENTS = "https://istio.io/latest/docs/ops/deployment/application-requirements/"


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    """The lines, further to the right."""
    return [INDENT * levels + line for line in lines]


def name_in(key: Key, namespace: str) -> str:
    """The name, with its namespace where that is another one."""
    return key.name if key.namespace == namespace else f"{key.name}.{key.namespace}"


def describe_source(metadata: ObjectMeta, kind: str, namespace: str) -> str:
    """`KIND: NAME`; an object made from others (of the Gateway API) by the kind and names of those."""
    parents = [parent.partition("/") for parent in metadata.annotations.get(PARENTS, "").split(",") if parent]
    if not parents:
        return f"{kind}: {name_in(Key(kind, metadata.namespace, metadata.name), namespace)}"
    kinds = "/".join(dict.fromkeys(kind for kind, _, _ in parents))
    return f"{kinds}: {', '.join(name.removesuffix(f'.{namespace}') for _, _, name in parents)}"


def quote(text: str) -> str:
    """In double quotes."""
    return f'"{text}"'
