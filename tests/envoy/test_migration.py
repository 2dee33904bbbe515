"""A migration answers as nginx did: the same requests to nginx and to a real Envoy, the same answers.

nginx is configured from the sample Ingresses as ingress-nginx would; Envoy from what `migrate` makes of them. Compared
are the status, the place of a redirect, and what the backend was asked: which Service, path, host and headers. Only
what the migration declares may differ: https redirects keep a trailing slash, and fixed redirects keep the query.
"""

import asyncio
import contextlib
import pathlib
import random
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import echoes
import golden
import nginx_ingress
import pytest
import static_envoy
import yaml
from claims import own_port
from meshes import mesh_of, proxy
from traffic_certificates import ROOT
from yarl import URL

from mizzen.api.decode import decode_object
from mizzen.migrate.ingress import migrate

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.skipif(nginx_ingress.find_nginx() is None, reason="needs Debian's nginx"),
]

SAMPLES = [
    d for d in yaml.safe_load_all((pathlib.Path(__file__).parent / "samples/ingress_nginx.yaml").read_text()) if d
]
REQUESTS = 2000
HEADERS = {"X-Answer": "42 of 100", "Cache-Control": "no-store"}
COMPARED = ("x-forwarded-prefix", "x-team", "x-asked-for")
PATHS = [
    "/",
    "/api",
    "/api/",
    "/api/x",
    "/api/v2",
    "/api/v2/y",
    "/apix",
    "/docs",
    "/docs/",
    "/docs/a.html",
    "/team",
    "/team/1",
    "/teams",
    "/img",
    "/img/",
    "/img/logo",
    "/img/logo2",
    "/imgx",
    "/imgs",
    "/imgs/a",
    "/imgsx",
    "/something",
    "/something/",
    "/something/a/b",
    "/somethings",
    "/SOMETHING/Up",
    "/other/z",
    "/whole",
    "/whole/part",
    "/items/12",
    "/items/12/",
    "/items/ab",
    "/ITEMS/7",
    "/a/x",
    "/b/xy",
    "/c/x",
    "/shop",
    "/shop/cart",
    "/shopping",
    "/abc/12",
    "/abc/12/more",
    "/abc",
    "/12/abc",
    "/open",
    "/open/1",
    "/closed",
    "/closed/1",
    "/app/",
    "/app/one/two",
    "/app",
    "/welcome/",
    "/old",
    "/old/a",
    "/older",
    "/tmp",
    "/tmp/a",
    "/tmpx",
    "/admin",
    "/admin/",
    "/admin/users",
    "/admin/public",
    "/admin/public/a",
    "/administrator",
    "/metrics",
    "/metrics/x",
    "/h",
    "/h/1",
    "/v",
    "/v/1",
    "/w",
    "/w/1",
    "/one",
    "/one/1",
    "/known",
    "/known/1",
    "/any",
    "/any/1",
    "/unknown",
]
HOSTS = [
    "plain",
    "text",
    "strip",
    "regex",
    "constant",
    "swap",
    "secure",
    "both",
    "strip.secure",
    "forced",
    "rooted",
    "moved",
    "good",
    "shop",
    "www.shop",
    "aliased",
    "alias",
    "second",
    "vhost",
    "headers",
    "guarded",
    "unwanted",
    "canary",
    "tls-backend",
    "a.wild",
    "a.b.wild",
    "one.wild",
    "fallback",
    "nobody",
]


class Asked(NamedTuple):
    """A request."""

    scheme: str
    host: str
    path: str
    method: str
    source: str
    headers: tuple[tuple[str, str], ...]


class Answer(NamedTuple):
    """What is compared."""

    status: int
    location: str = ""
    backend: tuple[Any, ...] = ()
    headers: tuple[str | None, ...] = ()


def generate(number: int) -> list[Asked]:
    rng = random.Random(7)
    secure = {"secure", "both", "strip.secure", "shop", "www.shop"}
    listed = []
    for _ in range(number):
        host = rng.choice(HOSTS)
        path = rng.choice(PATHS)
        query = rng.choice(["", "", "?a=1", "?q=/x&b=%20"])
        headers = []
        if host == "canary":
            path = rng.choice(["/", "/x", "/h", "/h/1", "/v", "/v/2"])
            headers += [("X-Canary", rng.choice(["always", "never", "maybe"]))] if rng.random() < 0.5 else []
            headers += [("X-User", rng.choice(["anna-1", "bob-22", "carol", "eve"]))] if rng.random() < 0.6 else []
            if rng.random() < 0.5:
                headers.append(
                    ("Cookie", rng.choice(["canary=always", "a=b; canary=never", "canary=x", "xcanary=always"]))
                )
        listed.append(
            Asked(
                scheme=rng.choice(["http", "https"]) if host in secure else "http",
                host=f"{host}.example",
                path=path + query,
                method=rng.choice(["GET", "GET", "POST", "PUT", "DELETE"]),
                source=rng.choice(["127.0.0.1", "127.0.0.2", "127.0.0.3"]),
                headers=tuple(headers),
            )
        )
    return listed


# -- both sides ---------------------------------------------------------------------------------------------------


def services() -> dict[tuple[str, str], int]:
    """The Services of the samples with the port that Ingresses name."""
    found: dict[tuple[str, str], int] = {}
    for ingress in SAMPLES:
        backends = [p["backend"] for r in ingress["spec"].get("rules", ()) for p in r["http"]["paths"]]
        backends += [ingress["spec"]["defaultBackend"]] if "defaultBackend" in ingress["spec"] else []
        for backend in backends:
            port = backend["service"]["port"].get("number", 80)
            found[ingress["metadata"]["namespace"], backend["service"]["name"]] = port
    return found


def mesh_objects(ports: Mapping[str, int], http: int, https: int) -> list[dict[str, Any]]:
    """The cluster around the Ingresses, and the pod that is to take nginx's place."""
    certificate, key = ROOT.issue("secure.example")
    documents: list[dict[str, Any]] = [
        _object("v1", "Secret", "tls", "web", stringData={"tls.crt": certificate, "tls.key": key}),
        _object("v1", "ConfigMap", "answers", "web", data=HEADERS),
    ]
    for (namespace, name), port in services().items():
        own = {"name": "http", "port": port}
        documents.append(_object("v1", "Service", name, namespace, spec={"clusterIP": "10.96.0.1", "ports": [own]}))
        documents.append(_endpoints(name, namespace, {"http": ports[name]}, "127.0.0.1"))
    labels = {"gateway.networking.k8s.io/gateway-name": "ingress"}
    listening = [
        {"name": "http", "port": 80, "targetPort": http},
        {"name": "https", "port": 443, "targetPort": https},
    ]
    spec = {"clusterIP": "10.96.0.2", "selector": labels, "ports": listening}
    documents.append(_object("v1", "Service", "ingress-istio", "istio-ingress", spec=spec))
    pod = _object("v1", "Pod", "gw", "istio-ingress", status={"podIP": "10.0.0.20", "phase": "Running"})
    pod["metadata"]["labels"] = labels
    pod["spec"] = {"serviceAccountName": "ingress-istio", "containers": [{"name": "istio-proxy", "image": "proxy"}]}
    return [*documents, pod]


def _object(version: str, kind: str, name: str, namespace: str, **body: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **body}


def _endpoints(name: str, namespace: str, ports: Mapping[str, int], address: str) -> dict[str, Any]:
    found = _object("discovery.k8s.io/v1", "EndpointSlice", f"{name}-1", namespace, addressType="IPv4")
    found["metadata"]["labels"] = {"kubernetes.io/service-name": name}
    listed = [{"name": port, "port": number} for port, number in ports.items()]
    return {**found, "ports": listed, "endpoints": [{"addresses": [address], "conditions": {"ready": True}}]}


@contextlib.asynccontextmanager
async def both(folder: pathlib.Path) -> AsyncIterator[tuple[dict[str, int], dict[str, int]]]:
    """nginx and Envoy side by side; gives their ports by scheme."""
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate, key = ROOT.issue("secured.example")
    (folder / "backend.pem").write_text(certificate + key)
    secured.load_cert_chain(folder / "backend.pem")
    names = sorted({name for _, name in services()})
    async with contextlib.AsyncExitStack() as stack:
        ports = await stack.enter_async_context(echoes.running(names, {"secured": secured}))
        nginx_http, nginx_https, http, https = (own_port() for _ in range(4))
        objects = mesh_objects(ports, http, https)
        decoded = [decode_object(d) for d in (*objects, *_dated())]
        done = migrate({found.key: found.object for found in decoded if found.key and found.object})
        assert not [
            f for f in done.findings if f.verdict == "impossible" and "loser" not in f.how and "older" not in f.how
        ]
        db = mesh_of()
        for document in (*objects, *done.documents):
            golden.set_object(db, document)
        who = proxy(
            "istio-ingress", "gw", ip="10.0.0.20", kind="router", dialect="envoy", SERVICE_ACCOUNT="ingress-istio"
        )
        await stack.enter_async_context(static_envoy.running(db, who, folder))
        upstreams = {}
        for (namespace, name), port in services().items():
            upstreams |= {f"{namespace}-{name}-{port}": ports[name], f"{namespace}-{name}-http": ports[name]}
        text = nginx_ingress.configuration(
            SAMPLES, upstreams, folder=folder, http=nginx_http, https=nginx_https, headers={"web/answers": HEADERS}
        )
        binary = nginx_ingress.find_nginx() or ""
        await stack.enter_async_context(nginx_ingress.running(binary, text, folder, nginx_http, ["secure.example"]))
        yield {"http": nginx_http, "https": nginx_https}, {"http": http, "https": https}


def _dated() -> list[dict[str, Any]]:
    return [
        {**d, "metadata": {**d["metadata"], "creationTimestamp": f"2026-01-01T00:{at:02}:00Z"}}
        for at, d in enumerate(SAMPLES)
    ]


# -- the comparison -----------------------------------------------------------------------------------------------


async def ask(sessions: Mapping[str, aiohttp.ClientSession], ports: Mapping[str, int], asked: Asked) -> Answer:
    url = f"{asked.scheme}://{asked.host}:{ports[asked.scheme]}{asked.path}"
    headers = {"Host": asked.host, **dict(asked.headers)}
    body = b"body" if asked.method in ("POST", "PUT") else None
    async with sessions[asked.source].request(
        asked.method, URL(url, encoded=True), headers=headers, data=body, allow_redirects=False
    ) as answer:
        location = answer.headers.get("Location", "")
        if answer.status != 200:
            return Answer(answer.status, location)
        found = await answer.json()
        passed = tuple(found["headers"].get(name) for name in COMPARED)
        backend = (found["service"], found["path"], found["host"], found["method"], passed)
        return Answer(200, location, backend, tuple(answer.headers.get(name) for name in HEADERS))


def same(was: Answer, now: Answer) -> bool:
    """Whether the answers are equal but for what is declared."""
    if was._replace(location="") != now._replace(location=""):
        return False
    a, b = urlsplit(was.location), urlsplit(now.location)
    slashless = was.status == 308
    paths = (a.path.rstrip("/"), b.path.rstrip("/")) if slashless else (a.path, b.path)
    return (a.scheme, a.netloc) == (b.scheme, b.netloc) and paths[0] == paths[1] and a.query in ("", b.query)


class Resolver(aiohttp.abc.AbstractResolver):
    """Every host is here."""

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[Any]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": family, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        return None


@contextlib.asynccontextmanager
async def clients() -> AsyncIterator[dict[str, aiohttp.ClientSession]]:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with contextlib.AsyncExitStack() as stack:
        sessions = {}
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            connector = aiohttp.TCPConnector(ssl=trusting, resolver=Resolver(), local_addr=(source, 0), limit=8)
            sessions[source] = await stack.enter_async_context(
                aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
            )
        yield sessions


async def test_envoy_answers_as_nginx_did(tmp_path: pathlib.Path) -> None:
    assert len(SAMPLES) >= 25
    differing: list[str] = []
    statuses: set[int] = set()
    places = asyncio.Semaphore(16)
    async with both(tmp_path) as (nginx, envoy), clients() as sessions:

        async def compare(asked: Asked) -> None:
            async with places:
                was, now = await ask(sessions, nginx, asked), await ask(sessions, envoy, asked)
            statuses.add(was.status)
            if not same(was, now):
                differing.append(f"{asked}\n  nginx {was}\n  envoy {now}")

        await asyncio.gather(*map(compare, generate(REQUESTS)))
    assert not differing, f"{len(differing)} differ\n" + "\n".join(sorted(differing)[:20])
    assert statuses == {200, 301, 302, 308, 403, 404}
