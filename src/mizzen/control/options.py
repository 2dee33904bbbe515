"""What `mizzen discovery` was told on its command line, as values.

The names are istiod's flags. An address is `HOST:PORT` or `:PORT`, which means every interface; empty switches a
server off. Everything that the environment decides is in `mizzen.settings`.
"""

from typing import NamedTuple

import msgspec

from mizzen.errors import UsageError
from mizzen.sources.kube.access import Access


class Address(NamedTuple):
    """Where a server listens; an empty host means every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def grpc(self) -> str:
        """The address as gRPC takes it."""
        return str(self) if self.host else f"[::]:{self.port}"


def parse_address(flag: str, text: str) -> Address | None:
    """The address of a flag; None where it is empty."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise UsageError(f"{flag}: {text!r} is not HOST:PORT or :PORT")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The command line."""

    config: tuple[str, ...] = ()
    """Files and folders of objects; a later one replaces objects of an earlier one."""
    kubernetes: Access | None = None
    """The API server whose objects are served, beside those of `config`."""
    plain: Address | None = Address("127.0.0.1", 15010)
    """`--grpcAddr`: no credentials, hence no secrets."""
    secure: Address | None = Address("", 15012)
    """`--secureGRPCAddr`: TLS, callers show a token."""
    mutual: Address | None = Address("", 15011)
    """`--mutualGRPCAddr`: TLS, callers show a certificate."""
    monitoring: Address | None = Address("", 15014)
    """`--monitoringAddr`."""
    http: Address | None = Address("", 8080)
    """`--httpAddr`."""
    https: Address | None = None
    """`--httpsAddr`: admission webhooks; served where there is a `kubernetes` to ask them."""
    introspection: Address | None = None
    """`--ctrlz_port` at `--ctrlz_address`: no credentials; bind it to loopback."""
    mesh_config: str = ""
    """`--meshConfig`: a file with the mesh config, for want of the ConfigMap."""
    domain: str = "cluster.local"
    cluster_id: str = "Kubernetes"
    ca_dir: str = ""
    """`--caDir`: where the authority keeps its state; it may hold a plugged-in authority too."""
    token_keys: tuple[str, ...] = ()
    """`--tokenKey`: files with keys that sign the tokens of callers."""
    token_issuer: str = ""
    """`--tokenIssuer`: who signs them; empty means a local mesh's own."""
