"""Merged metrics: the agent's own, Envoy's and the application's as one answer for Prometheus.

In: where the application serves metrics, from the annotations that the injector saved (`ISTIO_PROMETHEUS_ANNOTATIONS`).
Out: bodies one after the other, the application's last, in whose format the answer is declared; Envoy's with Istio's
labels. A source that fails leaves the others whole: it is logged and counted, and the answer is still a success.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence

import aiohttp
import msgspec

from mizzen import observe
from mizzen.agent import metrics
from mizzen.agent.status.standard_metrics import Expander
from mizzen.errors import AgentError, DecodeError

_LARGEST = 10 * 1024 * 1024
_TIMEOUT = aiohttp.ClientTimeout(total=10.0)
_TEXT = observe.METRICS_CONTENT_TYPE
_OPEN_METRICS = "application/openmetrics-text"
_EOF = b"# EOF"
_SLICE = 4000
"""Lines that are read at once."""
_FORWARDED = ("Accept", "User-Agent", "X-Prometheus-Scrape-Timeout-Seconds")

_log = observe.scope("scrape")


class Target(msgspec.Struct, frozen=True):
    """A port and path at which the application serves metrics."""

    port: int
    path: str = "/metrics"


class Merged(msgspec.Struct, frozen=True):
    """The answer and how it is declared."""

    body: bytes
    content_type: str


def parse_targets(annotations: str) -> tuple[Target, ...]:
    """The application's targets; none where it is not to be scraped. `annotations` is the injector's JSON."""
    if not annotations:
        return ()
    try:
        given = json.loads(annotations)
        if str(given.get("scrape", "")).lower() != "true":
            return ()
        several = given.get("targets") or [{"port": given.get("port") or 80, "path": given.get("path")}]
        return tuple(
            Target(int(target["port"]), "/" + (target.get("path") or "/metrics").lstrip("/")) for target in several
        )
    except (ValueError, TypeError, KeyError, AttributeError) as bad:
        raise DecodeError(f"expected scrape, port, path and targets: {bad}", "ISTIO_PROMETHEUS_ANNOTATIONS") from bad


class Scraper:
    """Collects from Envoy at `envoy` (a URL) and from the application's targets on `host`."""

    def __init__(self, session: aiohttp.ClientSession, *, envoy: str, host: str, targets: Sequence[Target]) -> None:
        self._session = session
        self._envoy = envoy
        self._targets = [f"http://{host}:{target.port}{target.path}" for target in targets]

    async def collect(self, query: str, headers: Mapping[str, str]) -> Merged:
        """All metrics; the query string goes on to Envoy, the negotiation headers to the application."""
        metrics.SCRAPES.inc()
        passed = {name: headers[name] for name in _FORWARDED if name in headers}
        envoy, *application = await asyncio.gather(
            self.collect_envoy(query), *(self._fetch("application", url, passed) for url in self._targets)
        )
        agent = observe.render_metrics()
        answered = [answer for answer in application if answer is not None]
        return merge_metrics([agent, *([envoy.body] if envoy else [])], answered)

    async def collect_envoy(self, query: str) -> Merged | None:
        """Envoy's metrics with Istio's labels; None where Envoy does not answer."""
        answer = await self._fetch("envoy", f"{self._envoy}?{query}" if query else self._envoy, {})
        if answer is None or not answer.content_type.startswith("text/plain"):
            return answer
        return Merged(await _expand(answer.body), answer.content_type)

    async def _fetch(self, kind: str, url: str, headers: Mapping[str, str]) -> Merged | None:
        try:
            return await self._get(url, headers)
        except (aiohttp.ClientError, TimeoutError, OSError, AgentError) as failed:
            metrics.SCRAPE_FAILURES.labels(kind).inc()
            _log.warning("scraping %s: %s", url, str(failed) or type(failed).__name__)
            return None

    async def _get(self, url: str, headers: Mapping[str, str]) -> Merged:
        async with self._session.get(url, headers=headers, timeout=_TIMEOUT) as response:
            body = await response.content.read(_LARGEST)
            while len(body) < _LARGEST and (more := await response.content.read(_LARGEST - len(body))):
                body += more
            if response.status != 200:
                raise AgentError(f"status {response.status}")
            return Merged(body, response.headers.get("Content-Type", _TEXT))


async def _expand(body: bytes) -> bytes:
    """Istio's labels in place of records, in slices that hold nobody up."""
    lines = body.split(b"\n")
    expander = Expander()
    for start in range(0, len(lines), _SLICE):
        expander.read(lines[start : start + _SLICE])
        await asyncio.sleep(0)
    return expander.body()


def merge_metrics(own: Sequence[bytes], application: Sequence[Merged]) -> Merged:
    """Bodies in order, the application's last; one `# EOF` at the end if the application speaks OpenMetrics."""
    open_metrics = next((part.content_type for part in application if part.content_type.startswith(_OPEN_METRICS)), "")
    parts = [_ended(body) for body in own]
    parts += [_ended(part.body.rstrip().removesuffix(_EOF)) for part in application]
    body = b"".join(parts)
    return Merged(body + _EOF + b"\n", open_metrics) if open_metrics else Merged(body, _TEXT)


def _ended(body: bytes) -> bytes:
    return body if not body or body.endswith(b"\n") else body + b"\n"
