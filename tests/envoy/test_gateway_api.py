"""Routes of the Gateway API through a real Envoy: matches, filters, shares, TLS both ways, grants."""

import asyncio
import collections
import contextlib
import pathlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import echoes
import pytest
import static_envoy
import yaml
from claims import own_port
from eventually import eventually
from gateway_api import gateway, plain, route
from meshes import mesh_of, proxy
from traffic_certificates import OTHER, ROOT
from traffic_shares import assert_share
from yarl import URL

pytestmark = pytest.mark.envoy

SERVICES = ("front", "one", "two", "shadow", "vault", "tls")
FREE = "allowedRoutes: {namespaces: {from: All}}"
LISTENERS = (
    f"{{name: web, port: 80, protocol: HTTP, {FREE}}}, "
    f"{{name: open, port: 443, protocol: HTTPS, hostname: open.example, {FREE}, tls: {{certificateRefs: [{{name: c}}]}}}}, "
    f"{{name: shut, port: 443, protocol: TLS, hostname: shut.example, {FREE}, tls: {{mode: Passthrough}}}}, "
    f"{{name: raw, port: 9000, protocol: TCP, {FREE}}}"
)


def surroundings(backends: dict[str, int], ports: dict[int, int]) -> str:
    """The Gateway's Service and pod, the backends, a certificate and roots."""
    certificate, key = ROOT.issue("open.example")
    target = ", ".join(f"{{name: p{port}, port: {port}, targetPort: {own}}}" for port, own in ports.items())
    texts = [
        gateway(LISTENERS),
        plain(
            "Service",
            "gw-istio",
            "edge",
            f"{{clusterIP: 10.96.0.9, selector: {{app: gw}}, ports: [{target}]}}",
            group="v1",
        ),
        "\n---\n{apiVersion: v1, kind: Pod, metadata: {name: gw, namespace: edge, labels: {app: gw}}, "
        "spec: {serviceAccountName: gw-istio}, status: {podIP: 10.0.0.20, phase: Running}}\n---\n",
        yaml.safe_dump_all(
            [
                _kept("Secret", "c", "edge", stringData={"tls.crt": certificate, "tls.key": key}),
                _kept("ConfigMap", "roots", "web", data={"ca.crt": ROOT.pem}),
                _kept("ConfigMap", "others", "web", data={"ca.crt": OTHER.pem}),
            ]
        ),
    ]
    for i, (name, port) in enumerate(backends.items()):
        namespace = "vault" if name == "vault" else "web"
        spec = f"{{clusterIP: 10.96.1.{i + 1}, ports: [{{name: http, port: 80}}]}}"
        texts.append(
            plain("Service", name, namespace, spec.replace("http,", "tcp-raw,") if name == "tls" else spec, group="v1")
        )
        texts.append(
            f"\n---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: {name}-1, "
            f"namespace: {namespace}, labels: {{kubernetes.io/service-name: {name}}}}}, addressType: IPv4, "
            f"ports: [{{name: {'tcp-raw' if name == 'tls' else 'http'}, port: {port}}}], "
            "endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]}\n"
        )
    return "".join(texts)


def _kept(kind: str, name: str, namespace: str, **body: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, **body}


class Caller:
    """Asks the gateway."""

    def __init__(self, session: aiohttp.ClientSession, ports: dict[int, int], seen: collections.Counter[str]) -> None:
        self._session, self._ports, self.seen = session, ports, seen

    async def ask(self, path: str, method: str = "GET", host: str = "a.example", **headers: str) -> dict[str, Any]:
        """The answer's status and headers, and what the backend was asked."""
        url = URL(f"http://127.0.0.1:{self._ports[80]}{path}", encoded=True)
        named = {"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with self._session.request(method, url, headers=named, allow_redirects=False) as answer:
            asked = await answer.json() if answer.content_type == "application/json" else {}
            return {
                "status": answer.status,
                "answer": {name.lower(): value for name, value in answer.headers.items()},
                **asked,
            }

    async def service(self, path: str, method: str = "GET", **headers: str) -> str | int:
        """Which Service answers; the status where none does."""
        found = await self.ask(path, method, **headers)
        return found.get("service", found["status"])

    async def handshake(self, host: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The certificate that is shown for a host, and the answer behind it."""
        context = ssl.create_default_context(cadata=ROOT.pem)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._ports[443], ssl=context, server_hostname=host)
        certificate = writer.get_extra_info("peercert")
        writer.write(f"GET /secret HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        body = (await reader.read()).partition(b"\r\n\r\n")[2]
        writer.close()
        start, end = body.index(b"{"), body.rindex(b"}") + 1
        return dict(certificate), yaml.safe_load(body[start:end])


@contextlib.asynccontextmanager
async def serving(folder: pathlib.Path, *texts: str) -> AsyncIterator[Caller]:
    """A real Envoy that serves these routes."""
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate, key = ROOT.issue("tls.example", "shut.example")
    (folder / "backend.pem").write_text(certificate + key)
    secured.load_cert_chain(folder / "backend.pem")
    seen: collections.Counter[str] = collections.Counter()
    async with contextlib.AsyncExitStack() as stack:
        backends = await stack.enter_async_context(echoes.running(SERVICES, {"tls": secured}, seen))
        ports = {port: own_port() for port in (80, 443, 9000)}
        db = mesh_of(surroundings(backends, ports), *texts)
        who = proxy("edge", "gw", ip="10.0.0.20", kind="router", dialect="envoy", SERVICE_ACCOUNT="gw-istio")
        await stack.enter_async_context(static_envoy.running(db, who, folder))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Caller(session, ports, seen)


def to(*services: str, extra: str = "") -> str:
    backends = ", ".join(f"{{name: {name}, port: 80{extra}}}" for name in services)
    return f"backendRefs: [{backends}]"


async def test_each_kind_of_match(tmp_path: pathlib.Path) -> None:
    rules = ", ".join(
        [
            f"{{matches: [{{path: {{type: Exact, value: /exact}}}}], {to('one')}}}",
            f"{{matches: [{{path: {{value: /under}}}}], {to('two')}}}",
            f"{{matches: [{{path: {{value: /under}}, method: POST}}], {to('one')}}}",
            f"{{matches: [{{path: {{value: /under}}, headers: [{{name: x-a, value: '1'}}]}}], {to('shadow')}}}",
            f"{{matches: [{{path: {{value: /q}}, queryParams: [{{name: a, value: b}}]}}], {to('two')}}}",
            "{matches: [{path: {value: /h}, headers: [{type: RegularExpression, name: x-a, value: 'v[0-9]+'}]}], "
            f"{to('two')}}}",
            f"{{matches: [{{path: {{type: RegularExpression, value: '/r/[a-z]+'}}}}], {to('two')}}}",
            f"{{{to('front')}}}",
        ]
    )
    async with serving(tmp_path, route(rules)) as caller:
        expected = {
            ("/exact", "GET", ""): "one",
            ("/exact/x", "GET", ""): "front",
            ("/under", "GET", ""): "two",
            ("/under/x", "GET", ""): "two",
            ("/underneath", "GET", ""): "front",
            ("/under/x", "POST", ""): "one",
            ("/under", "GET", "1"): "shadow",
            ("/q?a=b", "GET", ""): "two",
            ("/q?a=c", "GET", ""): "front",
            ("/h", "GET", "v12"): "two",
            ("/h", "GET", "v"): "front",
            ("/r/abc", "GET", ""): "front",
        }
        for (path, method, header), service in expected.items():
            headers = {"x_a": header} if header else {}
            assert await caller.service(path, method, **headers) == service, path


async def test_each_filter(tmp_path: pathlib.Path) -> None:
    def rule(path: str, *filters: str, after: str = to("front")) -> str:
        return f"{{matches: [{{path: {{value: {path}}}}}], filters: [{', '.join(filters)}], {after}}}"

    rules = ", ".join(
        [
            rule("/request", "{type: RequestHeaderModifier, requestHeaderModifier: "
                 "{set: [{name: x-set, value: new}], add: [{name: x-add, value: more}], remove: [x-gone]}}"),
            rule("/response", "{type: ResponseHeaderModifier, responseHeaderModifier: "
                 "{set: [{name: x-set, value: new}], remove: [server]}}"),
            rule("/moved", "{type: RequestRedirect, requestRedirect: {scheme: https, hostname: b.example, "
                 "statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /there}}}", after="name: moved"),
            rule("/prefix", "{type: URLRewrite, urlRewrite: {hostname: in.example, "
                 "path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}"),
            rule("/full", "{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /one}}}"),
            rule("/copied", "{type: RequestMirror, requestMirror: {backendRef: {name: shadow, port: 80}}}"),
            rule("/shared", "{type: CORS, cors: {allowOrigins: ['https://*.example'], allowMethods: [GET]}}"),
            f"{{matches: [{{path: {{value: /slow}}}}], timeouts: {{request: 200ms}}, {to('front')}}}",
            "{matches: [{path: {value: /each}}], backendRefs: [{name: front, port: 80, filters: "
            "[{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-for, value: front}]}}]}]}",
        ]
    )  # fmt: skip
    async with serving(tmp_path, route(rules)) as caller:
        asked = await caller.ask("/request", x_set="old", x_add="first", x_gone="x")
        assert (asked["headers"]["x-set"], asked["headers"].get("x-gone")) == ("new", None)
        assert "more" in asked["headers"]["x-add"]
        answer = (await caller.ask("/response"))["answer"]
        assert answer["x-set"] == "new"
        moved = await caller.ask("/moved/a?b=c")
        assert (moved["status"], moved["answer"]["location"]) == (301, "https://b.example/there/a?b=c")
        rewritten = await caller.ask("/prefix/a?b=c")
        assert (rewritten["path"], rewritten["host"]) == ("/a?b=c", "in.example")
        assert (await caller.ask("/prefix"))["path"] == "/"
        assert (await caller.ask("/full/x/y"))["path"] == "/one"
        for _ in range(10):
            assert await caller.service("/copied") == "front"
        await eventually(lambda: caller.seen["shadow"] == 10)
        preflight = await caller.ask(
            "/shared", "OPTIONS", Origin="https://a.example", Access_Control_Request_Method="GET"
        )
        assert preflight["answer"]["access-control-allow-origin"] == "https://a.example"
        assert (await caller.ask("/slow", x_delay="1"))["status"] == 504
        assert (await caller.ask("/each"))["headers"]["x-for"] == "front"


async def test_shares_and_backends_that_are_not_there(tmp_path: pathlib.Path) -> None:
    split = "backendRefs: [{name: one, port: 80, weight: 30}, {name: two, port: 80, weight: 70}, {name: front, port: 80, weight: 0}]"
    rules = ", ".join(
        [
            f"{{matches: [{{path: {{value: /split}}}}], {split}}}",
            f"{{matches: [{{path: {{value: /none}}}}], {to('missing')}}}",
            "{matches: [{path: {value: /empty}}]}",
        ]
    )
    async with serving(tmp_path, route(rules)) as caller:
        found = collections.Counter([await caller.service("/split") for _ in range(400)])
        assert found.keys() == {"one", "two"}
        assert_share(found["one"], 400, 0.3)
        assert await caller.service("/none") == 500
        assert await caller.service("/empty") == 500


async def test_a_backend_elsewhere_needs_a_grant(tmp_path: pathlib.Path) -> None:
    away = route("{backendRefs: [{name: vault, namespace: vault, port: 80}]}")
    grant = plain(
        "ReferenceGrant",
        "grant",
        "vault",
        "{from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: web}], to: [{group: '', kind: Service}]}",
    )
    async with serving(tmp_path, away) as caller:
        assert await caller.service("/") == 500
    async with serving(tmp_path, away, grant) as caller:
        assert await caller.service("/") == "vault"


async def test_tls_is_terminated_or_let_through_by_its_server_name(tmp_path: pathlib.Path) -> None:
    shut = route(f"{{{to('tls')}}}", kind="TLSRoute", name="shut", spec="hostnames: [shut.example]")
    async with serving(tmp_path, route(f"{{{to('front')}}}"), shut) as caller:
        certificate, asked = await caller.handshake("open.example")
        assert (certificate["subjectAltName"], asked["service"]) == ((("DNS", "open.example"),), "front")
        certificate, asked = await caller.handshake("shut.example")
        assert ("DNS", "tls.example") in certificate["subjectAltName"]
        assert asked["service"] == "tls"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await caller.handshake("unknown.example")


@pytest.mark.parametrize(
    ("hostname", "roots", "expected"),
    [("tls.example", "roots", "tls"), ("tls.example", "others", 503), ("tls.example", "none", 503)],
)
async def test_a_backend_behind_tls_is_trusted_by_policy_only(
    tmp_path: pathlib.Path, hostname: str, roots: str, expected: str | int
) -> None:
    spec = (
        f"{{targetRefs: [{{group: '', kind: Service, name: tls}}], validation: {{hostname: {hostname}, "
        f"caCertificateRefs: [{{group: '', kind: ConfigMap, name: {roots}}}]}}}}"
    )
    policy = plain("BackendTLSPolicy", "policy", "web", spec)
    async with serving(tmp_path, route(f"{{{to('tls')}}}"), policy) as caller:
        assert await caller.service("/") == expected


async def test_a_host_goes_to_its_most_specific_listener(tmp_path: pathlib.Path) -> None:
    specific = gateway(
        f"{{name: any, port: 80, protocol: HTTP, {FREE}}}, "
        f"{{name: one, port: 80, protocol: HTTP, hostname: one.example, {FREE}}}"
    )
    texts = [
        route(f"{{{to('one')}}}", "{name: gw, namespace: edge, sectionName: one}", name="one"),
        route(f"{{{to('two')}}}", "{name: gw, namespace: edge, sectionName: any}", name="any"),
    ]
    async with serving(tmp_path, specific, *texts) as caller:
        assert await caller.service("/", host="one.example") == "one"
        assert await caller.service("/", host="two.example") == "two"
