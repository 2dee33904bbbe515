"""Checks for people and programs: one pair in full, many as a table, all as JSON.

In: `Check`s and `Group`s. Out: text lines, a `Table`, plain values. Conflicts come first.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from mizzen.diagnose.table import Table
from mizzen.diagnose.tls_checks.checks import Check, Verdict
from mizzen.diagnose.tls_checks.clients import Client
from mizzen.diagnose.tls_checks.matrix import Group
from mizzen.diagnose.tls_checks.servers import Server

_ORDER: Sequence[Verdict] = ("CONFLICT", "DEPENDS", "UNREACHABLE", "PLAINTEXT", "TLS", "OK")
_SHOWN = 2
_DOMAIN = ".svc.cluster.local"


def describe(check: Check) -> Iterator[str]:
    """One pair."""
    sure = f" (if {check.assumes})" if check.assumes else ""
    yield f"{check.client} -> {check.host}:{check.port}: {check.verdict}{sure}"
    yield f"  client  {describe_client(check.speaks)}"
    for server in check.servers:
        yield f"  server  {server.address}:{server.port} {describe_server(server)}"
    if not check.servers:
        yield "  server  no endpoint"
    for address, outcome in check.by_endpoint:
        yield f"  at      {address}: {outcome.verdict}"
    for title, text in (("why", check.reason), ("cause", check.cause), ("fix", check.fix)):
        if text:
            yield f"  {title:<7} {text}"


def describe_client(client: Client) -> str:
    """What it speaks, and why."""
    why = f"tls.mode {client.mode} of {client.rule}" if client.rule is not None else client.mode
    return f"speaks {client.speaks}: {why}"


def describe_server(server: Server) -> str:
    """What it takes, and why."""
    takes = " or ".join(server.takes) or "nobody knows what"
    by = f" by {server.policy}" if server.policy is not None else ""
    return f"{server.pod} takes {takes}: {server.mode}{by}"


def build_table(groups: Iterable[Group]) -> Table:
    """Groups as rows."""
    ordered = sorted(groups, key=lambda group: (_ORDER.index(group.first.verdict), group.first.host, group.first.port))
    columns = ("VERDICT", "SERVICE", "CLIENTS", "CLIENT SPEAKS", "SERVER TAKES", "BECAUSE OF")
    return Table(columns=columns, rows=tuple(_row(group) for group in ordered), padding=2)


def _row(group: Group) -> tuple[str, ...]:
    check = group.first
    servers = dict.fromkeys(f"{' or '.join(server.takes) or '?'} ({server.mode})" for server in check.servers)
    behind = (check.cause, check.speaks.rule, *(server.policy for server in check.servers))
    objects = dict.fromkeys(str(found) for found in behind if found is not None)
    return (
        check.verdict + ("?" if check.assumes else ""),
        f"{check.host.removesuffix(_DOMAIN)}:{check.port}",
        _listed(group.clients),
        f"{check.speaks.speaks} ({check.speaks.mode})",
        "; ".join(servers) or "-",
        "; ".join(objects) or "-",
    )


def _listed(clients: Sequence[str]) -> str:
    more = f" and {len(clients) - _SHOWN} more" if len(clients) > _SHOWN else ""
    return ", ".join(clients[:_SHOWN]) + more


def to_json(check: Check) -> dict[str, Any]:
    """One check as plain values."""
    plain: dict[str, Any] = msgspec.to_builtins(check)
    plain["client"] = {"pod": check.client, **plain.pop("speaks")}
    plain["by_endpoint"] = [{"endpoint": address, **outcome} for address, outcome in plain["by_endpoint"]]
    return plain


def count(groups: Iterable[Group]) -> dict[str, int]:
    """How many checks came to each verdict."""
    counts = dict.fromkeys(_ORDER, 0)
    for group in groups:
        counts[group.first.verdict] += len(group.clients)
    return {verdict: number for verdict, number in counts.items() if number}
