"""Where an API server is and who we are to it: from a kubeconfig, or from the files of a pod.

In: paths. Out: an `Access`: the address, what to trust, and `Credentials` that are asked before every request. Tokens
in files are read again whenever the file has changed, as the kubelet rotates them; a plugin (`exec`) is asked again
when what it gave expires. Fields as in kubeconfig v1 and `client.authentication.k8s.io/v1`.
"""

import asyncio
import base64
import binascii
import contextlib
import datetime
import json
import os
import pathlib
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import yaml

from mizzen.errors import SourceError

_IN_POD = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLUGIN_SECONDS = 60.0
_EARLY = 30.0
"""A plugin's token is renewed so many seconds before it ends."""
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Pair(NamedTuple):
    """A client certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Pair(…)"


class Given(NamedTuple):
    """What proves who we are, now."""

    token: str = ""
    pair: Pair | None = None

    def __repr__(self) -> str:
        return f"Given(token={'…' if self.token else ''!r}, pair={self.pair!r})"


class Credentials:
    """Who we are; what is given may change from request to request."""

    async def give(self) -> Given:
        """Raises SourceError when it cannot be had now."""
        return Given()

    def refused(self) -> None:
        """The server did not accept what was given last; forget it if there is a way to get another."""


class Fixed(Credentials):
    """The same for ever."""

    def __init__(self, given: Given) -> None:
        self._given = given

    async def give(self) -> Given:
        return self._given


class TokenFile(Credentials):
    """A token in a file that somebody else renews."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._token = ""

    async def give(self) -> Given:
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                self._token, self._stamp = self._path.read_text().strip(), stamp
        except (OSError, UnicodeError) as error:
            raise SourceError(f"the token of the API server cannot be read: {error}") from error
        return Given(self._token)

    def refused(self) -> None:
        self._stamp = None


class _Exec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A kubeconfig's `exec`."""

    command: str
    args: tuple[str, ...] | None = None
    env: tuple[Mapping[str, str], ...] | None = None
    api_version: str = _VERSIONS[0]
    provide_cluster_info: bool = False


class Plugin(Credentials):
    """A program that prints an ExecCredential."""

    def __init__(
        self, plugin: _Exec, folder: pathlib.Path, cluster: Mapping[str, Any], clock: Callable[[], float] = time.time
    ) -> None:
        self._plugin, self._folder, self._cluster, self._clock = plugin, folder, cluster, clock
        self._given: Given | None = None
        self._ends = float("inf")
        self._asking = asyncio.Lock()

    async def give(self) -> Given:
        async with self._asking:
            if self._given is None or self._clock() > self._ends - _EARLY:
                self._take(await self._run())
            assert self._given is not None
            return self._given

    def refused(self) -> None:
        self._given = None

    def _take(self, text: bytes) -> None:
        try:
            status = json.loads(text)["status"]
            pair = None
            if status.get("clientCertificateData"):
                pair = Pair(status["clientCertificateData"].encode(), status["clientKeyData"].encode())
            ends = status.get("expirationTimestamp")
            self._ends = datetime.datetime.fromisoformat(ends).timestamp() if ends else float("inf")
            self._given = Given(status.get("token", ""), pair)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._error("what it printed is no ExecCredential") from error

    async def _run(self) -> bytes:
        plugin = self._plugin
        spec = {"interactive": False, **({"cluster": self._cluster} if plugin.provide_cluster_info else {})}
        info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
        own = {one["name"]: one["value"] for one in plugin.env or ()}
        environment = {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        command = plugin.command
        if "/" in command and not os.path.isabs(command):
            command = str(self._folder / command)
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *(plugin.args or ()),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        try:
            async with asyncio.timeout(_PLUGIN_SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            raise self._error(f"no answer within {_PLUGIN_SECONDS:g} s") from None
        finally:
            await _end(process)  # Also when nobody waits for the answer any more: it may be a browser's login.
        if process.returncode:
            said = err.decode(errors="replace").strip().splitlines()
            raise self._error(said[-1] if said else f"it ended with {process.returncode}")
        return out

    def _error(self, why: str) -> SourceError:
        return SourceError(f"the credential plugin {self._plugin.command!r}: {why}")


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """An API server and the way in."""

    server: str
    """URL, without a slash at its end."""
    authority: bytes | None = None
    """PEM of whom to trust; None means the system's."""
    authority_file: pathlib.Path | None = None
    """Where it was read: a cluster exchanges its authority there while its pods run."""
    verify: bool = True
    server_name: str = ""
    """Expected in the server's certificate, if not the host of the URL."""
    credentials: Credentials
    namespace: str = "default"

    def read_authority(self) -> bytes | None:
        """What the file holds now; None where there is none, or nothing in it."""
        try:
            return (self.authority_file.read_bytes() or None) if self.authority_file is not None else None
        except OSError:
            return None

    def make_context(self, pair: Pair | None, authority: bytes | None) -> ssl.SSLContext:
        """TLS with this client certificate, trusting that authority (None: the system's).

        Raises SourceError for material that does not fit together.
        """
        try:
            context = ssl.create_default_context(cadata=authority.decode() if authority else None)
            if not self.verify:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if pair is not None:
                load_pair(context, pair.certificate, pair.key)
        except (ssl.SSLError, ValueError) as error:
            raise SourceError(f"TLS to {self.server}: {error}") from error
        return context


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show this certificate. OpenSSL takes certificates and keys from files alone: one in memory, as a container may
    have no folder to write to, and keys do not belong on disks."""
    with os.fdopen(os.memfd_create("pair"), "wb") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")


def in_cluster(environment: Mapping[str, str] = os.environ, folder: pathlib.Path = _IN_POD) -> Access:
    """The API server of the cluster that this pod is in. Raises SourceError outside of one."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise SourceError("not in a cluster: KUBERNETES_SERVICE_HOST is not set; name a kubeconfig")
    try:
        authority = (folder / "ca.crt").read_bytes()
        namespace = (folder / "namespace").read_text().strip() if (folder / "namespace").exists() else "default"
    except OSError as error:
        raise SourceError(f"the pod's service account cannot be read: {error}") from error
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(
        server=server,
        authority=authority,
        authority_file=folder / "ca.crt",
        credentials=TokenFile(folder / "token"),
        namespace=namespace or "default",
    )


def from_kubeconfig(path: pathlib.Path, context: str = "") -> Access:
    """The cluster and user of a context, or of the current one. Raises SourceError, naming what is missing."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise SourceError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise SourceError(f"{path}: not a kubeconfig")
    return _Kubeconfig(path, document).access(context or document.get("current-context") or "")


class _Kubeconfig:
    """One file; its relative paths are relative to it."""

    def __init__(self, path: pathlib.Path, document: Mapping[str, Any]) -> None:
        self._path, self._document = path, document

    def access(self, name: str) -> Access:
        if not name:
            raise SourceError(f"{self._path}: there is no current-context; name one")
        chosen = self._find("contexts", name, "context")
        cluster = self._find("clusters", str(chosen.get("cluster", "")), "cluster")
        user = self._find("users", str(chosen["user"]), "user") if chosen.get("user") else {}
        server = str(cluster.get("server", "")).rstrip("/")
        if not server.startswith(("https://", "http://")):
            raise SourceError(f"{self._path}: the cluster of context {name!r} has no server")
        return Access(
            server=server,
            authority=self._bytes(cluster, "certificate-authority"),
            authority_file=self._file(cluster, "certificate-authority"),
            verify=not cluster.get("insecure-skip-tls-verify", False),
            server_name=str(cluster.get("tls-server-name", "")),
            credentials=self._credentials(user, cluster),
            namespace=str(chosen.get("namespace") or "default"),
        )

    def _credentials(self, user: Mapping[str, Any], cluster: Mapping[str, Any]) -> Credentials:
        if isinstance(user.get("exec"), dict):
            return self._plugin(user["exec"], cluster)
        if user.get("auth-provider"):
            raise SourceError(f"{self._path}: auth-provider is gone from Kubernetes; use exec")
        certificate, key = self._bytes(user, "client-certificate"), self._bytes(user, "client-key")
        if (certificate is None) != (key is None):
            raise SourceError(f"{self._path}: a client certificate and its key come together")
        pair = Pair(certificate, key) if certificate is not None and key is not None else None
        if user.get("tokenFile") and pair is None and not user.get("token"):
            return TokenFile(self._path.parent / str(user["tokenFile"]))
        return Fixed(Given(str(user.get("token") or ""), pair))

    def _plugin(self, raw: Mapping[str, Any], cluster: Mapping[str, Any]) -> Credentials:
        try:
            plugin = msgspec.convert(raw, _Exec)
        except msgspec.ValidationError as error:
            raise SourceError(f"{self._path}: exec: {error}") from error
        if plugin.api_version not in _VERSIONS:
            raise SourceError(f"{self._path}: exec of {plugin.api_version!r}; known are {', '.join(_VERSIONS)}")
        told = {"server": cluster.get("server", "")}
        if authority := self._bytes(cluster, "certificate-authority"):
            told["certificate-authority-data"] = base64.b64encode(authority).decode()
        return Plugin(plugin, self._path.parent, told)

    def _find(self, section: str, name: str, field: str) -> Mapping[str, Any]:
        for one in self._document.get(section) or ():
            if isinstance(one, dict) and one.get("name") == name and isinstance(one.get(field), dict):
                found: Mapping[str, Any] = one[field]
                return found
        raise SourceError(f"{self._path}: {section} has no {name!r}")

    def _file(self, section: Mapping[str, Any], field: str) -> pathlib.Path | None:
        return (
            self._path.parent / str(section[field]) if section.get(field) and not section.get(f"{field}-data") else None
        )

    def _bytes(self, section: Mapping[str, Any], field: str) -> bytes | None:
        """What stands in FIELD-data, or in the file that FIELD names."""
        try:
            if data := section.get(f"{field}-data"):
                return base64.b64decode(data, validate=True)
            if file := self._file(section, field):
                return file.read_bytes()
        except (OSError, binascii.Error, TypeError, ValueError) as error:
            raise SourceError(f"{self._path}: {field}: {error}") from error
        return None
