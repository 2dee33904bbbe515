"""What control planes with the installed rights asked of API servers, held against these rights.

In: the audit logs of beds. Out: rights that were used, and requests that were forbidden.
"""

import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kube_bed import AUDIT_LOG

from mizzen.install.rbac import Rule, load_rules

_ACCOUNT = "system:serviceaccount:"


class Right(NamedTuple):
    """One verb on one resource; `name` is empty for objects of any name."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}.{self.group} {self.name}".strip()


class Asked(NamedTuple):
    """One request."""

    home: str
    """The namespace of the account that asked."""
    right: Right
    namespace: str
    allowed: bool


def granted(rules: Iterable[Rule]) -> set[Right]:
    """What rules allow, one by one."""
    return {
        Right(group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def installed_rights() -> set[Right]:
    """All that an installation grants, signers of Kubernetes included."""
    rules = load_rules()
    return granted([*rules.cluster, *rules.namespaced, *rules.signing])


def asked(folder: pathlib.Path) -> Iterator[Asked]:
    """What control planes asked of all beds below a folder."""
    for log in folder.rglob(AUDIT_LOG):
        for line in log.read_bytes().splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # The server was killed while it wrote.
            found = _read(event)
            if found is not None:
                yield found


def _read(event: dict) -> Asked | None:
    home, _, account = event["user"]["username"].removeprefix(_ACCOUNT).partition(":")
    reference = event.get("objectRef")
    if not account.startswith("istiod") or reference is None or "resource" not in reference:
        return None
    resource = "/".join(part for part in (reference["resource"], reference.get("subresource")) if part)
    right = Right(reference.get("apiGroup", ""), resource, event["verb"], reference.get("name", ""))
    allowed = event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow"
    return Asked(home, right, reference.get("namespace", ""), allowed)


def used(rights: Iterable[Right], requests: Iterable[Asked]) -> set[Right]:
    """The rights that some request needed."""
    allowed = {one.right for one in requests if one.allowed}
    anonymous = {right._replace(name="") for right in allowed}
    return {right for right in rights if right in (allowed if right.name else anonymous)}


def is_granted(one: Asked) -> bool:
    """Whether every installation grants it where it was asked for."""
    rules = load_rules()
    rights = granted([*rules.cluster, *(rules.namespaced if one.namespace == one.home else ())])
    return one.right in rights or one.right._replace(name="") in rights
