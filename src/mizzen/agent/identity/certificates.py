"""The workload's certificate: obtained, renewed in time, and handed to Envoy.

In: the certificate service of the control plane (`CreateCertificate`), the bearer token's file, and the file in which
the mesh distributes its roots. Out: the secrets `default` and `ROOTCA`, and files where `OUTPUT_CERTS` asks for them.

A certificate is renewed when half of its life is left, give or take a little, with a fresh key each time; also, a few
seconds later, when the distributed roots change. While the service is away the old one stays, and the service is asked
again with growing delays. `ROOTCA` holds the roots that came with the certificate together with the distributed ones
and those that the control plane pushes, so that a new root is trusted before anybody shows a certificate of it. When a
push leaves out a root that came with the certificate, a new certificate is asked for, and the old root with it is gone.
The revocation lists that the mesh distributes go with the roots; while those are unreadable, the last good ones stay.
Key, certificate and pushed roots are also kept in the agent's private folder: a restarted agent goes on with them when
the control plane is away, and knows the control plane by them when its certificate is of a newer root than the file's.

Where the pod comes with a certificate in files, nothing is asked for: these files are followed instead.
"""

import asyncio
import datetime
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import grpc
import msgspec
from google.protobuf.message import DecodeError as WireError

from mizzen import observe, protos, revocation_lists, settings
from mizzen.agent import control_plane, files, metrics
from mizzen.agent.identity import keys, sds
from mizzen.errors import AgentError, AuthorityError, DecodeError

WORKLOAD = "default"
ROOTS = "ROOTCA"
TRUST_BUNDLE = protos.TYPE_PREFIX + "istio.mesh.v1alpha1.ProxyConfig"
"""The type in which the control plane pushes roots."""

_METHOD = "/istio.v1.auth.IstioCertificateService/CreateCertificate"
_KIND = "csr"
_FILES = ("key.pem", "cert-chain.pem", "root-cert.pem")
_CALL_TIMEOUT = 10.0
_STEP = 1.0
"""Seconds after which a sleeping renewal looks at clock and roots again: machines are suspended, clocks are set."""

_auth = protos.package("istio.v1.auth")
_mesh = protos.package("istio.mesh.v1alpha1")
_log = observe.scope("certificates")

Ask = Callable[[bytes], Awaitable[Sequence[str]]]
"""Sends an encoded certificate request; the answer is leaf, intermediates and roots."""


def ask_authority(endpoint: control_plane.Endpoint, seconds_of_life: float) -> Ask:
    """Asks the certificate service at `endpoint`."""

    async def ask(csr: bytes) -> Sequence[str]:
        request = _auth.IstioCertificateRequest(csr=csr.decode(), validity_duration=int(seconds_of_life))
        async with control_plane.open_channel(endpoint) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_METHOD)
            metadata = control_plane.build_call_metadata(endpoint)
            try:
                answer = await call(protos.encode(request), metadata=metadata, timeout=_CALL_TIMEOUT)
            except grpc.aio.AioRpcError as refused:
                reason = f"{refused.code().name}: {refused.details()}"
                raise AuthorityError(f"{endpoint.address} answers {reason}") from refused
        try:
            return tuple(_auth.IstioCertificateResponse.FromString(answer).cert_chain)
        except WireError as nonsense:
            raise AuthorityError(f"{endpoint.address} sends no answer to a certificate request") from nonsense

    return ask


class Clock:
    """The machine's time."""

    def now(self) -> datetime.datetime:
        """The time of day, in UTC."""
        return datetime.datetime.now(datetime.UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where certificates are read from and written to."""

    mesh_roots: Path = Path("./var/run/secrets/istio/root-cert.pem")
    """The roots as the control plane distributes them."""
    revocations: Path = Path("./var/run/secrets/istio/crl/ca-crl.pem")
    """The revocation lists as the control plane distributes them; no file means that there are none."""
    kept: Path
    """Private folder in which key and certificate outlive a restart."""
    output: Path | None = None
    """Folder for applications that want certificates as files."""
    mounted: Path | None = None
    """Folder of a certificate that the pod brings along, in place of any that could be asked for."""

    @property
    def pushed_roots(self) -> Path:
        """The roots that the control plane pushed last."""
        return self.kept / control_plane.PUSHED_ROOTS


class Certificates:
    """Keeps the secrets `default` and `ROOTCA` true."""

    def __init__(
        self,
        *,
        spiffe_id: str,
        ask: Ask,
        options: settings.Agent,
        places: Places,
        secrets: sds.Secrets,
        further_roots: tuple[bytes, ...] = (),
        file_interval: float = 1.0,
        spread: float = 5.0,
        shortest: float = 1.0,
        clock: Clock | None = None,
    ) -> None:
        self._spiffe_id = spiffe_id
        self._ask = ask
        self._options = options
        self._places = places
        self._secrets = secrets
        self._further_roots = further_roots
        self._file_interval = file_interval
        self._clock = clock or Clock()
        self._spread = spread
        """Seconds over which the pods of a mesh spread their requests when its roots change."""
        self._shortest = shortest
        """Seconds between two renewals, however short the certificates' life is."""
        self._distributed_roots = b""
        self._pushed_roots = b""
        self._roots_changed = False
        self._revocations: bytes | None = None
        """None while nothing good has been read."""
        self._identity: keys.Identity | None = None

    async def run(self) -> None:
        """Obtain, publish and renew until cancelled."""
        revocations = files.watch_files([self._places.revocations], interval=self._file_interval)
        self._take_revocations(await anext(revocations))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_revocations(revocations), name="revocation lists")
            if self._places.mounted is not None:
                await self._follow_mounted(self._places.mounted)
            self._resume()
            tasks.create_task(self._renew(), name="certificate renewal")
            tasks.create_task(self._follow_roots(), name="mesh roots")

    def _resume(self) -> None:
        """Go on with the pushed roots and the certificate of an earlier run, if that is still good."""
        self._pushed_roots = files.read_file(self._places.pushed_roots) or b""
        kept = [files.read_file(self._places.kept / name) for name in _FILES]
        if not all(kept):
            return
        key_pem, chain_pem, roots_pem = (content or b"" for content in kept)
        try:
            identity = keys.load_identity(observe.Secret(key_pem), chain_pem, roots_pem, spiffe_id=self._spiffe_id)
        except AuthorityError as unfit:
            _log.info("the certificate of an earlier run is not used: %s", unfit)
            return
        if identity.expires_at > self._clock.now():
            self._adopt(identity)

    async def _follow_mounted(self, folder: Path) -> None:
        """Hand on what the files hold, whenever it changes and fits together; ends only when cancelled."""
        paths = [folder / name for name in _FILES]
        async for content in files.watch_files(paths, interval=self._file_interval):
            key_pem, chain_pem, roots_pem = (content[path] or b"" for path in paths)
            try:
                identity = keys.load_identity(observe.Secret(key_pem), chain_pem, roots_pem, spiffe_id="")
            except AuthorityError as unfit:
                metrics.FILE_SECRET_FAILURES.inc()
                _log.warning("the certificate in %s is not used: %s", folder, unfit)
                continue
            self._adopt(identity)
            _log.info("the certificate in %s is in use until %s", folder, identity.expires_at)

    async def _renew(self) -> None:
        while True:
            await self._sleep_until_due()
            self._adopt(await self._obtain())
            _log.info("certificate for %s obtained", self._spiffe_id)

    async def _sleep_until_due(self) -> None:
        """Wait until the certificate has spent its share of life, or the mesh's roots have changed."""
        if self._identity is None:
            return
        await self._clock.sleep(self._shortest)
        jitter = self._options.renewal_jitter
        remaining = self._options.renewal_ratio + random.uniform(-jitter, jitter)
        while (delay := self._identity.renewal_delay(self._clock.now(), remaining)) > 0:
            if self._roots_changed:
                await self._clock.sleep(random.uniform(0, self._spread))
                break
            await self._clock.sleep(min(delay, _STEP))
        self._roots_changed = False

    async def _obtain(self) -> keys.Identity:
        """A new certificate; asks until it gets one."""
        back_off = control_plane.BackOff(0.1, 10.0 if self._identity is None else 60.0)
        while True:
            try:
                return await self._request()
            except (AgentError, AuthorityError) as failure:
                metrics.OUTGOING_FAILURES.labels(_KIND).inc()
                metrics.OUTGOING_RETRIES.labels(_KIND).inc()
                delay = back_off.delay()
                _log.warning("no certificate: %s; again in %.1f s", failure, delay)
                await self._clock.sleep(delay)

    async def _request(self) -> keys.Identity:
        metrics.OUTGOING_REQUESTS.labels(_KIND).inc()
        key = keys.generate_key(self._options)
        began = time.monotonic()
        chain = await self._ask(keys.build_request(key, self._spiffe_id))
        metrics.OUTGOING_MILLISECONDS.labels(_KIND).inc((time.monotonic() - began) * 1000)
        return keys.parse_answer(key, self._spiffe_id, chain, self._clock.now())

    def take_pushed(self, bundles: Sequence[bytes]) -> None:
        """The control plane pushes roots, as encoded ProxyConfigs; raises DecodeError for what holds none.

        One that pushes nothing at all, as Istio's does by default, changes nothing.
        """
        if not bundles:
            return
        try:
            texts = [pem for data in bundles for pem in _mesh.ProxyConfig.FromString(data).ca_certificates_pem]
        except WireError as broken:
            raise DecodeError("the pushed roots are not a ProxyConfig") from broken
        pushed = keys.merge_roots(text.encode() for text in texts)
        if not pushed:
            raise DecodeError("the pushed roots hold no certificate")
        if pushed == self._pushed_roots:
            return
        self._pushed_roots = pushed
        own = self._identity.roots_pem if self._identity else b""
        if set(keys.parse_certificates(own)) - set(keys.parse_certificates(pushed)):
            self._roots_changed = True
        self._write({control_plane.PUSHED_ROOTS: pushed}, self._places.kept)
        self._publish_roots()
        _log.info("the control plane pushes %d roots", len(keys.parse_certificates(pushed)))

    async def _follow_roots(self) -> None:
        async for content in files.watch_files([self._places.mesh_roots], interval=self._file_interval):
            roots = content[self._places.mesh_roots]
            if not roots:
                continue
            if self._distributed_roots:
                self._roots_changed = True
            self._distributed_roots = roots
            self._publish_roots()

    async def _follow_revocations(self, changes: AsyncIterator[Mapping[Path, bytes | None]]) -> None:
        async for content in changes:
            self._take_revocations(content)
            self._publish_roots()

    def _take_revocations(self, content: Mapping[Path, bytes | None]) -> None:
        """Put in force what the file holds; what is no list is told and changes nothing."""
        (pem,) = content.values()
        try:
            lists = revocation_lists.decode(pem or b"", str(self._places.revocations))
        except AuthorityError as unfit:
            metrics.FILE_SECRET_FAILURES.inc()
            effect = "nobody is trusted" if self._revocations is None else "the last good one stays in force"
            _log.warning("%s; %s", unfit, effect)
            return
        if lists or self._revocations:
            _log.info("%d revocation lists are in force", len(lists))
        self._revocations = (pem or b"") if lists else b""

    def _adopt(self, identity: keys.Identity) -> None:
        """Make `identity` the one in force: for Envoy, for the next run, for whoever reads files."""
        self._identity = identity
        self._publish_roots()
        self._secrets.put(sds.build_certificate(WORKLOAD, identity.chain_pem, identity.key_pem))
        expires = identity.expires_at.timestamp()
        metrics.CERTIFICATE_EXPIRY.labels(WORKLOAD).set_function(lambda: expires - time.time())
        content = {"key.pem": identity.key_pem.reveal(), "cert-chain.pem": identity.chain_pem}
        if self._places.mounted is None:
            self._write(content | {"root-cert.pem": identity.roots_pem}, self._places.kept)
        self._write(content, self._places.output)

    def _publish_roots(self) -> None:
        own = self._identity.roots_pem if self._identity else b""
        roots = keys.merge_roots((own, self._pushed_roots, self._distributed_roots, *self._further_roots))
        if not roots or self._revocations is None:
            return
        # Inline, where Istio names the file: Envoy refuses a secret, roots and all, whose file is absent or broken, and
        # reads it again only when something is moved into its folder.
        self._secrets.put(sds.build_roots(ROOTS, roots, self._revocations))
        soonest = min(root.not_valid_after_utc for root in keys.parse_certificates(roots)).timestamp()
        metrics.CERTIFICATE_EXPIRY.labels(ROOTS).set_function(lambda: soonest - time.time())
        self._write({"root-cert.pem": roots}, self._places.output)

    def _write(self, content: Mapping[str, bytes], folder: Path | None) -> None:
        """Write files into `folder`; a folder that cannot be written costs a warning, not the certificate."""
        if folder is None:
            return
        public = 0o600 if folder == self._places.kept else 0o644
        try:
            for name, data in content.items():
                files.write_file(folder / name, data, mode=0o600 if name == "key.pem" else public)
        except OSError as failed:
            _log.warning("cannot write certificates to %s: %s", folder, failed)
