"""The control plane of a local mesh: its authority, its tokens, its process.

In: the mesh's folder and addresses. The authority's root and the key of the token issuer are made before anything
starts and kept in the mesh's closed folder, so that pods can be prepared while the control plane is still coming up,
and a control plane that was killed comes back as who it was. Out: a supervised `mizzen discovery`, and whether it is
ready.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from mizzen import settings
from mizzen.ca import certificates, store, tokens
from mizzen.ca.authority import State
from mizzen.ca.revocations import Revocations
from mizzen.local.processes import Command, Supervisor
from mizzen.local.runtime import Layout

READY_PORT = 8080
PLAIN_PORT = 15010
SECURE_PORT = 15012
MONITORING_PORT = 15014
INTROSPECTION_PORT = 9876
CLIENT_ACCOUNT = tokens.ServiceAccount(namespace="istio-system", name="mizzen-cli")

_TOKEN_KEY = "token-key.pem"
_ROOT_LIFETIME = 10 * 365 * 24 * 3600.0
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 5.0


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Where the control plane listens: for pods, and for the mesh and the host alone."""

    pods: str
    private: str

    @property
    def ready(self) -> tuple[str, int]:
        return self.private, READY_PORT

    @property
    def plain(self) -> tuple[str, int]:
        return self.private, PLAIN_PORT

    @property
    def secure(self) -> tuple[str, int]:
        return self.pods, SECURE_PORT

    @property
    def monitoring(self) -> tuple[str, int]:
        return self.private, MONITORING_PORT

    @property
    def introspection(self) -> tuple[str, int]:
        return self.private, INTROSPECTION_PORT

    @property
    def by_name(self) -> Mapping[str, tuple[str, int]]:
        """The listeners that the command line uses, under their names in the state file."""
        return {
            "plain": self.plain,
            "secure": self.secure,
            "monitoring": self.monitoring,
            "introspection": self.introspection,
        }


class Credentials:
    """The authority's root and the issuer of tokens, made once and found again."""

    def __init__(self, folder: Path, config: settings.Authority, trust_domain: str, clock: Callable[[], float]) -> None:
        """An operator's authority that is there signs from the start; raises AuthorityError for a broken one."""
        self.folder = folder
        # The control plane runs in the folder, and finds from there what is plugged in.
        signer = Revocations(enabled=config.revocations, clock=clock).read_plugged(folder / config.directory)
        if store.load_state(folder) is None and store.find_plugged(folder) is None:
            if signer is None:
                signer = certificates.build_root(trust_domain, _ROOT_LIFETIME, 2048, clock())
            store.save_state(folder, State(current=signer))
        key_file = folder / _TOKEN_KEY
        if not key_file.exists():
            store.replace_file(key_file, tokens.encode_private_key(tokens.generate_key()), 0o600)
        self._issuer = tokens.TokenIssuer(tokens.decode_private_key(key_file.read_bytes()), clock)
        self.renew_client_token()

    @property
    def token_key(self) -> Path:
        return self.folder / _TOKEN_KEY

    @property
    def root_file(self) -> Path:
        return self.folder / store.BUNDLE

    @property
    def roots(self) -> str:
        """The bundle that everybody trusts, as PEM."""
        return self.root_file.read_text()

    @property
    def revocations(self) -> str:
        """What the control plane says is revoked, as PEM; empty for nothing."""
        try:
            return (self.folder / store.REVOKED).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    @property
    def distributed(self) -> tuple[str, str]:
        """Everything that pods are told of the authority."""
        return self.roots, self.revocations

    def issue(self, namespace: str, account: str, pod: str, audience: str) -> str:
        """A token of a service account, bound to a pod."""
        audiences = (audience,) if audience else (tokens.AUDIENCE,)
        return self._issuer.issue(tokens.ServiceAccount(namespace=namespace, name=account, pod=pod), audiences)

    @property
    def client_token(self) -> Path:
        """A file with a token for the command line of the mesh's user."""
        return self.folder / "token"

    def renew_client_token(self) -> None:
        store.replace_file(self.client_token, self._issuer.issue(CLIENT_ACCOUNT).encode(), 0o600)


class ControlPlane:
    """The process, restarted whenever it ends."""

    def __init__(
        self,
        layout: Layout,
        addresses: Addresses,
        credentials: Credentials,
        manifests: tuple[str, ...],
        environ: Mapping[str, str],
        changed: Callable[[], None],
        say: Callable[[str], None],
        *,
        bound_to_parent: bool,
    ) -> None:
        self.addresses = addresses
        self.ready = False
        self._layout = layout
        self._credentials = credentials
        self._manifests = manifests
        self._environ = environ
        self._changed = changed
        self._bound = bound_to_parent
        self._first = asyncio.Event()
        self.supervisor = Supervisor(
            self._command, self._refresh, ended=lambda reason: say(f"control plane {reason} and is started again")
        )

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.supervisor.run(), name="control-plane")
            tasks.create_task(self._watch(), name="control-plane/readiness")

    async def wait_ready(self) -> None:
        """Until it is ready for the first time."""
        await self._first.wait()

    def _refresh(self) -> None:
        if self.supervisor.process is None:
            self.ready = False
        self._changed()

    async def _command(self) -> Command:
        return Command(
            argv=(sys.executable, "-m", "mizzen", *self.build_arguments()),
            environ=self._environ,
            directory=self._layout.control,
            log=self._layout.control_log,
            bound_to_parent=self._bound,
        )

    def build_arguments(self) -> tuple[str, ...]:
        """The arguments of `mizzen discovery`; later directories replace objects of earlier ones."""
        directories = (*self._manifests, str(self._layout.config))
        listeners = {
            "--grpcAddr": self.addresses.plain,
            "--secureGRPCAddr": self.addresses.secure,
            "--monitoringAddr": self.addresses.monitoring,
            "--httpAddr": self.addresses.ready,
        }
        arguments = ["discovery"]
        for directory in directories:
            arguments += ["--config", directory]
        for flag, (host, port) in listeners.items():
            arguments += [flag, f"{host}:{port}"]
        host, port = self.addresses.introspection
        arguments += ["--ctrlz_address", host, "--ctrlz_port", str(port)]
        authority = ("--caDir", str(self._credentials.folder), "--tokenKey", str(self._credentials.token_key))
        return (*arguments, *authority, "--mutualGRPCAddr", "", "--httpsAddr", "")

    async def _watch(self) -> None:
        """Asks its readiness port: often until it is ready, then now and then."""
        while True:
            alive = self.supervisor.process is not None
            ready = alive and await is_ready(*self.addresses.ready)
            if ready is not self.ready:
                self.ready = ready
                if ready:
                    self._first.set()
                self._changed()
            await asyncio.sleep(1.0 if ready else _POLL_SECONDS)

    async def stop(self) -> None:
        await self.supervisor.stop(_GRACE_SECONDS)


async def is_ready(host: str, port: int) -> bool:
    """Whether `GET /ready` answers 200 within a second."""
    try:
        async with asyncio.timeout(1.0):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(f"GET /ready HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except OSError:
        return False
    return b" 200 " in status
