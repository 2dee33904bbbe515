"""Certificates by a signer of Kubernetes: what is asked, approved and removed, and what becomes of bad answers."""

import asyncio
import base64
import json
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
import virtual_loop
from certificate_requests import make_request, read_chain
from cryptography import x509
from plugged_authority import make_node

from mizzen import settings
from mizzen.api.mesh.config import CertificateData, MeshConfig
from mizzen.ca import certificates
from mizzen.ca.authority import IssueError
from mizzen.ca.certificates import Signer
from mizzen.ca.service import Order
from mizzen.control.kubernetes_signer import KubernetesSigner
from mizzen.errors import AuthorityError
from mizzen.sources.kube.client import Refused, Unreachable

NOW = 1_700_000_000.0
CART = "spiffe://cluster.local/ns/shop/sa/cart"
VAULT = "spiffe://cluster.local/ns/bank/sa/vault"
CONFIG = settings.Authority(kubernetes_signer="signers.example/default", signer_domain="signers.example")
ROOT = make_node("signer", NOW)
SIGNER = Signer(certificate=ROOT.certificate, key=ROOT.key, intermediates=(), roots=(ROOT.certificate,))


class Server:
    """Keeps one request at a time, and plays the signer once it is approved."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.made: dict[str, Any] = {}
        self.looks_until_signed = 3
        self.refusals: dict[str, Exception] = {}
        self.conditions: list[dict[str, str]] = []
        self.names = (CART,)
        self.at_once = self.most_at_once = 0

    async def get(self, path: str) -> bytes:
        await self._note("GET", path)
        status = {"conditions": [*self.made.get("status", {}).get("conditions", ()), *self.conditions]}
        if self.looks_until_signed <= sum(method == "GET" for method, _ in self.asked) and status["conditions"]:
            request = x509.load_pem_x509_csr(base64.b64decode(self.made["spec"]["request"]))
            key = request.public_key()
            assert isinstance(key, certificates.PublicKey)
            leaf = certificates.build_leaf(SIGNER, key, self.names, NOW + 3600, NOW)
            status |= {"certificate": base64.b64encode(certificates.encode(leaf) + ROOT.pem).decode()}
        return json.dumps({"status": status}).encode()

    async def call(self, method: str, path: str, body: Any = None) -> bytes:
        await self._note(method, path)
        if method == "POST":
            self.at_once += 1
            self.most_at_once = max(self.at_once, self.most_at_once)
        if method == "DELETE":
            self.at_once -= 1
            return b"{}"
        self.made = {**json.loads(msgspec.json.encode(body))}
        self.made["metadata"] = {**self.made["metadata"], "name": "csr-workload-x"}
        return json.dumps(self.made).encode()

    async def _note(self, method: str, path: str) -> None:
        self.asked.append((method, path.removeprefix("/apis/certificates.k8s.io/v1/certificatesigningrequests")))
        await asyncio.sleep(0)
        if method in self.refusals:
            raise self.refusals[method]


def signer(server: Server, config: settings.Authority = CONFIG, **mesh: Any) -> KubernetesSigner:
    return KubernetesSigner(server, config, lambda: MeshConfig(**mesh), lambda: NOW)


def order(**changes: Any) -> Order:
    return Order(**{"request": make_request(names=(CART,)), "identities": (CART,), "seconds": 7200.0, **changes})


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def and_settle() -> Any:
        try:
            return await coroutine
        finally:
            await asyncio.sleep(1)

    return virtual_loop.run(and_settle())


def refusal(server: Server, wanted: Order, config: settings.Authority = CONFIG, **mesh: Any) -> IssueError:
    with pytest.raises(IssueError) as caught:
        run(signer(server, config, **mesh).issue(wanted))
    return caught.value


def test_a_request_is_made_approved_waited_for_and_removed():
    server = Server()
    chain, roots = read_chain(run(signer(server).issue(order())))
    assert (len(chain), roots) == (1, [ROOT.certificate])
    name = "/csr-workload-x"
    assert server.asked[:2] == [("POST", ""), ("PUT", f"{name}/approval")]
    assert server.asked[2:] == [*[("GET", name)] * 3, ("DELETE", name)]
    spec = server.made["spec"]
    assert (spec["signerName"], spec["expirationSeconds"]) == ("signers.example/default", 7200)
    assert spec["usages"] == ["digital signature", "key encipherment", "server auth", "client auth"]
    (condition,) = server.made["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Approved", "True")


@pytest.mark.parametrize(("asked", "made"), [(0.0, 86_400), (30.0, 600), (3600.0, 3600)])
def test_the_life_is_what_was_asked_for_as_far_as_the_server_takes_it(asked: float, made: int):
    server = Server()
    run(signer(server).issue(order(seconds=asked)))
    assert server.made["spec"]["expirationSeconds"] == made


@pytest.mark.parametrize(
    ("config", "asked", "named"),
    [
        (CONFIG, "team-a", "signers.example/team-a"),
        (CONFIG, "", "signers.example/default"),
        (msgspec.structs.replace(CONFIG, kubernetes_signer=""), "team-a", "signers.example/team-a"),
    ],
)
def test_a_request_may_name_a_signer_of_the_domain(config: settings.Authority, asked: str, named: str):
    server = Server()
    run(signer(server, config).issue(order(signer=asked)))
    assert server.made["spec"]["signerName"] == named


@pytest.mark.parametrize(
    ("config", "changes", "kind"),
    [
        (CONFIG, {"signer": "../kubelet-serving"}, "CSR_ERROR"),
        (CONFIG, {"signer": "a/b"}, "CSR_ERROR"),
        (CONFIG, {"signer": "a\n"}, "CSR_ERROR"),
        (msgspec.structs.replace(CONFIG, signer_domain=""), {"signer": "team-a"}, "CSR_ERROR"),
        (msgspec.structs.replace(CONFIG, kubernetes_signer=""), {}, "CSR_ERROR"),
        (CONFIG, {"request": make_request(names=(VAULT,))}, "CSR_ERROR"),
        (CONFIG, {"request": make_request()}, "CSR_ERROR"),
        (CONFIG, {"request": "rubbish"}, "CSR_ERROR"),
        (CONFIG, {"seconds": 91 * 86_400.0}, "TTL_ERROR"),
    ],
)
def test_what_may_not_be_asked_for_never_gets_to_the_api_server(config, changes, kind):
    server = Server()
    assert refusal(server, order(**changes), config).kind == kind
    assert server.asked == []


@pytest.mark.parametrize(
    ("method", "error", "kind"),
    [
        ("POST", Refused(403, "no right"), "CERT_GEN_ERROR"),
        ("POST", Unreachable("away"), "CA_NOT_READY"),
        ("PUT", Refused(403, "may not approve"), "CERT_GEN_ERROR"),
        ("GET", Refused(404, "gone"), "CERT_GEN_ERROR"),
        ("GET", Refused(500, "trouble"), "CA_NOT_READY"),
    ],
)
def test_what_the_api_server_refuses_is_told_and_nothing_is_left_behind(method: str, error: Exception, kind: str):
    server = Server()
    server.refusals = {method: error}
    found = refusal(server, order())
    assert (found.kind, str(error) in str(found)) == (kind, True)
    assert (server.asked[-1][0] == "DELETE") == (method != "POST")


def test_a_signer_that_does_not_answer_is_waited_for_so_long_and_no_longer():
    server = Server()
    server.looks_until_signed = 10_000

    async def play() -> None:
        with pytest.raises(IssueError, match="within 60 s"):
            await signer(server).issue(order())
        assert virtual_loop.now() == pytest.approx(60, abs=1)
        await asyncio.sleep(1)

    virtual_loop.run(play())
    assert server.asked[-1][0] == "DELETE"
    assert len(server.asked) < 80


@pytest.mark.parametrize("kind", ["Denied", "Failed"])
def test_a_request_that_is_denied_is_not_waited_for(kind: str):
    server = Server()
    server.looks_until_signed = 10_000
    server.conditions = [{"type": kind, "status": "True", "message": "no"}]
    assert refusal(server, order()).kind == "CERT_GEN_ERROR"
    assert server.asked[-1][0] == "DELETE"


def test_what_the_signer_made_of_it_is_checked():
    server = Server()
    server.names = (VAULT,)
    assert "other names" in str(refusal(server, order()))


def test_the_root_is_that_of_the_mesh_config_for_this_signer():
    other = make_node("other", NOW)
    data = CertificateData(pem=other.pem.decode(), cert_signers=("signers.example/default",))
    assert "none of the roots" in str(refusal(Server(), order(), ca_certificates=(data,)))
    own = CertificateData(pem=ROOT.pem.decode(), cert_signers=("signers.example/default",))
    foreign = CertificateData(pem=other.pem.decode(), cert_signers=("signers.example/other",))
    texts = run(signer(Server(), ca_certificates=(own, foreign)).issue(order()))
    assert read_chain(texts)[1] == [ROOT.certificate]
    broken = CertificateData(pem="rubbish", cert_signers=("signers.example/default",))
    assert refusal(Server(), order(), ca_certificates=(broken,)).kind == "CA_NOT_READY"


def test_so_many_are_asked_for_at_once_and_no_more():
    server = Server()
    server.looks_until_signed = 0

    async def play() -> None:
        one = signer(server)
        texts = await asyncio.gather(*(one.issue(order(request=request)) for request in [order().request] * 200))
        assert len(texts) == 200
        await asyncio.sleep(1)

    virtual_loop.run(play())
    assert server.most_at_once <= 60


def test_settings_that_mean_no_signer_are_refused():
    with pytest.raises(AuthorityError, match="K8S_SIGNER or CERT_SIGNER_DOMAIN"):
        signer(Server(), settings.Authority())
