"""How late a control plane answers while it pushes: requests to its HTTP ports, and its own measure of its loop's lag.

In: a control plane with its ports at work. Out: figures of the seconds that answers took between a change and the last
sidecar that was told, and of the histogram `mizzen_loop_lag_seconds` over the same time. Answers are asked for from
threads of this process, so their seconds hold what the machine makes these wait, too.
"""

import contextlib
import http.client
import re
import threading
import time
from collections.abc import Iterator, Sequence

from bench import changes, serving
from bench.crowd_process import Settle, Watch
from bench.figures import Figure, Target, percentile, quantile
from bench.rows import SERVICE, Work, figure, take_back

DEBUG_PAGE = "/debug/mesh"

_LAG = re.compile(r'^mizzen_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.M)
_PATIENCE = 60.0
_TIMEOUT = 60.0


class Answers:
    """Seconds that each answer took; those that did not come or were no 200 are counted."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.failures = 0


@contextlib.contextmanager
def ask_repeatedly(address: str, path: str, every: float, answers: Answers) -> Iterator[None]:
    """One request after another on one connection, from a thread, until the block ends."""
    over = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection(address, timeout=_PATIENCE)
        while not over.is_set():
            start = time.perf_counter()
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                answers.failures += answer.status != 200
            except (OSError, http.client.HTTPException):
                answers.failures += 1
                connection.close()
            answers.seconds.append(time.perf_counter() - start)
            over.wait(every)
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def read_lag(metrics: str) -> dict[float, float]:
    """Cumulative counts by upper bound, from a page of metrics."""
    return {float(bound): float(count) for bound, count in _LAG.findall(metrics)}


def lag_between(before: dict[float, float], after: dict[float, float]) -> list[tuple[float, float]]:
    """The histogram of what was observed between two readings."""
    return [(bound, count - before.get(bound, 0.0)) for bound, count in sorted(after.items())]


def lateness_figures(
    work: Work, plane: serving.ControlPlane, kinds: Sequence[str], turns: Sequence[int]
) -> list[Figure]:
    """One of each of these changes, so many times, and how late the control plane is meanwhile; the worst of them."""
    ready, debug = Answers(), Answers()
    worst, worst_kind, observed = 0.0, "", 0.0
    for name in kinds:
        lag: dict[float, float] = {}
        for turn in turns:
            for bound, count in _push(work, plane, name, turn, ready, debug):
                lag[bound] = lag.get(bound, 0.0) + count
        observed += lag[float("inf")]
        late = quantile(sorted(lag.items()), 0.99)
        if late > worst:
            worst, worst_kind = late, changes.KINDS[name].title
    row = "lateness during pushes"
    return [
        figure(
            row, "loop lag p99", worst, "s", Target(most=0.05), note=f"worst: {worst_kind}; {observed:.0f} readings"
        ),
        figure(row, "readiness p99", percentile(ready.seconds, 0.99), "s"),
        figure(row, "debug page p99", percentile(debug.seconds, 0.99), "s"),
        figure(row, "not answered", ready.failures + debug.failures, "", Target(exactly=0)),
    ]


def _push(
    work: Work, plane: serving.ControlPlane, name: str, turn: int, ready: Answers, debug: Answers
) -> list[tuple[float, float]]:
    """One change; the lag that the control plane observed until the last sidecar was told."""
    kind = changes.KINDS[name]
    change = kind.make(SERVICE, work.namespaces, turn)
    expected = sum(kind.concerns(node, SERVICE, work.namespaces) for node in work.nodes)
    work.crowd.ask(Watch(marker=change.marker))
    before = read_lag(plane.get("/metrics"))
    with (
        ask_repeatedly(plane.target(serving.READINESS), "/ready", 0.01, ready),
        ask_repeatedly(plane.target(serving.MONITORING), DEBUG_PAGE, 0.1, debug),
    ):
        start = time.monotonic()
        work.put(change)
        work.crowd.ask(Settle(since=start, expected=expected, quiet=0.0, timeout=_TIMEOUT))
    after = read_lag(plane.get("/metrics"))
    take_back(work, change, expected)
    return lag_between(before, after)
