"""How a command reaches control planes: istioctl's flags for ADS, `--monitoring` for HTTP, else the local mesh.

In: parsed flags. Out: a `Reach`. The flags that istioctl lets the environment set are set by the same variables.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from mizzen.cli import ads, options
from mizzen.errors import MizzenError

F = TypeVar("F", bound=Callable[..., Any])


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about control planes."""

    mesh: str = ""
    """Name of the local mesh, where more than one runs."""
    monitoring: tuple[str, ...] = ()
    """Addresses of monitoring ports."""
    access: ads.Access | None = None
    """The one control plane to ask over ADS."""

    @property
    def names_control_plane(self) -> bool:
        """Whether control planes are named, rather than left to the local mesh."""
        return bool(self.monitoring or self.access)


def reach_options(function: F) -> F:
    """The flags; the command is given `reach`, a `Reach`."""

    def build(**values: Any) -> Any:
        flags = {name: values.pop(name) for name in _NAMES}
        return function(reach=_build(mesh=values.pop("mesh"), monitoring=values.pop("monitoring"), **flags), **values)

    build.__doc__ = function.__doc__
    build.__name__ = function.__name__
    decorated: F = options.compose(_OPTIONS)(build)
    return decorated


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    options.mesh_option,
    click.option(
        "--monitoring",
        multiple=True,
        metavar="HOST:PORT",
        help="A control plane's monitoring address (15014), instead of the local mesh's; repeat for replicas.",
    ),
    click.option(
        "--xds-address",
        default="",
        envvar="ISTIOCTL_XDS_ADDRESS",
        metavar="HOST[:PORT]",
        help="Ask this control plane over ADS: with --token on 15012, with --cert-dir on 15011.",
    ),
    click.option(
        "--xds-port", default=15012, envvar="ISTIOCTL_XDS_PORT", show_default=True, help="Of an address that has none."
    ),
    click.option("--token", default="", metavar="FILE", help="A service account's token."),
    click.option(
        "--cert-dir",
        default="",
        envvar="ISTIOCTL_CERT_DIR",
        metavar="DIR",
        help="key.pem, cert-chain.pem, root-cert.pem.",
    ),
    click.option("--root", default="", metavar="FILE", help="Roots of the server's certificate, if not in --cert-dir."),
    click.option(
        "--authority", default="", envvar="ISTIOCTL_AUTHORITY", metavar="NAME", help="Name in the server's certificate."
    ),
    click.option("--insecure", is_flag=True, envvar="ISTIOCTL_INSECURE", help="Take any server certificate."),
    click.option("--plaintext", is_flag=True, envvar="ISTIOCTL_PLAINTEXT", help="Speak without TLS."),
    click.option("--timeout", default="30s", show_default=True, metavar="DURATION", help="How long to wait."),
)
_NAMES = (*("xds_address", "xds_port", "token", "cert_dir", "root", "authority", "insecure", "plaintext", "timeout"),)


def _build(
    *,
    mesh: str,
    monitoring: tuple[str, ...],
    xds_address: str,
    xds_port: int,
    token: str,
    cert_dir: str,
    root: str,
    authority: str,
    insecure: bool,
    plaintext: bool,
    timeout: str,
) -> Reach:
    if not xds_address:
        return Reach(mesh=mesh, monitoring=monitoring)
    if monitoring:
        raise MizzenError("either --xds-address or --monitoring, not both")
    if plaintext and cert_dir:
        raise MizzenError("either --plaintext or --cert-dir, not both")
    has_port = xds_address.rpartition(":")[2].isdigit() and not xds_address.endswith("]")
    access = ads.Access(
        address=xds_address if has_port else f"{xds_address}:{xds_port}",
        plaintext=plaintext,
        insecure=insecure,
        authority=authority,
        certificates=cert_dir,
        root=root,
        token=token,
        timeout=options.parse_seconds("--timeout", timeout),
    )
    return Reach(mesh=mesh, access=access)
