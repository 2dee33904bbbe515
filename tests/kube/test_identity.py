"""The authority of replicas without files, over a real API server, with the rights of an installation alone."""

import asyncio
import contextlib
import json
import signal
import time

import grpc
import jwt
import msgspec
import pytest
from certificate_requests import make_request, read_chain, verify_chain
from certificate_service import ask
from control_planes import Plane
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from eventually import eventually, eventually_blocking
from kube_accounts import install_rights, make_account, make_pod, token
from kube_authority import data_of, namespaces_of, replica, write_secret
from kube_bed import ISSUER, Answer, Bed
from kube_objects import path_of, pod
from kube_replicas import Replica
from plugged_authority import make_node
from secrecy import Known

from mizzen import settings
from mizzen.ca import certificates
from mizzen.control.shared_authority import SharedAuthority, open_shared
from mizzen.sources.kube.access import from_kubeconfig
from mizzen.sources.kube.client import Client

pytestmark = pytest.mark.timeout(600)

MAP = "istio-ca-root-cert"
YEAR = 365 * 86_400.0


def maps_of(bed: Bed) -> dict[str, str]:
    """The roots in each namespace that has them."""
    listed = bed.call("GET", "/api/v1/configmaps")["items"]
    return {
        one["metadata"]["namespace"]: one["data"]["root-cert.pem"] for one in listed if one["metadata"]["name"] == MAP
    }


async def until_everywhere(bed: Bed, bundle: bytes) -> None:
    """The roots are in every namespace, and the same everywhere."""

    def holds() -> bool:
        return maps_of(bed) == dict.fromkeys(namespaces_of(bed), bundle.decode())

    await eventually(lambda: asyncio.to_thread(holds), 120, 0.2)


async def refusal(plane: Plane, shown: str, csr: str = "", **fields: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(plane, shown, csr, **fields)
    return caught.value.code(), caught.value.details() or ""


def identity(namespace: str, account: str) -> str:
    return f"spiffe://cluster.local/ns/{namespace}/sa/{account}"


@pytest.fixture
def cart(bed: Bed, namespace: str) -> str:
    """A token of a workload of the namespace."""
    make_account(bed, namespace, "cart")
    make_pod(bed, namespace, "cart-0", "cart", "node-one")
    return token(bed, namespace, "cart", pod_name="cart-0")


# -- one root ---------------------------------------------------------------------------------------------------------


async def test_three_replicas_have_one_root_which_is_in_every_namespace(bed, namespace, cart, tmp_path):
    async with (
        replica(bed, tmp_path / "a", namespace) as one,
        replica(bed, tmp_path / "b", namespace) as two,
        replica(bed, tmp_path / "c", namespace) as three,
    ):
        planes = (one, two, three)
        (bundle,) = {plane.control_plane.authority.bundle for plane in planes}
        assert (await asyncio.to_thread(data_of, bed, namespace, "istio-ca-secret"))["root-cert.pem"] == bundle
        for plane in planes:
            chain, roots = await ask(plane, cart)
            assert verify_chain(chain, certificates.decode(bundle, "x"), time.time()) == [identity(namespace, "cart")]
            assert certificates.encode(*roots) == bundle
        await until_everywhere(bed, bundle)
        known = Known()
        known.add_key(
            "root", (await asyncio.to_thread(data_of, bed, namespace, "istio-ca-secret"))["ca-key.pem"].decode()
        )
        pages = ("debug/configz", "debug/resourcesz", "debug/mesh", "debug/problems", "metrics")
        assert known.found_in_any([(page, (await one.get(f"/{page}"))[1]) for page in pages]) == []
        found = await asyncio.to_thread(bed.call, "GET", f"/api/v1/namespaces/kube-system/configmaps/{MAP}")
        assert found["metadata"]["labels"] == {"istio.io/config": "true"}

        later = {"metadata": {"name": f"{namespace}-later"}}
        await asyncio.to_thread(bed.call, "POST", "/api/v1/namespaces", later)
        path = f"/api/v1/namespaces/{namespace}/configmaps/{MAP}"
        edit = {"data": {"root-cert.pem": "forged", "theirs": "stays"}}
        await asyncio.to_thread(bed.call, "PATCH", path, edit, kind="application/merge-patch+json")
        gone = f"/api/v1/namespaces/{namespace}-later/configmaps/{MAP}"
        await until_everywhere(bed, bundle)
        assert (await asyncio.to_thread(bed.call, "GET", path))["data"]["theirs"] == "stays"
        await asyncio.to_thread(bed.call, "DELETE", gone)
        await until_everywhere(bed, bundle)

        version = (await asyncio.to_thread(bed.call, "GET", path))["metadata"]["resourceVersion"]
        await asyncio.sleep(2)
        assert (await asyncio.to_thread(bed.call, "GET", path))["metadata"]["resourceVersion"] == version
    async with replica(bed, tmp_path / "d", namespace) as again:
        assert again.control_plane.authority.bundle == bundle, "a restart keeps the root"


async def test_another_root_is_trusted_everywhere_before_it_signs_and_the_old_one_until_all_have_renewed(
    bed, namespace, cart, tmp_path
):
    new = make_node("the operator's", time.time())
    plugged = {"ca-cert.pem": new.pem, "ca-key.pem": certificates.encode_key(new.key), "root-cert.pem": new.pem}
    who = [identity(namespace, "cart")]
    async with replica(bed, tmp_path / "a", namespace) as one, replica(bed, tmp_path / "b", namespace) as two:
        old = one.control_plane.authority.bundle
        before, _ = await ask(one, cart)
        await until_everywhere(bed, old)
        await asyncio.to_thread(write_secret, bed, namespace, "cacerts", plugged)
        both = old + new.pem
        for plane in (one, two):  # In whatever order: who signs stands first, and that may be the new one by now.
            await eventually(lambda plane=plane: roots_of(plane) == set(certificates.decode(both, "x")), 120)
        async with replica(bed, tmp_path / "c", namespace) as late:
            planes = (one, two, late)
            assert roots_of(late) == set(certificates.decode(both, "x"))
            switched: set[int] = set()
            while len(switched) < len(planes):
                for number, plane in enumerate(planes):
                    chain, roots = await ask(plane, cart)
                    assert verify_chain(chain, roots, time.time()) == who
                    assert verify_chain(before, roots, time.time()) == who, "who has not renewed is believed"
                    if certificates.is_issued_by(chain[0], new.certificate):
                        switched.add(number)
                        distributed = (await asyncio.to_thread(maps_of, bed))[namespace].encode()
                        assert verify_chain(chain, certificates.decode(distributed, "x"), time.time()) == who
                await asyncio.sleep(0.2)
            (bundle,) = {plane.control_plane.authority.bundle for plane in planes}
            assert set(certificates.decode(bundle, "x")) == set(certificates.decode(both, "x"))
            await until_everywhere(bed, bundle)


def roots_of(plane: Plane) -> set[x509.Certificate]:
    return set(certificates.decode(plane.control_plane.authority.bundle, "x"))


class Sharing:
    """Replicas' authorities alone, by a clock that a test turns."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self.now = time.time()
        self._access = from_kubeconfig(install_rights(bed, namespace))
        self._namespace = namespace

    async def open(self, stack: contextlib.AsyncExitStack) -> SharedAuthority:
        async def organisation() -> str:
            return "cluster.local"

        client = await stack.enter_async_context(Client(self._access))
        config = settings.Authority(directory="/nowhere")
        return await open_shared(client, config, self._namespace, organisation, lambda: self.now)


async def test_replicas_that_start_and_renew_at_once_agree(bed, namespace):
    sharing = await asyncio.to_thread(Sharing, bed, namespace)
    async with contextlib.AsyncExitStack() as stack:
        shared = await asyncio.gather(*(sharing.open(stack) for _ in range(5)))
        (old,) = {each.authority.bundle for each in shared}
        key = (await asyncio.to_thread(data_of, bed, namespace, "istio-ca-secret"))["ca-key.pem"]
        sharing.now += 8.1 * YEAR
        before = read_chain(shared[0].authority.issue(make_request(), ["spiffe://cluster.local/ns/a/sa/b"]))[0]
        await shared[0].look()  # As it does after it has issued one.
        await asyncio.gather(*(each.look() for each in shared))
        await asyncio.gather(*(each.look() for each in shared))
        data = await asyncio.to_thread(data_of, bed, namespace, "istio-ca-secret")
        assert (data["ca-key.pem"], data["ca-cert.pem"] == old) == (key, False)
        (both,) = {each.authority.bundle for each in shared}
        assert both == data["ca-cert.pem"] + old
        for each in shared:
            after, _ = read_chain(each.authority.issue(make_request(), ["spiffe://cluster.local/ns/a/sa/b"]))
            for chain in (before, after):
                for roots in (old, data["ca-cert.pem"], both):
                    assert verify_chain(chain, certificates.decode(roots, "x"), sharing.now)


def test_half_an_authority_ends_the_start_and_stays_as_it_is(bed, namespace, tmp_path):
    kubeconfig = install_rights(bed, namespace)
    half = {"ca-cert.pem": make_node("half", time.time()).pem}
    write_secret(bed, namespace, "cacerts", half)
    started = Replica(bed, tmp_path, "istiod", {"POD_NAMESPACE": namespace}, kubeconfig=kubeconfig, keeps_files=False)
    try:
        assert started.process.wait(120) != 0
    finally:
        started.end(signal.SIGKILL)
    said = started.log.read_text()
    assert "cacerts lacks ca-key.pem, root-cert.pem" in said
    assert "Traceback" not in said
    assert data_of(bed, namespace, "cacerts") == half
    with pytest.raises(Answer, match="not found"):
        data_of(bed, namespace, "istio-ca-secret")


def test_one_that_waits_for_the_api_server_can_be_stopped(bed, tmp_path):
    nobody = tmp_path / "kubeconfig"
    nobody.write_text(bed.kubeconfig("kubeconfig-nobody").read_text().replace(f":{bed.port}", ":1"))
    started = Replica(bed, tmp_path, "istiod", {}, kubeconfig=nobody, keeps_files=False)
    eventually_blocking(lambda: "waits for the API server" in started.log.read_text(), 120)
    started.end()
    assert started.process.returncode == 0
    assert "Traceback" not in started.log.read_text()


async def test_the_authoritys_secrets_are_nobodys_credential(bed, namespace, tmp_path):
    root = make_node("root", time.time())
    key = certificates.encode_key(root.key)
    await asyncio.to_thread(
        write_secret, bed, namespace, "cacerts", {"tls.crt": root.pem, "tls.key": key, "ca.crt": root.pem}
    )
    await asyncio.to_thread(write_secret, bed, namespace, "gate", {"tls.crt": root.pem, "tls.key": key})
    async with replica(bed, tmp_path / "a", namespace) as plane:
        assert plane.control_plane.authority.bundle == root.pem
        objects = plane.control_plane.cluster.source.objects
        assert {each.name for each in objects if (each.kind, each.namespace) == ("Secret", namespace)} == {"gate"}


def test_no_private_key_is_told_to_anybody(bed, namespace, tmp_path):
    kubeconfig = install_rights(bed, namespace)
    variables = {"POD_NAMESPACE": namespace, "CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL": "200ms"}
    started = Replica(bed, tmp_path, "istiod", variables, kubeconfig=kubeconfig, keeps_files=False)
    try:
        eventually_blocking(lambda: namespace in maps_of(bed), 180, every=0.2)
        known, path = Known(), f"/api/v1/namespaces/{namespace}/secrets"
        known.add_key("root", data_of(bed, namespace, "istio-ca-secret")["ca-key.pem"].decode())
        # What cannot be read is told of, and not quoted.
        good = data_of(bed, namespace, "mizzen-authority")["authority.json"]
        write_secret(bed, namespace, "mizzen-authority", {"authority.json": good[: len(good) // 2]})
        eventually_blocking(lambda: "stays as it was" in started.log.read_text(), 120)
        bed.call("DELETE", f"{path}/mizzen-authority")
        eventually_blocking(lambda: path_exists(bed, f"{path}/mizzen-authority"), 120, every=0.2)
    finally:
        started.end()
    assert started.process.returncode == 0
    assert known.found_in(started.log.read_bytes()) == []


def path_exists(bed: Bed, path: str) -> bool:
    try:
        return bool(bed.call("GET", path))
    except Answer:
        return False


# -- certificates for tokens ------------------------------------------------------------------------------------------


def signed(bed: Bed, namespace: str, key: bytes, **changes: object) -> str:
    """A token as the API server makes them, by a key of the test's."""
    now = int(time.time())
    claims = {
        "aud": ["istio-ca"],
        "exp": now + 3600,
        "iat": now,
        "nbf": now,
        "iss": ISSUER,
        "sub": f"system:serviceaccount:{namespace}:cart",
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": "cart", "uid": uid_of(bed, namespace)}},
        **changes,
    }
    return jwt.encode(claims, key, algorithm="RS256")


def uid_of(bed: Bed, namespace: str) -> str:
    return bed.call("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/cart")["metadata"]["uid"]


async def test_a_token_gets_the_certificate_of_its_account_and_of_no_other(bed, namespace, cart, tmp_path):
    async with replica(bed, tmp_path / "a", namespace) as plane:
        other = make_request(names=(identity("kube-system", "admin"),))
        chain, roots = await ask(plane, cart, other)
        assert verify_chain(chain, roots, time.time()) == [identity(namespace, "cart")]
        key = (bed.folder / "accounts.key").read_bytes()
        own = await asyncio.to_thread(signed, bed, namespace, key)
        assert await ask(plane, own), "so the tokens below fail for their own reason"

        forger = rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        head, payload, signature = cart.split(".")
        past = {"exp": int(time.time()) - 60, "iat": int(time.time()) - 3600, "nbf": int(time.time()) - 3600}
        for shown in (
            await asyncio.to_thread(signed, bed, namespace, forger),
            await asyncio.to_thread(lambda: signed(bed, namespace, key, **past)),
            await asyncio.to_thread(lambda: signed(bed, namespace, key, aud=["somebody-else"])),
            await asyncio.to_thread(lambda: signed(bed, namespace, key, iss="https://elsewhere")),
            await asyncio.to_thread(token, bed, namespace, "cart", "somebody-else"),
            f"{head}.{payload}.{signature[:-8]}AAAAAAAA",
            "administrator-of-this-run",
            "rubbish",
        ):
            assert await refusal(plane, shown) == (grpc.StatusCode.UNAUTHENTICATED, "request authenticate failure")


async def test_the_token_of_a_pod_that_is_gone_gets_nothing(bed, namespace, cart, tmp_path):
    async with replica(bed, tmp_path / "a", namespace) as plane:
        path = path_of(pod(namespace, "cart-0"), "pods")
        await asyncio.to_thread(bed.call, "DELETE", f"{path}?gracePeriodSeconds=0")
        await eventually(lambda: asyncio.to_thread(is_refused_by_server, bed, cart), 120, every=0.2)
        assert (await refusal(plane, cart))[0] == grpc.StatusCode.UNAUTHENTICATED


def is_refused_by_server(bed: Bed, shown: str) -> bool:
    """Whether the server itself has noticed."""
    review = {"spec": {"token": shown, "audiences": ["istio-ca"]}}
    found = bed.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    return not found["status"].get("authenticated")


# -- certificates for others ------------------------------------------------------------------------------------------


async def test_a_nodes_agent_gets_certificates_of_pods_on_its_node_and_nobody_else_does(bed, namespace, cart, tmp_path):
    def prepare() -> dict[str, str]:
        for account, name, node in (
            ("agent", "agent-one", "node-one"),
            ("agent", "agent-two", "node-two"),
            ("vault", "vault-0", "node-two"),
        ):
            with contextlib.suppress(Answer):
                make_account(bed, namespace, account)
            make_pod(bed, namespace, name, account, node)
        return {name: token(bed, namespace, "agent", pod_name=name) for name in ("agent-one", "agent-two")}

    shown = await asyncio.to_thread(prepare)
    unbound = await asyncio.to_thread(token, bed, namespace, "agent")
    trusted = (f"{namespace}/agent",)
    async with replica(bed, tmp_path / "a", namespace, node_accounts=trusted) as plane:

        def wish(account: str, of: str = "") -> dict[str, dict[str, str]]:
            return {"metadata": {"ImpersonatedIdentity": identity(of or namespace, account)}}

        for agent, account in (("agent-one", "cart"), ("agent-two", "vault")):
            chain, roots = await ask(plane, shown[agent], **wish(account))
            assert verify_chain(chain, roots, time.time()) == [identity(namespace, account)]
        refused = (grpc.StatusCode.UNAUTHENTICATED, "request impersonation authentication failure")
        for bearer, asked in (
            (shown["agent-one"], wish("vault")),
            (shown["agent-two"], wish("cart")),
            (shown["agent-one"], wish("nobody")),
            (shown["agent-one"], wish("cart", "kube-system")),
            (unbound, wish("cart")),
            (cart, wish("cart")),
            (cart, wish("agent")),
        ):
            assert await refusal(plane, bearer, **asked) == refused
        chain, roots = await ask(plane, shown["agent-one"])
        assert verify_chain(chain, roots, time.time()) == [identity(namespace, "agent")]
    async with replica(bed, tmp_path / "b", namespace) as closed:
        assert await refusal(closed, shown["agent-one"], **wish("cart")) == refused


# -- a signer of Kubernetes -------------------------------------------------------------------------------------------

SIGNER = "signers.example/workloads"
RIGHTS = (
    {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests"],
        "verbs": ["create", "get", "delete"],
    },
    {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/approval"],
        "verbs": ["update"],
    },
    {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "resourceNames": [SIGNER],
        "verbs": ["approve"],
    },
)
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class SignerOfCluster:
    """Signs what is approved, by a root of its own; honestly or for whom it likes."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self.root = certificates.build_root("signer", YEAR, 2048, time.time())
        self.forges: tuple[str, ...] = ()
        self.seen: dict[str, dict] = {}

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(0.1)

    def _look(self) -> None:
        for found in self._bed.call("GET", REQUESTS)["items"]:
            name, status = found["metadata"]["name"], found.get("status", {})
            approved = any(each["type"] == "Approved" for each in status.get("conditions", ()))
            if name in self.seen or not approved or found["spec"]["signerName"] != SIGNER:
                continue
            self.seen[name] = found
            request = msgspec.convert(found["spec"]["request"], bytes).decode()
            names = self.forges or names_of(request)
            key = certificates.check_request(request).key
            now = time.time()
            leaf = certificates.build_leaf(self.root, key, names, now + found["spec"]["expirationSeconds"], now)
            pem = certificates.encode(leaf, self.root.certificate)
            status["certificate"] = json.loads(msgspec.json.encode(pem))
            self._bed.call("PUT", f"{REQUESTS}/{name}/status", {**found, "status": status})


def names_of(request: str) -> tuple[str, ...]:
    read = x509.load_pem_x509_csr(request.encode())
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(name.value) for name in names)


async def test_a_signer_of_the_cluster_signs_what_we_approve_and_is_not_believed_blindly(
    bed, namespace, cart, tmp_path
):
    who = identity(namespace, "cart")
    request = make_request(names=(who,))
    signer = SignerOfCluster(bed)
    async with replica(
        bed, tmp_path / "a", namespace, *RIGHTS, external="ISTIOD_RA_KUBERNETES_API", kubernetes_signer=SIGNER
    ) as plane:
        signing = asyncio.ensure_future(signer.run())
        try:
            chain, roots = await ask(plane, cart, request)
            assert verify_chain(chain, roots, time.time()) == [who]
            assert roots == [signer.root.certificate]
            (made,) = signer.seen.values()
            assert made["spec"]["expirationSeconds"] == 3600
            assert made["metadata"]["name"].startswith("csr-workload-")

            assert (await refusal(plane, cart, make_request(names=(identity("kube-system", "admin"),))))[0] == (
                grpc.StatusCode.INVALID_ARGUMENT
            )
            assert len(signer.seen) == 1, "what may not be asked for does not get there"
            signer.forges = (identity("kube-system", "admin"),)
            code, details = await refusal(plane, cart, request)
            assert (code, "other names" in details) == (grpc.StatusCode.INTERNAL, True)
        finally:
            signing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await signing
        await eventually(lambda: not bed.call("GET", REQUESTS)["items"], 60, every=0.2)
    async with replica(
        bed,
        tmp_path / "b",
        namespace,
        *RIGHTS,
        external="ISTIOD_RA_KUBERNETES_API",
        kubernetes_signer="signers.example/b",
    ) as plane:
        code, details = await refusal(plane, cart, request)
        assert code == grpc.StatusCode.INTERNAL
        assert "may not" in details or "forbidden" in details or "not permitted" in details
        await eventually(lambda: not bed.call("GET", REQUESTS)["items"], 60, every=0.2)
