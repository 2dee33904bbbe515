"""Brings the sample shop up and shows, claim by claim, that it is a real mesh.

`python samples/demo.py` stays up until Ctrl-C; with ONCE=1 in the environment it ends after the last claim. The exit
code is 0 if every claim held. Everything shown is taken from where it happened: answers of the receiving programs,
counters of their Envoys, the control plane's own status; nothing is read from the configuration.
"""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from mizzen.errors import MizzenError
from mizzen.local import observer, runtime

SHOP = pathlib.Path(__file__).resolve().parent / "shop"
NAME = "shop"
REQUESTS = 1000
WORKERS = 4
UP_SECONDS = 25.0
IDENTITY = "spiffe://cluster.local/ns/{}/sa/{}"
MIZZEN = (sys.executable, "-m", "mizzen")

Answer = tuple[int, dict[str, Any]]


class Claims:
    """What was claimed so far, and whether it held."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.count = 0

    def check(self, holds: bool, text: str) -> None:
        self.count += 1
        print(f"  {'ok' if holds else 'FAILED':6}  {text}", flush=True)
        if not holds:
            self.failed.append(text)


# -- the mesh ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running_mesh() -> Iterator[subprocess.Popen[str]]:
    """`mizzen up`, its lines passed on, ended at the end."""
    process = subprocess.Popen((*MIZZEN, "up", str(SHOP), "--name", NAME), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    threading.Thread(target=pass_on, args=(process.stdout,), daemon=True).start()
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def pass_on(lines: Any) -> None:
    for line in lines:
        print(f"  {line}", end="", flush=True)


def wait_for(process: subprocess.Popen[str], check: Callable[[], Any], seconds: float) -> Any:
    """The first true value of `check`; None when the mesh has ended or the time is over."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(MizzenError, OSError, http.client.HTTPException):
            if value := check():
                return value
        time.sleep(0.05)
    return None


def read_state() -> runtime.State:
    base = runtime.find_base(os.getuid(), os.environ)
    return runtime.read_state(runtime.select_mesh(base, NAME))


def find_gateway() -> str:
    """host:port of the ingress gateway on this machine."""
    published = [item for item in read_state().published if item.service == "istio-ingressgateway"]
    return published[0].address if published else ""


# -- requests ---------------------------------------------------------------------------------------------------------


class Client:
    """Sends requests through the gateway, one connection a thread."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._local = threading.local()

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        """Status and JSON; status 0 with the reason where there was no answer."""
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection(self._address, timeout=15)
        connection = self._local.connection
        try:
            connection.request("GET", path, headers=headers or {})
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as failed:
            connection.close()
            return 0, {"error": f"{type(failed).__name__}: {failed}"}
        with contextlib.suppress(ValueError):
            return response.status, json.loads(body)
        return response.status, {"error": body.decode(errors="replace")[:200]}


def send_all(client: Client) -> list[tuple[str, Answer]]:
    """The demo's traffic: mostly shoppers, some testers, some that go on to the checkout."""
    kinds = ["tester" if n % 20 == 0 else "checkout" if n % 20 == 10 else "shopper" for n in range(REQUESTS)]

    def send(kind: str) -> tuple[str, Answer]:
        headers = {"x-user": "tester"} if kind == "tester" else {}
        return kind, client.get("/checkout" if kind == "checkout" else "/", headers)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(send, kinds))


# -- claims -----------------------------------------------------------------------------------------------------------


def show_traffic(answers: list[tuple[str, Answer]], seconds: float, claims: Claims) -> None:
    failures = collections.Counter(
        f"{status}: {body.get('error') or body.get('failed')}" for _, (status, body) in answers if status != 200
    )
    for reason, count in failures.most_common(5):
        print(f"          {count} x {reason}")
    failed = sum(failures.values())
    claims.check(failed == 0, f"{len(answers)} requests through the gateway in {seconds:.1f} s, {failed} failed")


def show_split(answers: list[tuple[str, Answer]], claims: Claims) -> None:
    versions: dict[str, collections.Counter[str]] = {}
    for kind, (status, body) in answers:
        if status == 200:
            versions.setdefault(kind, collections.Counter())[body["cart"]["version"]] += 1
    everybody = versions.get("shopper", collections.Counter()) + versions.get("checkout", collections.Counter())
    total, second = everybody.total(), everybody["v2"]
    deviation = (second - 0.1 * total) / math.sqrt(0.09 * total) if total else math.inf
    share = second / total if total else 0.0
    claims.check(
        abs(deviation) < 4,
        f"90/10 split: {everybody['v1']} to v1, {second} to v2 ({share:.1%}, {deviation:+.1f} standard deviations)",
    )
    testers = versions.get("tester", collections.Counter())
    claims.check(set(testers) == {"v2"}, f"all {testers.total()} requests of testers went to v2 by their header")


def show_identities(answers: list[tuple[str, Answer]], claims: Claims) -> None:
    """The receivers' own words: the certificate header that their sidecars wrote."""
    callers = {
        "front": ("istio-system", "istio-ingressgateway"),
        "cart": ("shop", "front"),
        "catalog": ("shop", "front"),
    }
    seen: dict[str, collections.Counter[tuple[str, str]]] = {name: collections.Counter() for name in callers}
    for _, (status, body) in answers:
        if status == 200:
            for name in callers:
                part = body if name == "front" else body[name]
                seen[name][read_certificate_header(part["served_by"]["x-forwarded-client-cert"])] += 1
    for name, (namespace, account) in callers.items():
        expected = (IDENTITY.format("shop", name), IDENTITY.format(namespace, account))
        count, total = seen[name][expected], seen[name].total()
        claims.check(
            total > 0 and count == total,
            f"mutual TLS at {name}: {count} of {total} requests from {expected[1]}, received as {expected[0]}",
        )


def read_certificate_header(text: str) -> tuple[str, str]:
    """Who received and who called, by the last element of x-forwarded-client-cert."""
    fields = dict(part.partition("=")[::2] for part in text.rpartition(",")[2].split(";"))
    return fields.get("By", ""), fields.get("URI", "")


def show_tcp_identities(state: runtime.State, claims: Claims) -> None:
    """TCP carries no headers; the receiving Envoys count connections by the identity in the caller's certificate."""
    front = IDENTITY.format("shop", "front")
    for name in ("ledger", "payments"):
        pods = [pod for pod in state.pods if pod.name.startswith(f"{name}-")]
        series = [line for pod in pods for line in observer.scrape(state, pod, os.environ).splitlines()]
        opened = [line for line in series if line.startswith("istio_tcp_connections_opened_total{")]
        here = [line for line in opened if 'reporter="destination"' in line]
        good = sum(
            int(float(line.rpartition(" ")[2]))
            for line in here
            if 'connection_security_policy="mutual_tls"' in line and f'source_principal="{front}"' in line
        )
        total = sum(int(float(line.rpartition(" ")[2])) for line in here)
        claims.check(
            total > 0 and good == total, f"mutual TLS at {name}: {good} of {total} TCP connections came from {front}"
        )


def show_denials(state: runtime.State, client: Client, claims: Claims) -> None:
    status, body = client.get("/ask-catalog?url=http://cart:8080/")
    denied = body.get("catalog", {}).get("answer", {})
    claims.check(
        (status, denied.get("status")) == (200, 403),
        f"catalog asks cart, which only front may: {denied.get('status')} {str(denied.get('text', '')).strip()}",
    )
    outside = runtime.first_pod(state, "rates.outside")
    for name in ("cart", "catalog"):
        target = next(pod for pod in state.pods if pod.name.startswith(f"{name}-"))
        words = ask_in_plain_text(state, outside, f"http://{target.address}:8080/")
        reset = re.search(r"reset|closed|without response", words, re.IGNORECASE)
        logged = wait_until(lambda target=target: refusals_logged(target), 10)
        claims.check(
            bool(reset and logged), f"plaintext from outside the mesh to {name}: {words}; its Envoy logs {logged}"
        )
    words = ask_in_plain_text(state, outside, f"http://{outside.address}:8080/healthz")
    claims.check(words == "200", f"the same client, asking a server without a sidecar: {words}")


def ask_in_plain_text(state: runtime.State, pod: runtime.Pod, url: str) -> str:
    """The status that a client without a sidecar gets, or what became of its connection."""
    script = f"import urllib.request as u; print(u.urlopen({url!r}, timeout=5).status)"
    done = observer.run_in_pod(state, pod, ("python3", "-c", script), os.environ)
    return (done.stderr.strip().splitlines() or [done.stdout.strip()])[-1].strip("<>")


def refusals_logged(pod: runtime.Pod) -> str:
    """The sidecar's word on a connection that matched none of its filter chains."""
    done = subprocess.run(
        (*MIZZEN, "logs", f"{pod.name}.{pod.namespace}", "-c", "istio-proxy", "--mesh", NAME),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "NR filter_chain_not_found" if "NR filter_chain_not_found" in done.stdout else ""


def wait_until(check: Callable[[], str], seconds: float) -> str:
    """The first text that is not empty; Envoy writes its log once a second."""
    end = time.monotonic() + seconds
    while not (text := check()) and time.monotonic() < end:
        time.sleep(0.2)
    return text


def show_status(state: runtime.State, claims: Claims) -> None:
    done = subprocess.run(
        (*MIZZEN, "proxy-status", "--mesh", NAME), capture_output=True, text=True, timeout=60, check=False
    )
    print()
    for line in (done.stdout + done.stderr).splitlines():
        print(f"  {line}")
    print()
    rows = done.stdout.splitlines()[1:]
    proxies = [pod for pod in state.pods if pod.sidecar]
    cells = [re.split(r"\s{2,}", row.strip()) for row in rows]
    synced = [row for row in cells if row[2:6] == ["SYNCED"] * 4 and not {"STALE", "ERROR"} & set(row)]
    claims.check(
        len(synced) == len(proxies) == len(rows), f"proxy-status: {len(synced)} of {len(proxies)} proxies SYNCED"
    )
    rejected = observer.rejections(proxies)
    for name, count in rejected.items():
        print(f"          {count} x {name}")
    claims.check(not rejected, f"{sum(rejected.values())} NACKs, counted by {len(proxies)} Envoys")


def run_claims(process: subprocess.Popen[str], started: float, claims: Claims) -> None:
    address = wait_for(process, find_gateway, 60)
    first = wait_for(process, lambda: address and Client(address).get("/")[0] == 200, 90)
    elapsed = time.monotonic() - started
    claims.check(
        bool(first) and elapsed <= UP_SECONDS, f"first request answered {elapsed:.1f} s after `mizzen up` started"
    )
    state = wait_for(process, lambda: read_state() if read_state().ready else None, 60)
    claims.check(state is not None, "every pod is ready")
    if not first or state is None:
        return
    sidecars = sum(pod.sidecar for pod in state.pods)
    claims.check(sidecars >= 9, f"{sidecars} Envoys run, the gateway's among them")
    client = Client(address)
    began = time.monotonic()
    answers = send_all(client)
    show_traffic(answers, time.monotonic() - began, claims)
    show_split(answers, claims)
    show_identities(answers, claims)
    show_tcp_identities(state, claims)
    show_denials(state, client, claims)
    show_status(state, claims)


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # The mesh goes away, as at Ctrl-C.
    claims = Claims()
    started = time.monotonic()
    with running_mesh() as process:
        run_claims(process, started, claims)
        if process.poll() is not None:
            claims.check(False, f"`mizzen up` ended by itself with code {process.returncode}")
        held = claims.count - len(claims.failed)
        print(f"\n{held} of {claims.count} claims hold", flush=True)
        if not claims.failed and not os.environ.get("ONCE"):
            print(f"The shop stays up at http://{find_gateway()}/ until Ctrl-C. Try: mizzen proxy-status", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
    return 1 if claims.failed else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
