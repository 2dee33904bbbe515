"""The HTTP server of the agent: readiness once and for all, orders from within the pod only."""

import pytest
from aiohttp.test_utils import TestClient, TestServer

from mizzen.agent import admin
from mizzen.agent.status import scrape
from mizzen.agent.status.probes import Prober, parse_probes
from mizzen.agent.status.server import Orders, Ready, Status
from mizzen.errors import AgentError

LIVE = admin.Readiness(
    state="LIVE",
    workers_started=True,
    clusters_accepted=1,
    clusters_rejected=0,
    listeners_accepted=1,
    listeners_rejected=0,
)


class Envoy:
    """Stands where the admin interface is."""

    def __init__(self, **fields) -> None:
        self.fields = fields

    async def readiness(self) -> admin.Readiness:
        if self.fields.get("state") == "GONE":
            raise AgentError("Envoy's admin interface: connection refused")
        return admin.Readiness(**{**{name: getattr(LIVE, name) for name in LIVE.__struct_fields__}, **self.fields})


class Metrics:
    """Stands where the scraper is."""

    async def collect(self, query: str, headers) -> scrape.Merged:
        return scrape.Merged(f"query {query} {headers['Accept']}\n".encode(), "text/odd")


class Pod:
    """A status server and what was ordered through it."""

    def __init__(self, *, has_names: bool = True, **envoy) -> None:
        self.envoy = Envoy(**envoy)
        self.has_names = has_names
        self.ordered: list[str] = []
        ready = Ready(self.envoy, lambda: self.has_names)
        self.status = Status(ready, Metrics(), Prober(parse_probes(""), address="127.0.0.1"), self._orders())

    def _orders(self) -> Orders:
        async def drain() -> None:
            self.ordered.append("drain")

        return Orders(drain, lambda: self.ordered.append("quit"))

    def client(self) -> TestClient:
        return TestClient(TestServer(self.status.application()))


async def readiness(client: TestClient) -> tuple[int, str]:
    async with client.get("/healthz/ready") as answer:
        return answer.status, await answer.text()


async def test_pod_is_ready_when_envoy_has_its_configuration_and_dns_its_names() -> None:
    pod = Pod(has_names=False, listeners_accepted=0)
    async with pod.client() as client:
        status, text = await readiness(client)
        assert status == 503
        assert text.startswith("config not received")
        pod.envoy.fields = {}
        assert await readiness(client) == (503, "the name table has not been received")
        pod.has_names = True
        assert await readiness(client) == (200, "")


async def test_once_ready_only_envoys_life_counts() -> None:
    pod = Pod()
    async with pod.client() as client:
        assert (await readiness(client))[0] == 200
        pod.envoy.fields = {"clusters_accepted": 0}
        assert (await readiness(client))[0] == 200
        pod.envoy.fields = {"state": "DRAINING"}
        assert (await readiness(client))[0] == 503
        pod.envoy.fields = {"state": "GONE"}
        assert await readiness(client) == (503, "Envoy's admin interface: connection refused")
        pod.envoy.fields = {}
        assert (await readiness(client))[0] == 200


async def test_orders_are_posts_from_within_the_pod() -> None:
    pod = Pod()
    async with pod.client() as client:
        for path in ("/drain", "/quitquitquit"):
            assert (await client.get(path)).status == 405
            assert (await client.post(path)).status == 200
    assert pod.ordered == ["drain", "quit"]


@pytest.mark.parametrize("path", ["/drain", "/quitquitquit"])
async def test_strangers_give_no_orders(path: str, monkeypatch) -> None:
    from aiohttp import web

    monkeypatch.setattr(web.Request, "remote", "10.1.2.3")
    pod = Pod()
    async with pod.client() as client:
        assert (await client.post(path)).status == 403
    assert pod.ordered == []


async def test_metrics_pass_query_and_negotiation_on() -> None:
    async with Pod().client() as client, client.get("/stats/prometheus?usedonly", headers={"Accept": "a"}) as answer:
        assert await answer.text() == "query usedonly a\n"
        assert answer.headers["Content-Type"] == "text/odd"


async def test_own_metrics_have_istios_names() -> None:
    async with Pod().client() as client, client.get("/metrics") as answer:
        text = await answer.text()
    assert "\nistio_agent_xds_proxy_requests " in text
    assert "istio_agent_xds_proxy_requests_total" not in text


async def test_unknown_probe_is_not_found() -> None:
    async with Pod().client() as client:
        assert (await client.get("/app-health/web/readyz")).status == 404
