"""`--set` flags."""

from typing import Any

import pytest

from mizzen.errors import DecodeError
from mizzen.install.assignments import parse_assignments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a.b.c=1,a.d=true", {"a": {"b": {"c": 1}, "d": True}}),
        ("a=,b=null", {"a": "", "b": None}),
        ("a={x,2,true}", {"a": ["x", 2, True]}),
        ("a={}", {"a": []}),
        ("a[0].b=1,a[2]=c", {"a": [{"b": 1}, None, "c"]}),
        (r"a\.b=c\,d", {"a.b": "c,d"}),
        (r"a.kubernetes\.io/os=linux", {"a": {"kubernetes.io/os": "linux"}}),
        ("a=b=c", {"a": "b=c"}),
        ("a=007,b=1.5,c=-3", {"a": "007", "b": "1.5", "c": -3}),
        (r"a=\true", {"a": "true"}),
        ("values.global.hub=x,spec.values.revision=y", {"global": {"hub": "x"}, "revision": "y"}),
        ("hub=x,tag=1.2,namespace=mesh", {"global": {"hub": "x", "tag": "1.2", "istioNamespace": "mesh"}}),
        ("meshConfig.accessLogFile=/dev/stdout", {"meshConfig": {"accessLogFile": "/dev/stdout"}}),
        ("a=1,a=2", {"a": 2}),
    ],
)
def test_what_an_assignment_means(text: str, expected: dict[str, Any]) -> None:
    assert parse_assignments(text) == expected


def test_values_may_be_taken_as_texts() -> None:
    assert parse_assignments("a=true,b={1,2}", as_text=True) == {"a": "true", "b": ["1", "2"]}


@pytest.mark.parametrize("text", ["a", "=b", "a[x]=1", "a[99999]=1", "a[0]=1,a.b=2", "a.b=1,a[0]=2"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="--set"):
        parse_assignments(text)
