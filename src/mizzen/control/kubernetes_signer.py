"""Workload certificates by a signer of Kubernetes (`EXTERNAL_CA=ISTIOD_RA_KUBERNETES_API`).

    request of a proved caller ─> CertificateSigningRequest ─> approved here ─> signed there ─> checked here ─> chain

In: a client, the names of signers, the roots that the mesh config has for them. Out: chains, as from the authority. The
object is removed however it ends. What may be asked for, and what of the answer is believed, is decided by `external`.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from cryptography import x509

from mizzen import observe, settings
from mizzen.api.mesh.config import MeshConfig
from mizzen.ca import certificates, external
from mizzen.ca.authority import IssueError
from mizzen.ca.service import Order
from mizzen.errors import AuthorityError, SourceError
from mizzen.sources.kube.client import Client, Refused

_log = observe.scope("ca")

KIND = "ISTIOD_RA_KUBERNETES_API"
"""The value of EXTERNAL_CA."""

_PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_USAGES = ("digital signature", "key encipherment", "server auth", "client auth")
_SHORTEST = 600.0
"""Seconds; the API server takes no shorter life."""
_WAIT = 60.0
_FIRST_LOOK, _LOOK_EVERY = 0.05, 1.0
_MOST_AT_ONCE = 50
_SENSELESS = (400, 403, 404, 422)
_SIGNER = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?")


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    certificate: bytes = b""
    conditions: tuple[_Condition, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class KubernetesSigner:
    """An `Issuer` that has Kubernetes' signers sign."""

    def __init__(
        self, client: Client, config: settings.Authority, mesh: Callable[[], MeshConfig], clock: Callable[[], float]
    ) -> None:
        """Raises AuthorityError where no signer can be meant."""
        if not config.kubernetes_signer and not config.signer_domain:
            raise AuthorityError(f"EXTERNAL_CA={KIND} needs K8S_SIGNER or CERT_SIGNER_DOMAIN")
        self._client, self._config, self._mesh, self._clock = client, config, mesh, clock
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)
        self._removals: set[asyncio.Task[None]] = set()

    async def issue(self, order: Order) -> tuple[str, ...]:
        """Leaf, each intermediate, and the bundle of roots as one text; raises IssueError."""
        seconds = order.seconds if order.seconds > 0 else min(self._config.default_ttl, self._config.max_ttl)
        if seconds > self._config.max_ttl:
            raise IssueError("TTL_ERROR", f"requested TTL {seconds:g}s is greater than {self._config.max_ttl:g}s")
        try:
            signer = self._name_signer(order.signer)
            wish = external.check_wish(order.request, order.identities)
        except AuthorityError as error:
            raise IssueError("CSR_ERROR", str(error)) from error
        roots = self._roots(signer)
        async with self._places:
            signed = await self._ask(wish, signer, max(seconds, _SHORTEST))
        try:
            return external.check_answer(signed, wish, roots, self._clock())
        except AuthorityError as error:
            _log.error("what %s signed is not given out: %s", signer, error)
            raise IssueError("CERT_GEN_ERROR", str(error)) from error

    def _name_signer(self, asked: str) -> str:
        if not asked:
            if not self._config.kubernetes_signer:
                raise AuthorityError("the request names no signer, and there is no K8S_SIGNER")
            return self._config.kubernetes_signer
        if not self._config.signer_domain:
            raise AuthorityError("the request names a signer, and there is no CERT_SIGNER_DOMAIN")
        if not _SIGNER.fullmatch(asked):
            raise AuthorityError("the request names a signer by what is no name")
        return f"{self._config.signer_domain}/{asked}"

    def _roots(self, signer: str) -> Sequence[x509.Certificate]:
        found: dict[x509.Certificate, None] = {}
        for data in self._mesh().ca_certificates:
            if data.pem and signer in data.cert_signers:
                try:
                    found.update(dict.fromkeys(certificates.decode(data.pem.encode(), "caCertificates")))
                except AuthorityError as error:
                    # Without it, the signer's own word would count for its root.
                    raise IssueError("CA_NOT_READY", f"the root of {signer}: {error}") from error
        return tuple(found)

    # -- the object -----------------------------------------------------------------------------------------------

    async def _ask(self, wish: external.Wish, signer: str, seconds: float) -> bytes:
        """What the signer has signed, as PEM."""
        name = ""
        try:
            async with asyncio.timeout(_WAIT):
                made = await self._create(wish.pem, signer, seconds)
                name = made["metadata"]["name"]
                await self._approve(made)
                return await self._wait_for(name)
        except TimeoutError as error:
            raise IssueError("CA_NOT_READY", f"{signer} has not signed within {_WAIT:g} s") from error
        except Refused as refusal:
            kind = "CERT_GEN_ERROR" if refusal.status in _SENSELESS else "CA_NOT_READY"
            raise IssueError(kind, f"{signer} cannot be asked: {refusal}") from refusal
        except (SourceError, msgspec.DecodeError) as error:
            raise IssueError("CA_NOT_READY", f"{signer} cannot be asked: {error}") from error
        finally:
            if name:
                task = asyncio.ensure_future(self._remove(name))
                self._removals.add(task)
                task.add_done_callback(self._removals.discard)

    async def _create(self, request: bytes, signer: str, seconds: float) -> dict[str, Any]:
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"generateName": "csr-workload-"},
            "spec": {
                "request": request,
                "signerName": signer,
                "usages": _USAGES,
                "expirationSeconds": int(seconds),
            },
        }
        return msgspec.json.decode(await self._client.call("POST", _PATH, body), type=dict[str, Any])

    async def _approve(self, made: dict[str, Any]) -> None:
        """Say that whoever asks is who the request names; the API server checks that we may say so for this signer."""
        condition = {
            "type": "Approved",
            "status": "True",
            "reason": "WorkloadProved",
            "message": "The control plane has checked the workload's credentials.",
        }
        body = {**made, "status": {"conditions": [condition]}}
        await self._client.call("PUT", f"{_PATH}/{made['metadata']['name']}/approval", body)

    async def _wait_for(self, name: str) -> bytes:
        wait = _FIRST_LOOK
        while True:
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LOOK_EVERY)
            status = msgspec.json.decode(await self._client.get(f"{_PATH}/{name}"), type=_Object).status
            for condition in status.conditions:
                if condition.type in ("Denied", "Failed") and condition.status == "True":
                    raise IssueError("CERT_GEN_ERROR", f"{condition.type}: {condition.message[:200]}")
            if status.certificate:
                return status.certificate

    async def _remove(self, name: str) -> None:
        with contextlib.suppress(SourceError):
            await self._client.call("DELETE", f"{_PATH}/{name}")
