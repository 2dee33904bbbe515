"""Rights of a control plane."""

from collections.abc import Iterator

from mizzen.install.identity import Identity
from mizzen.install.rbac import load_rules, rbac_documents
from mizzen.sources.kube.served import SERVED_KINDS

READ = {"get", "list", "watch"}


def granted(rules: list[dict[str, list[str]]]) -> Iterator[tuple[str, str, str]]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from ((group, resource, verb) for verb in rule["verbs"])


def test_every_kind_that_is_followed_may_be_read() -> None:
    rights = set(granted(load_rules().cluster))
    wanted = {(kind.group, kind.plural, verb) for kind in SERVED_KINDS for verb in READ}
    assert wanted - rights == set()


def test_nothing_is_granted_by_wildcard_and_nothing_may_be_escalated() -> None:
    rules = load_rules()
    for group, resource, verb in granted([*rules.cluster, *rules.namespaced]):
        assert "*" not in (group, resource, verb)
        assert verb not in ("escalate", "bind", "impersonate")
        assert group != "rbac.authorization.k8s.io"


def test_secrets_of_other_namespaces_may_only_be_read() -> None:
    verbs = {verb for group, resource, verb in granted(load_rules().cluster) if (group, resource) == ("", "secrets")}
    assert verbs == READ


def test_names_carry_the_revision_and_the_namespace() -> None:
    found = {each["kind"]: each for each in rbac_documents(Identity(namespace="mesh", revision="canary"))}
    assert found["ClusterRole"]["metadata"]["name"] == "istiod-clusterrole-canary-mesh"
    assert "namespace" not in found["ClusterRole"]["metadata"]
    assert found["Role"]["metadata"]["namespace"] == "mesh"
    subject = {"kind": "ServiceAccount", "name": "istiod-canary", "namespace": "mesh"}
    assert found["ClusterRoleBinding"]["subjects"] == found["RoleBinding"]["subjects"] == [subject]
    assert found["ServiceAccount"]["metadata"]["name"] == "istiod-canary"


def test_signers_of_kubernetes_are_granted_by_name_alone() -> None:
    rules = {each["kind"]: each for each in rbac_documents(Identity(), ["example.com/signer"])}["ClusterRole"]["rules"]
    (approval,) = (rule for rule in rules if rule["resources"] == ["signers"])
    assert approval["resourceNames"] == ["example.com/signer"]
    assert ("certificates.k8s.io", "certificatesigningrequests", "create") in set(granted(rules))
    without = {each["kind"]: each for each in rbac_documents(Identity())}["ClusterRole"]["rules"]
    assert not any("certificates.k8s.io" in rule["apiGroups"] for rule in without)
