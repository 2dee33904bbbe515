"""What pushes have cost, and which objects have caused that.

In: `xds.costs.Costs`. Out: the page `pushes`, our own; `mizzen top pushes` reads it.
"""

from typing import Any

from mizzen.control.debug.clients import format_time
from mizzen.control.debug.console import Page, Pages, Query, Write
from mizzen.xds.costs import Account, Costs


def pages(costs: Costs) -> Pages:
    """The page about costs."""

    def read(_: Query) -> Write:
        accounts, total = costs.accounts(), costs.total
        return lambda: {"objects": [_describe(account) for account in accounts], "total": total._asdict()}

    return {"pushes": Page("Which objects, changed how, caused how many pushes and bytes to which proxies.", read)}


def _describe(account: Account) -> dict[str, Any]:
    kind, namespace, name = account.object
    return {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "change": account.how,
        "changes": account.changes,
        **account.cost._asdict(),
        "last": format_time(account.last),
        "proxies": [{**proxies._asdict(), **cost._asdict()} for proxies, cost in account.proxies],
    }
