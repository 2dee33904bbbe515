"""What single lines tell: recorded ones, and each flag by itself."""

import log_faults
import pytest

from mizzen.diagnose.access_logs import causes, flags, rules
from mizzen.diagnose.access_logs.lines import Entry, parse_line
from mizzen.diagnose.access_logs.rules import Finding


@pytest.mark.parametrize("recording", log_faults.recordings(), ids=lambda r: f"{r.cause}-{r.service}")
def test_a_recorded_line_tells_its_cause(recording: log_faults.Recording) -> None:
    """At least one side of each request names what was put there; the other may see less."""
    told = {finding.code for line in recording.lines if (finding := rules.find(_read(line))) is not None}
    if recording.cause == "fine":
        assert told == set()
    elif recording.cause == "plain-to-strict":
        assert told == {"connection-closed", "plain-to-strict"}
    else:
        assert recording.cause in told


def _read(line: str) -> Entry:
    found = parse_line(line)
    assert found is not None
    return found


@pytest.mark.parametrize("flag", sorted(flags.FLAGS))
def test_every_flag_alone_has_a_cause(flag: str) -> None:
    found = rules.find(Entry(method="GET", status=503, flags=frozenset({flag}), cluster="outbound|80||a.b.svc.c.l"))
    if flag == "RFCF":  # An answer from a cache is an answer.
        assert found == Finding("program-answers", "503")
    else:
        assert found is not None
        assert found.code in causes.CAUSES
        assert found.code != "other" or flag in ("DI",)


def test_every_cause_of_the_tables_is_explained() -> None:
    named = {code for _, code in rules._TRANSPORT} | {code for _, code in rules._RESETS} | set(rules._FLAGS.values())
    assert named <= set(causes.CAUSES)


@pytest.mark.parametrize(
    ("details", "code", "mark"),
    [
        ("rbac_access_denied_matched_policy[ns[a]-policy[b]-rule[2]]", "denied-by-rule", "ns[a]-policy[b]-rule[2]"),
        ("rbac_access_denied_matched_policy[none]", "denied-by-default", ""),
        ("jwt_authn_access_denied{Jwt_is_expired}", "token", "Jwt_is_expired"),
        ("upstream_reset_before_response_started{connection_failure,TLS_error:_268435703}", "tls-to-plain", ""),
        ("upstream_reset_before_response_started{connection_failure,delayed_connect_error:_111}", "refused", ""),
        ("upstream_response_timeout", "timeout", ""),
        ("downstream_local_disconnect(on_idle_timeout)", "closed-here", "on_idle_timeout"),
        ("http2.too_many_headers", "client-protocol", ""),
        ("upstream_reset_before_response_started{connection_failure}", "connect-failed", ""),
    ],
)
def test_details_of_this_and_older_releases(details: str, code: str, mark: str) -> None:
    entry = Entry(method="GET", status=503, flags=frozenset({"UF"}), details=details)
    assert rules.find(entry) == Finding(code, mark)


def test_what_no_table_knows_is_told_as_it_stands() -> None:
    entry = Entry(method="GET", status=503, flags=frozenset({"ZZ"}), details="something_new{odd}")
    assert rules.find(entry) == Finding("other", "503 ZZ something_new")


def test_flags_stand_in_any_order() -> None:
    text = "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}"
    lines = [
        f'[2026-11-30T01:00:00.000Z] "GET / HTTP/1.1" 503 {order} {text} - "delayed_connect_error:_Connection_refused" '
        '0 1 2 - "-" "-" "i" "a" "10.0.0.1:80" outbound|80||a.b.svc.cluster.local - 1.1.1.1:80 1.1.1.2:99 - default'
        for order in ("UF,URX", "URX,UF")
    ]
    assert {rules.find(_read(line)) for line in lines} == {Finding("refused")}


@pytest.mark.parametrize(
    "entry",
    [
        Entry(method="GET", status=200, details="via_upstream"),
        Entry(
            method="GET", status=101, flags=frozenset({"DC"}), details="downstream_remote_disconnect", upstream="a:1"
        ),
        Entry(method="GET", status=301, details="direct_response"),
        Entry(status=0, upstream="10.0.0.1:9000"),
        Entry(status=0, flags=frozenset({"DC"}), upstream="10.0.0.1:9000"),
    ],
    ids=["answer", "websocket", "redirect", "connection", "closed-by-client"],
)
def test_nothing_is_wrong_with_these(entry: Entry) -> None:
    assert rules.find(entry) is None
