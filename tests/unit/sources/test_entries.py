"""What documents come to: objects with lines, findings, and stand-ins for policies that do not decode."""

import json

import pytest

from mizzen.api.meta import Key
from mizzen.api.policy import AuthorizationPolicy, Rule
from mizzen.sources.entries import Entry, read_json, read_yaml

SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: cart\nspec:\n  ports:\n  - port: 80\n"


def only(text: str) -> Entry:
    (entry,) = read_yaml(text)
    return entry


def test_object_has_its_key_and_line() -> None:
    entry = only("# head\n\n" + SERVICE)
    assert (entry.outcome, entry.key, entry.line) == ("decoded", Key("Service", "default", "cart"), 3)
    assert entry.problems == ()


def test_fault_of_a_field_names_its_line() -> None:
    entry = only(SERVICE.replace("80", "eighty"))
    assert (entry.outcome, entry.object, entry.lost) == ("failed", None, True)
    ((line, problem),) = entry.problems
    assert (line, problem.path) == (7, "spec.ports[0].port")


def test_unknown_field_warns_and_the_object_stays() -> None:
    entry = only(SERVICE + "  portz: 1\n")
    assert entry.object is not None
    ((line, problem),) = entry.problems
    assert (line, problem.level) == (8, "warning")


def test_repeated_key_warns() -> None:
    entry = only(SERVICE + "kind: Service\n")
    assert [(line, problem.code) for line, problem in entry.problems] == [(8, "repeated-key")]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n", "not-read"),
        ("accessLogFile: /dev/stdout\n", "not-an-object"),
        ("- 1\n- 2\n", "not-an-object"),
        ("just text\n", "not-an-object"),
        ("---\n# nothing\n", "empty"),
        ("kind: Service\n", "failed"),
        ("apiVersion: networking.istio.io/v1\nkind: VirtualServices\nmetadata: {name: a}\n", "failed"),
        ("a: [\n", "unreadable"),
    ],
)
def test_every_document_has_an_outcome(text: str, outcome: str) -> None:
    assert only(text).outcome == outcome


def test_lists_are_unfolded_with_the_line_of_each_item() -> None:
    items = "".join("- " + SERVICE.replace("cart", name).replace("\n", "\n  ").rstrip(" ") for name in ("a", "b"))
    entries = read_yaml("apiVersion: v1\nkind: List\nitems:\n" + items)
    assert [(entry.key.name if entry.key else "", entry.line) for entry in entries] == [("a", 4), ("b", 11)]


def test_fault_in_an_item_names_its_line() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- kind: Service\n  apiVersion: v1\n  metadata: {name: a}\n  spec: 5\n"
    (entry,) = read_yaml(text)
    assert entry.problems[0][0] == 7


def test_json_gives_the_same_entries() -> None:
    (entry,) = read_json('{"apiVersion": "v1",\n"kind": "Service",\n"metadata": {"name": "cart"},\n"spec": 5}')
    assert (entry.outcome, entry.problems[0][0]) == ("failed", 4)


POLICY = """\
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata:
  name: guard
  namespace: shop
spec:
  selector:
    matchLabels: {app: cart}
  action: ALLOW
  rules:
  - from: [{source: {namespaces: [front]}}]
"""


def closed(entry: Entry) -> AuthorizationPolicy:
    assert entry.object is None
    policy = entry.stand_in
    assert isinstance(policy, AuthorizationPolicy)
    assert (policy.spec.action, policy.spec.rules) == ("DENY", (Rule(),))
    return policy


def test_policy_that_does_not_decode_denies_what_it_selects() -> None:
    policy = closed(only(POLICY.replace("ALLOW", "ALOW")))
    assert policy.spec.selector is not None
    assert policy.spec.selector.match_labels == {"app": "cart"}
    assert (policy.metadata.namespace, policy.metadata.name) == ("shop", "guard")


@pytest.mark.parametrize(
    "text",
    [
        POLICY.replace("{app: cart}", "5"),
        POLICY.replace("apiVersion: security.istio.io/v1\n", ""),
        POLICY + "  - from: [\n",
        POLICY.replace("spec:", "spec"),
        POLICY.replace("kind: AuthorizationPolicy", 'kind: "AuthorizationPolicy"') + "\t",
    ],
)
def test_policy_that_cannot_be_read_denies_its_namespace(text: str) -> None:
    policy = closed(only(text))
    assert policy.spec.selector is None
    assert policy.metadata.namespace == "shop"


def test_policy_without_a_name_denies_its_namespace() -> None:
    policy = closed(only(POLICY.replace("  name: guard\n", "")))
    assert (policy.metadata.namespace, policy.metadata.name) == ("shop", "unreadable")
    assert policy.spec.selector is None


def test_broken_text_with_several_policies_denies_each_namespace() -> None:
    items = [
        "- apiVersion: security.istio.io/v1\n  kind: AuthorizationPolicy\n"
        f"  metadata: {{name: {name}, namespace: {namespace}}}\n"
        for name, namespace in (("one", "shop"), ("two", "bank"))
    ]
    entries = read_yaml("kind: List\nitems:\n" + "".join(items) + "  spec: [\n")
    assert [(entry.key, closed(entry).metadata.namespace) for entry in entries] == [
        (Key("AuthorizationPolicy", "shop", "one"), "shop"),
        (Key("AuthorizationPolicy", "bank", "two"), "bank"),
    ]


def test_broken_json_policy_denies_its_namespace() -> None:
    (entry,) = read_json('{"kind":"AuthorizationPolicy","metadata":{"name":"x","namespace":"shop"},"spec":')
    assert closed(entry).metadata.namespace == "shop"


@pytest.mark.parametrize(
    ("kind", "strict"),
    [("PeerAuthentication", {"mtls": {"mode": "PERMISSIV"}}), ("RequestAuthentication", {"jwtRules": [{"issuer": 3}]})],
)
def test_every_kind_of_policy_is_closed(kind: str, strict: dict) -> None:
    head = f"apiVersion: security.istio.io/v1\nkind: {kind}\nmetadata: {{name: guard, namespace: shop}}\n"
    text = head + "spec: " + json.dumps({"selector": {"matchLabels": {"app": "cart"}}, **strict})
    decoded = only(text).stand_in
    assert type(decoded).__name__ == kind
    assert decoded is not None
    assert decoded.spec.selector is not None
    torn = only(text + "\n  - [").stand_in
    assert type(torn).__name__ == kind
    assert torn is not None
    assert (torn.metadata.namespace, torn.metadata.name, torn.spec.selector) == ("shop", "guard", None)


def test_broken_text_with_policies_of_several_kinds_closes_each() -> None:
    head = "kind: List\nitems:\n"
    items = "".join(
        f"- kind: {kind}\n  metadata: {{name: {kind.lower()}, namespace: shop}}\n"
        for kind in ("PeerAuthentication", "AuthorizationPolicy")
    )
    found = read_yaml(head + items + "  spec: [\n")
    assert [(type(e.stand_in).__name__, e.key) for e in found] == [
        ("PeerAuthentication", Key("PeerAuthentication", "shop", "peerauthentication")),
        ("AuthorizationPolicy", Key("AuthorizationPolicy", "shop", "authorizationpolicy")),
    ]


@pytest.mark.parametrize(
    "line", ["# kind: AuthorizationPolicy", "kind: AuthorizationPolicyList", "note: AuthorizationPolicy"]
)
def test_broken_text_that_holds_no_policy_denies_nothing(line: str) -> None:
    assert only(f"{line}\na: [\n").stand_in is None


@pytest.mark.parametrize("text", [POLICY, SERVICE, SERVICE.replace("80", "eighty")])
def test_nothing_stands_in_for_what_decodes_or_is_no_policy(text: str) -> None:
    assert only(text).stand_in is None
