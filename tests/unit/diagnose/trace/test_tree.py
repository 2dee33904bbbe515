"""The tree and the JSON that people and programs read."""

from traced_mesh import SHOP, ask, world_of

from mizzen.diagnose.trace import tree, verdict
from mizzen.diagnose.trace.verdict import Cause, Step, Trace

FAILED = Trace(
    steps=(
        Step(side="a.x", link="route", title="route", facts=(("timeout", "1s"),), passed_over=("#0: no",)),
        Step(
            side="b.x",
            link="tls",
            title="TLS fails",
            state="fails",
            object=Cause(kind="DestinationRule", namespace="x", name="r", file="f.yaml", line=3),
        ),
    ),
    outcome="failed",
    status=503,
    flag="UF",
    details="d",
    certain=False,
    depends_on=("the weather",),
    link="tls",
    cause=Cause(kind="DestinationRule", namespace="x", name="r", file="f.yaml", line=3),
    fix="mend it",
    side="a.x",
    reason="because",
)
TREE = """\
a.x
  ✓ route        route
      timeout: 1s
      - #0: no
b.x
  ✗ tls          TLS fails
      from DestinationRule x/r (f.yaml:3)

FAILED 503 UF d, by a.x
  why:        because
  link:       tls
  cause:      DestinationRule x/r (f.yaml:3)
  fix:        mend it
  depends on: the weather
"""


def test_a_tree():
    assert tree.render(FAILED) == TREE


def test_json_has_exactly_the_fields_of_the_contract():
    document = verdict.to_json(ask(world_of(SHOP), "http://server/"))
    assert list(document) == [
        "steps",
        "outcome",
        "status",
        "flag",
        "details",
        "certain",
        "depends_on",
        "link",
        "cause",
        "fix",
    ]
    assert list(document["steps"][0]) == ["side", "link", "title", "state", "facts", "passed_over", "object"]
    cause = verdict.to_json(FAILED)["cause"]
    assert cause == {"kind": "DestinationRule", "namespace": "x", "name": "r", "file": "f.yaml", "line": 3}
