"""YAML inside texts: annotations and ConfigMap entries that users write."""

from typing import Any

import yaml


def load_yaml(text: str) -> Any:
    """The value of a plain document; aliases are refused, since a short text of them can stand for a value without end.

    Raises yaml.YAMLError or, for a text nested beyond reason, RecursionError.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader)):
        raise yaml.YAMLError("aliases are not allowed here")
    return yaml.load(text, Loader=loader)
