"""Thousands of lines as a few causes."""

from collections import Counter

import log_faults
import msgspec
import pytest

from mizzen.diagnose.access_logs import blame, groups
from mizzen.diagnose.access_logs.lines import Entry, parse_line

FRONT = "outbound|80||front.shop.svc.cluster.local"


def entry(**fields: object) -> Entry:
    """A request that a sidecar sent to `front`."""
    usual = {
        "method": "GET",
        "status": 200,
        "details": "via_upstream",
        "cluster": FRONT,
        "authority": "front",
        "upstream": "10.0.0.9:8080",
        "local": "10.96.0.1:80",
        "remote": "10.0.0.1:40000",
    }
    return Entry(**{**usual, **fields})  # type: ignore[arg-type]


def closed(number: int) -> Entry:
    details = "upstream_reset_before_response_started{connection_termination}"
    return entry(status=503, flags=frozenset({"UC"}), details=details, id=f"{number}", duration=2)


def codes(*entries: Entry) -> list[tuple[str, int]]:
    found, _ = groups.group(entries)
    return [(group.code, group.count) for group in found]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ten_thousand_lines_of_sixty_faults_are_sixty_causes(seed: int) -> None:
    faults = log_faults.faults()
    assert len(faults) == 60
    lines = log_faults.generate(seed)
    assert len(lines) == 10_000
    entries = [parse_line(line.text) for line in lines]
    known = [found for found in entries if found is not None]
    assert len(known) == len(lines)

    keys = groups.assign(known)
    found, healthy = groups.group(known)
    accused = {(g.code, g.mark, g.subject): blame.by_names(g) for g in found}

    assert len(found) <= 60
    right: Counter[bool] = Counter()
    wrong: Counter[str] = Counter()
    for line, key in zip(lines, keys, strict=True):
        if line.fault is None:
            assert key is None, line.text
        elif key is not None:  # Of some requests one side has nothing to tell.
            whom = accused[key]
            fits = key[0] == line.fault.cause and _is_meant(line.fault, whom, str(key[2]))
            right[fits] += 1
            wrong[f"{line.fault.cause} {line.fault.name}: {key} {whom}"] += not fits
    print(f"seed {seed}: {len(found)} groups, {right[True]} of {right.total()} right, {healthy} fine; {+wrong}")
    assert right[True] >= 0.95 * right.total()
    told = {
        line.fault.number for line, key in zip(lines, keys, strict=True) if line.fault is not None and key is not None
    }
    assert told == {fault.number for fault in faults}


def _is_meant(fault: log_faults.Fault, whom: blame.Blame, subject: str) -> bool:
    """Whether the object, by its kind and by its own name or the host that it is for, is the one with the fault."""
    if not fault.kind:
        return fault.name in subject
    return whom.kind == fault.kind and fault.name in (whom.name or whom.host)


def test_lines_that_are_no_access_log_are_counted() -> None:
    lines = ["starting", *(line.text for line in log_faults.generate(5, 200)), "", "{}"]
    found = groups.survey(lines)
    assert (found.lines, found.unknown) == (202, 2)
    assert found.healthy + sum(group.count for group in found.groups) == 200


def test_both_sides_of_a_request_are_one_cause() -> None:
    client = entry(status=403, id="one")
    server = entry(
        status=403,
        id="one",
        cluster="inbound|8080||",
        details="rbac_access_denied_matched_policy[none]",
        sni="outbound_.80_._.front.shop.svc.cluster.local",
    )
    assert codes(client, server) == [("denied-by-default", 2)]
    other = entry(status=403, id="two")
    assert codes(other, server) == [("denied-by-default", 1), ("program-answers", 1)]


def test_the_server_knows_better_what_became_of_its_program() -> None:
    details = "upstream_reset_before_response_started{connection_termination}"
    client = entry(status=503, id="one")
    server = entry(status=503, id="one", cluster="inbound|8080||", flags=frozenset({"UC"}), details=details)
    assert codes(client, server) == [("connection-closed", 2)]


def test_connections_meet_by_their_addresses() -> None:
    client = entry(
        status=503,
        flags=frozenset({"UC"}),
        details="upstream_reset_before_response_started{connection_termination}",
        upstream_local="10.0.0.1:51000",
    )
    server = Entry(
        flags=frozenset({"NR"}), details="filter_chain_not_found", local="10.0.0.9:8080", remote="10.0.0.1:51000"
    )
    (found,), _ = groups.group([client, server])
    assert (found.code, found.count, str(found.subject)) == ("plain-to-strict", 2, "front.shop:80")


def test_a_server_that_turns_somebody_away_does_not_say_whom() -> None:
    """Others call the same endpoint by a Service; who is turned away may have meant another one, or the pod itself."""
    served = entry(upstream_local="10.0.0.1:51000")
    stranger = Entry(
        flags=frozenset({"NR"}), details="filter_chain_not_found", local="10.0.0.9:8080", remote="10.0.0.7:40000"
    )
    (found,), _ = groups.group([served, stranger])
    assert (found.code, str(found.subject)) == ("plain-to-strict", "10.0.0.9:8080")
    assert str(blame.by_names(found)) == "PeerAuthentication for 10.0.0.9"


def test_a_server_that_closes_everything_is_strict_and_one_that_sometimes_does_is_not() -> None:
    assert codes(*map(closed, range(5))) == [("plain-to-strict", 5)]
    assert codes(*map(closed, range(5)), entry()) == [("connection-closed", 5)]
    assert codes(closed(1)) == [("connection-closed", 1)]


def test_what_one_client_may_another_may_not() -> None:
    other = entry(remote="10.0.0.2:40000")
    assert codes(*map(closed, range(5)), other) == [("plain-to-strict", 5)]


def test_hosts_that_somebody_makes_up_are_told_once() -> None:
    def unknown(host: str) -> Entry:
        return Entry(
            method="GET",
            status=404,
            flags=frozenset({"NR"}),
            details="route_not_found",
            authority=host,
            local="10.0.0.3:8080",
        )

    made_up = [unknown(f"www{n}.example.com") for n in range(300)]
    found, _ = groups.group([*made_up, unknown("shop.example.com"), unknown("shop.example.com")])
    assert len(found) == 51
    assert [(g.count, g.hosts) for g in found if g.hosts > 1] == [(251, 251)]
    assert [str(g.subject) for g in found if g.count == 2] == ["shop.example.com:8080"]


def test_the_first_line_that_tells_by_itself_is_the_example() -> None:
    client = entry(status=504, id="slow", line="client")
    server = entry(status=504, flags=frozenset({"UT"}), details="response_timeout", id="slow", line="server")
    (found,), _ = groups.group([client, server])
    assert (found.code, found.example.line) == ("timeout", "server")


def test_addresses_of_ipv6_are_told_as_they_are_written() -> None:
    stranger = Entry(
        flags=frozenset({"NR"}), details="filter_chain_not_found", local="[fd00::9]:8080", remote="[fd00::7]:40000"
    )
    (found,), _ = groups.group([stranger])
    assert (found.subject.host, str(found.subject)) == ("fd00::9", "[fd00::9]:8080")
    assert str(blame.by_names(found)) == "PeerAuthentication for fd00::9"


def test_connections_that_end_after_a_while_are_refused_by_nobody() -> None:
    late = [msgspec.structs.replace(closed(number), duration=60_000) for number in range(5)]
    assert codes(*late) == [("connection-closed", 5)]


def turned_away(**fields: str) -> Entry:
    """A connection for which a server's proxy has no filter chain."""
    return Entry(flags=frozenset({"NR"}), details="filter_chain_not_found", **fields)  # type: ignore[arg-type]


def test_at_a_gateway_it_is_the_server_name_that_is_missing() -> None:
    """A gateway is known by what it serves: it calls from the address at which it is called."""
    served = entry(local="10.0.0.3:8080", upstream_local="10.0.0.3:50000")
    stranger = turned_away(local="10.0.0.3:8443", remote="192.0.2.1:40000")
    assert codes(served, stranger) == [("no-server-name", 1)]
    assert codes(stranger) == [("plain-to-strict", 1)]


def test_at_a_sidecar_it_is_tls_that_is_not_the_meshs() -> None:
    served = entry(cluster="inbound|8080||", local="10.0.0.9:8080", remote="10.0.0.1:50000")
    stranger = turned_away(local="10.0.0.9:8080", remote="10.0.0.7:40000", sni="shop.example.com")
    assert codes(served, stranger) == [("tls-unknown-to-server", 1)]
    assert codes(stranger) == [("no-server-name", 1)]


def test_an_authority_stands_for_the_service_that_others_reach_by_it() -> None:
    nowhere = entry(status=503, flags=frozenset({"NC"}), details="cluster_not_found", cluster="")
    other = entry(cluster="outbound|80||front.rival.svc.cluster.local")

    def subject(*others: Entry) -> str:
        (found,), _ = groups.group([*others, nowhere])
        return str(found.subject)

    assert subject(entry()) == "front.shop:80"
    assert subject(entry(), other) == "front:80", "one authority for two Services stands for neither"
