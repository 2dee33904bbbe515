"""Validation under objects that nobody would write: made from the Structs' shapes, with values that tempt the rules."""

import time
from typing import Any, get_args

import msgspec
import pytest
import validated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mizzen.api.decode import decode_object
from mizzen.api.kinds import KINDS, Kind
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.merge import decode_mesh_networks, merge_mesh_config
from mizzen.api.mesh.networks import MeshNetworks
from mizzen.api.message import FreeForm
from mizzen.api.problems import Problem
from mizzen.api.scalars import Duration
from mizzen.api.shape import Field, Shape, shape_of
from mizzen.api.validate.mesh.settings import validate_mesh_config, validate_mesh_networks
from mizzen.api.validate.objects import validate_object

GROUPS = ("networking.istio.io", "security.istio.io", "telemetry.istio.io", "extensions.istio.io")
ISTIO = [kind for kind in KINDS if kind.group in GROUPS]
TEMPTING = [
    *("", "*", "*.a", "a", "a.b", "a_b", "/", "a/b", "*/*", "~", ".", "..", "mesh", "%", "{*}/{**}", "[", "(?=a)"),
    *("1.2.3.4", "1.2.3.4/33", "::1", "[::1]:80", "unix://", "unix:///a/", "80", "65536", "http", "TCP", "HTTPS"),
    *("oci://a b", "http://[", "istio.io/rev", "@request.auth.claims[a]", "request.headers[a]", "destination.port"),
    *(
        "configmap://a",
        '{"keys": [{"kty": []}]}',
        "a ? b",
        "r1/*",
        "r1/*/z",
        "é\x00",
        "\U0010ffff",
        "a" * 300,
        "5xx, 7",
    ),
]
TEXT = st.sampled_from(TEMPTING) | st.text(alphabet="ab*./-_:%{}[]()~\n é\u2028\U0010ffff", max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["name", "type.googleapis.com/a.v2.B", "1s"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "@type", "typed_config", "value", "filters"]), inner, max_size=3)
    ),
    max_leaves=8,
)
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    Duration: st.sampled_from(["0s", "1s", "0.0005s", "-1s", "1h0m0.001s"]),
    FreeForm: st.dictionaries(st.sampled_from(["name", "typed_config", "connect_timeout"]), JSON, max_size=3),
    bytes: st.sampled_from(["", "aGk="]),
    str: TEXT,
    bool: st.booleans(),
    float: st.sampled_from([0.0, -1.0, 1e-9, 100.0, 1e300]),
}
NUMBERS = st.sampled_from([0, 1, 80, 65535, 65536, 2**31 - 1])
LENIENT = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def field_values(field: Field) -> st.SearchStrategy[Any]:
    """Values of a field that decode."""
    if field.shape is not None:
        one: st.SearchStrategy[Any] = messages(field.shape)
    elif field.enum:
        one = st.sampled_from(get_args(field.leaf))
    else:
        one = LEAVES.get(field.leaf, NUMBERS)
    if field.container == "list":
        return st.lists(one, max_size=3)
    keys = TEXT if field.key is str else NUMBERS.map(str)
    return st.dictionaries(keys, one, max_size=3) if field.container == "map" else one


@st.composite
def messages(draw: st.DrawFn, shape: Shape) -> dict[str, Any]:
    """Data of a message, with a few of its fields."""
    names = draw(st.lists(st.sampled_from(sorted(shape.fields)), unique=True, max_size=6)) if shape.fields else []
    return {name: draw(field_values(shape.fields[name])) for name in names}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """An object of a kind of Istio's."""
    kind: Kind = draw(st.sampled_from(ISTIO))
    spec = draw(field_values(shape_of(kind.type).fields["spec"]))
    annotations = draw(st.dictionaries(st.sampled_from(["istio.io/dry-run", "a"]), TEXT, max_size=2))
    return validated.make_document(kind.kind, spec, name=draw(TEXT) or "x", annotations=annotations)


@LENIENT
@given(documents())
def test_validation_never_raises_and_says_the_same_again(document: dict[str, Any]) -> None:
    decoded = decode_object(document)
    found = decoded.object or decoded.remains
    assert found is not None
    assert decoded.key is not None
    problems = validate_object(decoded.key, found)

    assert validate_object(decoded.key, found) == problems
    for problem in problems:
        check_problem(problem)
        assert problem.key == decoded.key
        assert problem.path.startswith(("spec", "metadata.")) or problem.path == ""


def check_problem(problem: Problem) -> None:
    assert problem.message
    assert problem.code
    assert problem.level in ("error", "warning")
    msgspec.json.encode(problem)


@LENIENT
@given(messages(shape_of(MeshConfig)))
def test_validation_of_a_mesh_config_never_raises(plain: dict[str, Any]) -> None:
    for problem in validate_mesh_config(merge_mesh_config(plain)[0]):
        check_problem(problem)


@LENIENT
@given(messages(shape_of(MeshNetworks)))
def test_validation_of_networks_never_raises(plain: dict[str, Any]) -> None:
    for problem in validate_mesh_networks(decode_mesh_networks(plain)[0]):
        check_problem(problem)


MANY = range(3000)
ROUTE = [{"destination": {"host": "b"}}]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("VirtualService", {"hosts": [f"h{n}.example.com" for n in MANY], "http": [{"route": ROUTE}]}),
        ("VirtualService", {"hosts": ["a"], "http": [{"match": [{"uri": {"exact": f"/{n}"}} for n in MANY]}]}),
        ("VirtualService", {"hosts": ["a"], "http": [{"match": [{"uri": {"prefix": f"/{n}/"}} for n in MANY]}]}),
        ("VirtualService", {"hosts": ["a"], "http": [{"match": [{"uri": {"prefix": "/"}, "port": n} for n in MANY]}]}),
        ("VirtualService", {"hosts": ["a"], "http": [{"match": [{"uri": {"regex": f"{n}("}} for n in MANY]}]}),
        ("DestinationRule", {"host": "a", "subsets": [{"name": f"v{n}"} for n in MANY]}),
        ("ServiceEntry", {"hosts": [f"*.h{n}.example.com" for n in MANY]}),
        ("Sidecar", {"egress": [{"hosts": [f"ns{n}/*" for n in MANY]}]}),
        ("Gateway", {"servers": [{"port": {"number": 80, "name": f"p{n}", "protocol": "HTTP"}} for n in MANY]}),
        ("AuthorizationPolicy", {"rules": [{"to": [{"operation": {"paths": [f"/{n}" for n in MANY]}}]}]}),
        (
            "DestinationRule",
            {
                "host": "a",
                "trafficPolicy": {
                    "loadBalancer": {
                        "localityLbSetting": {"distribute": [{"from": f"r{n}/*", "to": {"a": 100}} for n in MANY]}
                    }
                },
            },
        ),
    ],
)
def test_very_long_lists_are_validated_at_once(kind: str, spec: dict[str, Any]) -> None:
    started = time.process_time()
    assert len(validated.find_problems(kind, spec)) <= 300
    assert time.process_time() - started < 10, "in CPU time, which a busy machine does not stretch"
