"""The webhooks' server on a real port: paths, certificates that change, and what waits for the cluster's objects."""

import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from injected_pods import build_pod
from kube_webhooks import review

from mizzen import settings
from mizzen.ca.authority import Authority, start_self_signed
from mizzen.ca.serving import ServingCertificate
from mizzen.control import http
from mizzen.control.options import Address
from mizzen.control.webhooks import injection, server, tls
from mizzen.control.webhooks.injection import Injector
from mizzen.control.webhooks.installation import Installation
from mizzen.inject.values import InjectionConfig

CONFIG = settings.Authority(root_key_bits=2048)


class Port:
    """A server with its authority."""

    def __init__(self) -> None:
        state = start_self_signed("cluster.local", CONFIG, time.time())
        self.authority = Authority(state, CONFIG, time.time, self_signed_for="cluster.local", fresh=True)
        self.certificate = ServingCertificate(self.authority, ("127.0.0.1", "localhost"), time.time)
        self.is_ready = True
        injector = Injector(Installation({}, tuple, InjectionConfig(), False), dict)
        application = server.application(injector, lambda: self.is_ready)
        context = tls.make_context(self.certificate)
        self.server = http.Server(application, "--httpsAddr", Address("127.0.0.1", 0), context)
        self.number = 0

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.bundle.decode())

    async def post(self, path: str, body: Any, kind: str = "application/json") -> tuple[int, str]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.url(path), data=data, headers={"Content-Type": kind}, ssl=self.trust()) as answer,
        ):
            return answer.status, await answer.text()

    async def ready(self) -> int:
        async with aiohttp.ClientSession() as session, session.get(self.url("/ready"), ssl=self.trust()) as answer:
            return answer.status

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"https://{host}:{self.number}{path}"


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    port = Port()
    port.number = await port.server.start()
    yield port
    await port.server.stop()


POD = {"kind": "Pod", **build_pod()}


@pytest.mark.parametrize("path", ["/inject", "/inject/", "/inject/cluster/c/net/n", "/inject/:ENV:cluster=c"])
async def test_pods_are_injected_below_any_path(port: Port, path: str) -> None:
    status, text = await port.post(path, review(POD))
    assert status == 200
    assert json.loads(text)["response"]["patchType"] == "JSONPatch"


async def test_objects_are_judged(port: Port) -> None:
    document = {"apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": {"name": "x"}}
    status, text = await port.post("/validate", review({**document, "spec": {"egress": [{"hosts": ["no"]}]}}))
    assert (status, json.loads(text)["response"]["allowed"]) == (200, False)


async def test_a_large_object_is_judged(port: Port) -> None:
    hosts = [f"./h{number}.example.com" for number in range(20_000)]
    document = {"apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": {"name": "x"}}
    _, text = await port.post("/validate", review({**document, "spec": {"egress": [{"hosts": hosts}]}}))
    assert json.loads(text)["response"]["allowed"]


@pytest.mark.parametrize("path", ["/inject", "/validate"])
@pytest.mark.parametrize(
    ("body", "kind", "status", "says"),
    [
        (b"", "application/json", 400, "no body found"),
        (b"{}", "text/plain", 415, "invalid Content-Type, want `application/json`"),
        (b"{", "application/json", 400, "no AdmissionReview"),
    ],
)
async def test_what_is_no_review(port: Port, path: str, body: bytes, kind: str, status: int, says: str) -> None:
    before = counts(status)
    found, text = await port.post(path, body, kind)
    assert (found, says in text) == (status, True)
    validates = path == "/validate"
    assert counts(status) == (before[0] + validates, before[1] + (not validates))


def counts(status: int) -> tuple[float, float]:
    """What was no review: of those that validate, and of those that inject."""
    return server._HTTP_ERRORS.value(str(status)), injection._FAILURES.value()


async def test_no_pod_is_injected_before_the_cluster_is_known(port: Port) -> None:
    port.is_ready = False
    assert (await port.post("/inject", review(POD)))[0] == 503
    assert await port.ready() == 503
    document = {"apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": {"name": "x"}, "spec": {}}
    assert (await port.post("/validate", review(document)))[0] == 200
    port.is_ready = True
    assert await port.ready() == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_new_connections_see_the_newest_certificate_and_old_ones_go_on(port: Port, host: str) -> None:
    body = json.dumps(review(POD)).encode()

    async def ask(session: aiohttp.ClientSession) -> int:
        headers = {"Content-Type": "application/json"}
        async with session.post(port.url("/inject", host), data=body, headers=headers, ssl=port.trust()) as answer:
            return answer.status

    async with contextlib.AsyncExitStack() as stack:
        sessions = []
        for _ in range(3):
            sessions.append(await stack.enter_async_context(aiohttp.ClientSession()))
            assert [await ask(session) for session in sessions] == [200] * len(sessions)
            port.certificate.renew()
