"""`mizzen ca`: the mesh's certificates on disk.

In: folders and files. Out: a root, an intermediate in the layout that `mizzen discovery` and Istio are plugged into
(`ca-cert.pem`, `ca-key.pem`, `root-cert.pem`, `cert-chain.pem`), a workload's certificate, or what a file holds and
whether it would be believed. Keys are written with mode 0600 and never printed; nothing is overwritten unasked.
"""

import pathlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from mizzen.cli import options, render, targets
from mizzen.cli.groups import AliasGroup
from mizzen.diagnose.table import Table
from mizzen.errors import AuthorityError, MizzenError

if TYPE_CHECKING:
    from cryptography import x509

    from mizzen.ca.certificates import Signer

_CERTIFICATE, _KEY, _ROOT, _CHAIN = "ca-cert.pem", "ca-key.pem", "root-cert.pem", "cert-chain.pem"
_ROOT_KEY, _LEAF_KEY = "root-key.pem", "key.pem"
_COLUMNS = ("#", "TYPE", "NAME", "SERIAL NUMBER", "NOT BEFORE", "NOT AFTER", "VALID")

_folder = click.Path(file_okay=False, path_type=pathlib.Path)
_file = click.Path(dir_okay=False, path_type=pathlib.Path)


class _Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """Go durations, as everywhere in Istio."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from mizzen import words

        if isinstance(value, float):
            return value
        try:
            return words.parse_duration(str(value))
        except ValueError as bad:
            self.fail(str(bad), param, ctx)


_force = click.option("--force", is_flag=True, help="Replace files that are there.")
_organisation = click.option(
    "--organisation", default="cluster.local", show_default=True, help="The organisation in the subject."
)
_key_bits = click.option("--key-bits", type=click.IntRange(2048, 8192), default=4096, show_default=True)


@click.group(cls=AliasGroup)
def ca() -> None:
    """Make and inspect the mesh's certificates."""


@ca.command()
@click.argument("directory", type=_folder)
@_organisation
@_key_bits
@click.option("--lifetime", type=_Duration(), default="87600h", show_default=True)
@_force
def root(directory: pathlib.Path, organisation: str, key_bits: int, lifetime: float, force: bool) -> None:
    """Make a root: root-cert.pem and root-key.pem. Keep its key away from the mesh."""
    from mizzen.ca import certificates

    signer = certificates.build_root(organisation, lifetime, key_bits, time.time())
    _write(
        directory,
        {_ROOT: certificates.encode(signer.certificate), _ROOT_KEY: certificates.encode_key(signer.key)},
        force=force,
    )


@ca.command()
@click.argument("directory", type=_folder)
@click.option("--root", "root_folder", type=_folder, required=True, help="Folder that `mizzen ca root` made.")
@_organisation
@_key_bits
@click.option("--lifetime", type=_Duration(), default="17520h", show_default=True)
@_force
def intermediate(
    directory: pathlib.Path,
    root_folder: pathlib.Path,
    organisation: str,
    key_bits: int,
    lifetime: float,
    force: bool,
) -> None:
    """Make an authority for one mesh under a root, as files to plug in (ROOT_CA_DIR, the Secret `cacerts`)."""
    from mizzen.ca import certificates, offline

    parent = _load_root(root_folder)
    signer = offline.build_intermediate(parent, organisation, lifetime, key_bits, time.time())
    _write(
        directory,
        {
            _CERTIFICATE: certificates.encode(signer.certificate),
            _KEY: certificates.encode_key(signer.key),
            _CHAIN: certificates.encode(*signer.intermediates),
            _ROOT: certificates.encode(*signer.roots),
        },
        force=force,
    )


@ca.command()
@click.argument("identity", metavar="spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT")
@click.option("--ca", "authority", type=_folder, required=True, help="Folder of the authority that signs.")
@click.option("--out", "directory", type=_folder, default=".", show_default=True, help="Folder to write to.")
@click.option("--dns", multiple=True, metavar="NAME", help="A further DNS name; repeatable.")
@click.option("--ttl", type=_Duration(), default="24h", show_default=True)
@_force
def issue(
    identity: str,
    authority: pathlib.Path,
    directory: pathlib.Path,
    dns: tuple[str, ...],
    ttl: float,
    force: bool,
) -> None:
    """Issue a workload's certificate: key.pem, cert-chain.pem and root-cert.pem."""
    from cryptography.hazmat.primitives.asymmetric import ec

    from mizzen.ca import certificates
    from mizzen.model.spiffe import parse_spiffe

    if parse_spiffe(identity) is None:
        raise AuthorityError(f"{identity!r} is not of the form spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT")
    signer = _load_authority(authority)
    now = time.time()
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = certificates.build_leaf(signer, key.public_key(), (identity, *dns), now + ttl, now)
    _write(
        directory,
        {
            _LEAF_KEY: certificates.encode_key(key),
            _CHAIN: certificates.encode(leaf, *signer.intermediates),
            _ROOT: certificates.encode(*signer.roots),
        },
        force=force,
    )


@ca.command()
@click.argument("file", type=_file, required=False)
@options.mesh_option
@options.output_option("table", "pem", default="table")
def show(file: pathlib.Path | None, mesh: str, output: str) -> None:
    """Show the certificates in a file, or the local mesh's roots without one."""
    from mizzen.ca import certificates

    path = str(file) if file else _mesh_roots(mesh)
    found = certificates.decode(targets.read_file(path), path)
    if output == "pem":
        click.echo(certificates.encode(*found).decode(), nl=False)
        return
    now = time.time()
    rows = tuple((str(index), *_describe(certificate, now)) for index, certificate in enumerate(found))
    click.echo(render.render_table(Table(columns=_COLUMNS, rows=rows)), nl=False)


@ca.command()
@click.argument("file", type=_file)
@click.option("--roots", type=_file, default=None, help="Roots to trust; the local mesh's without this.")
@click.option("--identity", default="", metavar="URI", help="The SPIFFE identity that the certificate must have.")
@options.mesh_option
def verify(file: pathlib.Path, roots: pathlib.Path | None, identity: str, mesh: str) -> None:
    """Check that a certificate chain would be believed; exit 1 and the reasons if not."""
    from mizzen.ca import certificates, offline

    trusted = str(roots) if roots else _mesh_roots(mesh)
    chain = certificates.decode(targets.read_file(str(file)), str(file))
    anchors = certificates.decode(targets.read_file(trusted), trusted)
    faults = list(offline.find_faults(chain, anchors, identity, time.time()))
    if faults:
        raise AuthorityError(f"{file}: {'; '.join(faults)}")
    click.echo(f"{file}: valid for {', '.join(offline.names(chain[0])) or 'no name'}")


def _describe(certificate: "x509.Certificate", now: float) -> Iterator[str]:
    from mizzen.ca import certificates, offline

    self_signed = certificate.issuer == certificate.subject
    kind = ("Root" if self_signed else "Intermediate") if offline.is_authority(certificate) else "Leaf"
    yield kind
    yield ",".join(offline.names(certificate)) or certificate.subject.rfc4514_string()
    yield f"{certificate.serial_number:x}"
    yield f"{certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}"
    yield f"{certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
    valid = certificates.start_of(certificate) < now < certificates.expiry_of(certificate)
    yield "true" if valid else "false"


def _load_root(folder: pathlib.Path) -> "Signer":
    from mizzen.ca import certificates

    paths = [folder / name for name in (_ROOT, _ROOT_KEY)]
    if not all(path.exists() for path in paths):
        raise AuthorityError(f"{folder} holds no root ({_ROOT}, {_ROOT_KEY}); make one with `mizzen ca root {folder}`")
    own = certificates.decode(targets.read_file(str(paths[0])), str(paths[0]))
    key = certificates.decode_key(targets.read_file(str(paths[1])), str(paths[1]))
    if not own:
        raise AuthorityError(f"{paths[0]} is empty")
    return certificates.build_signer(own[0], key, own, own)


def _load_authority(folder: pathlib.Path) -> "Signer":
    """A plugged-in authority, or the one that a Mizzen control plane keeps for itself."""
    from mizzen.ca import store

    plugged = store.find_plugged(folder)
    if plugged is not None:
        return plugged
    state = store.load_state(folder)
    if state is None:
        raise AuthorityError(
            f"{folder} holds no authority ({_CERTIFICATE}, {_KEY}, {_ROOT}); make one with `mizzen ca intermediate`"
        )
    return state.current


def _mesh_roots(mesh: str) -> str:
    path = targets.read_state(mesh).control_plane.root
    if not path:
        raise MizzenError("the local mesh has no root certificate yet")
    return path


def _write(directory: pathlib.Path, files: dict[str, bytes], *, force: bool) -> None:
    """All files or none; keys readable by the owner alone."""
    from mizzen.ca import store

    present = [name for name in files if (directory / name).exists()]
    if present and not force:
        raise AuthorityError(f"{directory} has {', '.join(present)} already; --force replaces them")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AuthorityError(f"cannot make {directory}: {error.strerror}") from error
    for name, content in files.items():
        store.replace_file(directory / name, content, 0o600 if name.endswith("key.pem") else 0o644)
        click.echo(f"wrote {directory / name}", err=True)
