"""The certificate authority with its files, kept running.

In: the operator's folder of a plugged-in authority and Mizzen's own of the state. Out: an `Authority` that follows
both: what the operator exchanges, or plugs in later, is taken in with an overlap; every transition is written down
before the next restart needs it. Without either folder the root lives as long as the process, which is said aloud;
on Kubernetes, Secrets keep it for all replicas.
"""

import asyncio
import contextlib
import pathlib
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from mizzen import observe, settings
from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import ObjectMeta
from mizzen.ca import certificates, serving, store
from mizzen.ca.authority import Authority, State, start_self_signed
from mizzen.ca.certificates import Signer
from mizzen.ca.revocations import Revocations
from mizzen.control.mesh import MeshSettings, config_map_key
from mizzen.control.options import Options
from mizzen.control.shared_authority import open_shared
from mizzen.errors import AuthorityError
from mizzen.sources import tree
from mizzen.sources.kube.client import Client, Refused
from mizzen.sources.origins import Origin

_log = observe.scope("ca")

_LOOK_EVERY = 5.0
"""Seconds between two looks at the operator's files and at what is due."""


class KeptAuthority(Protocol):
    """An authority that outlives the process, and what keeps it."""

    authority: Authority
    revocations: Revocations

    async def run(self) -> None:
        """Keep it; ends only when cancelled."""
        ...


class RunningAuthority:
    """An authority and the folders it follows."""

    def __init__(
        self, config: settings.Authority, folder: str, organisation: str, clock: Callable[[], float] = time.time
    ) -> None:
        """Raises AuthorityError when the files there are incomplete, broken or unreadable."""
        self._config = config
        self._folder = pathlib.Path(folder) if folder else None
        self._plugged = _find_plugged_folder(config, self._folder)
        # Before the files are read: what is exchanged meanwhile is another one the next time.
        self._stamps = self._look()
        self.revocations = Revocations(enabled=config.revocations, clock=clock)
        state = store.load_state(self._folder) if self._folder is not None else None
        plugged = self._read_plugged(state)
        fresh = state is None
        if state is None and plugged is not None:
            state = State(current=plugged)
        if state is None:
            state = start_self_signed(organisation, config, clock())
            if self._folder is None:
                _log.warning("the root of trust is lost when this process ends; keep it with --caDir")
        # Who plugs in an authority may have issued by it elsewhere.
        self.authority = Authority(
            state,
            config,
            clock,
            self_signed_for=None if plugged is not None else organisation,
            fresh=fresh and plugged is None,
        )
        self._interval = min(config.root_check_interval, _LOOK_EVERY)
        self._is_written = True
        self.authority.on_change(lambda state: self.revocations.reconsider(state.authorities))
        if plugged is not None:
            self.authority.plug_in(plugged)
        if self._folder is not None:
            store.save_state(self._folder, self.authority.state)
            self.authority.on_change(self._save)
            if self.revocations.pem is not None:
                self._save_revocations(self.revocations.pem)
            self.revocations.on_change(self._save_revocations)

    async def run(self) -> None:
        """Follow the files and move on as time passes; ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.authority.run(self._interval), name="authority")
            tasks.create_task(self._follow(), name="authority/files")

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            self.follow()

    def follow(self) -> None:
        """Look at the operator's files; take in what has changed, once it is whole. Write down what could not be."""
        if not self._is_written:
            self._save(self.authority.state)
        if self._plugged is None:
            self._plugged = _find_plugged_folder(self._config, self._folder)
        stamps = self._look()
        if stamps == self._stamps or self._plugged is None:
            return
        self._stamps = stamps
        try:
            signer = self._read_plugged(self.authority.state)
        except AuthorityError as error:
            _log.error("the plugged-in authority stays as it was: %s", error)
            return
        if signer is not None:
            self.authority.plug_in(signer)

    def _read_plugged(self, state: State | None) -> Signer | None:
        """The operator's signer, once what it has revoked is known. Raises AuthorityError for what is broken."""
        if self._plugged is None:
            return None
        return self.revocations.read_plugged(self._plugged, state.authorities if state is not None else ())

    def _look(self) -> tuple[tuple[str, tree.Stamp], ...]:
        found = []
        for name in store.PLUGGED_FILES:
            with contextlib.suppress(OSError):
                status = (self._plugged / name).stat() if self._plugged is not None else None
                if status is not None:
                    found.append((name, tree.Stamp.of(status)))
        return tuple(found)

    def _save(self, state: State) -> None:
        assert self._folder is not None
        try:
            store.save_state(self._folder, state)
            self._is_written = True
        except AuthorityError as error:
            self._is_written = False
            _log.error("the authority's state is not written down: %s", error)

    def _save_revocations(self, pem: bytes) -> None:
        assert self._folder is not None
        try:
            store.save_revocations(self._folder, pem)
        except AuthorityError as error:
            _log.error("the revocation lists are not written down: %s", error)


def _find_plugged_folder(config: settings.Authority, own: pathlib.Path | None) -> pathlib.Path | None:
    """The folder with a plugged-in authority: the operator's, or Mizzen's own if it was put there."""
    for folder in (pathlib.Path(config.directory), own):
        if folder is not None and any((folder / name).exists() for name in store.SIGNER_FILES):
            return folder
    return None


async def open_authority(client: Client, options: Options, config: settings.Settings) -> KeptAuthority:
    """The authority that all replicas on a cluster share. Raises AuthorityError when it is broken or not permitted."""
    mesh = MeshSettings(options.mesh_config)

    async def trust_domain() -> str:
        key = config_map_key(config.instance.namespace, config.instance.revision)
        try:
            body = await client.get(f"/api/v1/namespaces/{key.namespace}/configmaps/{key.name}")
        except Refused as refusal:
            if refusal.status != 404:
                raise
        else:
            data = msgspec.json.decode(body, type=_ConfigMap).data or {}
            found = ConfigMap(metadata=ObjectMeta(name=key.name, namespace=key.namespace), data=data)
            mesh.follow(found, Origin("kubernetes"))
        return mesh.config.trust_domain

    return await open_shared(client, config.authority, config.instance.namespace, trust_domain)


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


async def keep_serving_certificate(certificate: serving.ServingCertificate, interval: float = 30.0) -> None:
    """Renew the control plane's certificate in time; ends only when cancelled."""
    while True:
        await asyncio.sleep(interval)
        try:
            if certificate.renew_if_due():
                first = certificates.decode(certificate.chain_pem, "own certificate")[0]
                _log.info("the control plane's certificate is renewed until %s", first.not_valid_after_utc)
        except AuthorityError as error:
            _log.error("the control plane's certificate cannot be renewed: %s", error)
