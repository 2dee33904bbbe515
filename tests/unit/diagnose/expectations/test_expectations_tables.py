"""Tables of tests: what they may say, and where an error is."""

import datetime

import pytest

from mizzen.diagnose.expectations import asking, tables
from mizzen.errors import DecodeError


def suite(*tests: dict[str, object], **more: object) -> tables.Suite:
    return tables.read_suite({"tests": list(tests), "defaults": {"from": "front.web"}, **more})


@pytest.mark.parametrize(
    ("plain", "path", "says"),
    [
        ([], "", "has no key `tests`"),
        ({"manifests": []}, "", "missing required field `tests`"),
        ({"tests": [{"from": "a"}]}, "tests[0]", "missing required field `url`"),
        ({"tests": [{"url": "http://a", "form": "a"}]}, "tests[0].form", "unknown key 'form'"),
        ({"tests": [{"url": "http://a", "from": "a", "expect": {"sttus": 1}}]}, "tests[0].expect.sttus", "unknown key"),
        ({"tests": [{"url": "http://a", "from": "a", "expect": {"status": "x"}}]}, "tests[0].expect.status", "int"),
        ({"tests": [{"url": "http://a", "from": "a", "expect": {"outcome": "won"}}]}, "tests[0].expect.outcome", "won"),
        ({"tests": [{"url": "http://a"}]}, "tests[0]", "`from`"),
        ({"tests": [{"url": "http://a", "from": "a", "token": "x", "jwt": "y"}]}, "tests[0].token", "not both"),
        ({"tests": [], "now": "2026-01-01T00:00:00"}, "now", "time zone"),
    ],
)
def test_errors_lead_to_the_field(plain: object, path: str, says: str) -> None:
    with pytest.raises(DecodeError) as caught:
        tables.read_suite(plain)

    assert caught.value.path == path
    assert says in caught.value.message


def test_a_time_is_read() -> None:
    assert suite(now="2026-01-01T00:00:00Z").now == datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def test_defaults_hold_where_a_test_says_nothing_else() -> None:
    read = tables.read_suite(
        {
            "defaults": {"from": "front.web", "method": "PUT", "headers": {"X-A": 1, "x-b": True}, "token": "t"},
            "tests": [
                {"url": "http://cart.shop:8080/a?b=c"},
                {
                    "url": "http://cart",
                    "from": "other",
                    "method": "GET",
                    "headers": {"x-a": 2, "X-B": None},
                    "token": "u",
                },
            ],
        }
    )
    common, own = (asking.build_request(case, read.defaults) for case in read.tests)

    assert (common.source, common.method, common.host, common.port, common.path) == (
        "front.web", "PUT", "cart.shop", 8080, "/a?b=c",
    )  # fmt: skip
    assert common.headers == (("X-A", "1"), ("x-b", "true"), ("authorization", "Bearer t"))
    assert (own.source, own.method) == ("other", "GET")
    assert own.headers == (("x-a", "2"), ("authorization", "Bearer u"))


def test_a_token_of_the_test_wins_over_the_file_of_the_defaults() -> None:
    (case,) = suite({"url": "http://a", "token": "x"}).tests

    assert asking.token_file(case, tables.Asked(jwt="common")) == ""
    assert asking.token_file(tables.Case(url="http://a"), tables.Asked(jwt="common")) == "common"
    assert asking.token_file(tables.Case(url="http://a", jwt="own"), tables.Asked(jwt="common")) == "own"


def test_files_that_are_named_are_read_into_the_request() -> None:
    case = tables.Case(url="https://a", jwt="token.jwt", cert="own.pem")
    request = asking.build_request(case, tables.Asked(source="x"), {"token.jwt": "abc\n", "own.pem": "PEM"})

    assert asking.named_files(case, tables.Asked()) == {"token.jwt", "own.pem"}
    assert request.headers == (("authorization", "Bearer abc"),)
    assert request.certificate == b"PEM"
