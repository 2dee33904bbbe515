"""The authority's files.

Two folders, which may be one. The operator's (`ROOT_CA_DIR`, read only) holds a plugged-in authority under Istio's
names: `ca-cert.pem`, `ca-key.pem`, `root-cert.pem` and `cert-chain.pem`, or `tls.crt`, `tls.key` and `ca.crt`; with
either there may be `ca-crl.pem`. Mizzen's own holds `authority.json` (mode 0600): the whole state, so that a rotation
survives a restart at any moment; `root-cert.pem`, the bundle for everybody, unless an operator's file of that name is
there; and `revoked.pem`, the revocation lists in force, while there are any.
Every file is written beside its place and renamed into it. Secrets of Kubernetes hold the same under the same names.
"""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Mapping

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from mizzen.ca import certificates
from mizzen.ca.authority import Retiring, State
from mizzen.ca.certificates import Signer
from mizzen.errors import AuthorityError

STATE = "authority.json"
BUNDLE = "root-cert.pem"
REVOKED = "revoked.pem"
REVOCATIONS = "ca-crl.pem"

_ISTIO = ("ca-cert.pem", "ca-key.pem", BUNDLE)
_CHAIN = "cert-chain.pem"
_TLS = ("tls.crt", "tls.key", "ca.crt")

SIGNER_FILES = (*_ISTIO[:2], *_TLS[:2])
"""Any of these files makes a folder that of a plugged-in authority."""
PLUGGED_FILES = (*_ISTIO, _CHAIN, *_TLS, REVOCATIONS)
"""All files that such a folder may have."""


def find_plugged(folder: pathlib.Path) -> Signer | None:
    """The operator's authority in `folder`; None when there is none, AuthorityError when it is incomplete or broken."""
    return decode_plugged(read_plugged(folder), str(folder))


def read_plugged(folder: pathlib.Path) -> Mapping[str, bytes]:
    """The files in `folder` that a plugged-in authority has, by name."""
    return {name: _read(folder / name) for name in PLUGGED_FILES if (folder / name).exists()}


def decode_plugged(parts: Mapping[str, bytes], where: str) -> Signer | None:
    """The operator's authority of these files or keys of a Secret; None and AuthorityError as for `find_plugged`."""
    for names in (_ISTIO, _TLS):
        if names[0] in parts or names[1] in parts:
            return _decode_parts(parts, names, where)
    return None


def _decode_parts(parts: Mapping[str, bytes], names: tuple[str, str, str], where: str) -> Signer:
    missing = [name for name in names if name not in parts]
    if missing:
        raise AuthorityError(f"the authority in {where} lacks {', '.join(missing)}")
    cert_name, key_name, root_name = names
    own = certificates.decode(parts[cert_name], f"{where}/{cert_name}")
    roots = certificates.decode(parts[root_name], f"{where}/{root_name}")
    chain = certificates.decode(parts.get(_CHAIN, b""), f"{where}/{_CHAIN}")
    if not own or not roots:
        raise AuthorityError(f"{where}/{root_name if own else cert_name} is empty")
    key = certificates.decode_key(parts[key_name], f"{where}/{key_name}")
    try:
        return certificates.build_signer(own[0], key, (*own[1:], *chain), roots)
    except (AuthorityError, ValueError, UnsupportedAlgorithm, x509.DuplicateExtension) as error:
        # Extensions are parsed only when somebody asks for them.
        raise AuthorityError(f"{where}: {error}") from error


def encode_plugged(signer: Signer) -> dict[str, bytes]:
    """The files or keys of a Secret from which `decode_plugged` reads the signer."""
    return {
        "ca-cert.pem": certificates.encode(signer.certificate),
        "ca-key.pem": certificates.encode_key(signer.key),
        _CHAIN: certificates.encode(*signer.intermediates),
        BUNDLE: certificates.encode(*signer.roots),
    }


class _SignerFile(msgspec.Struct, rename="camel"):
    certificate: str
    key: str
    intermediates: str
    roots: str

    def __repr__(self) -> str:
        return "_SignerFile([redacted])"


class _RetiringFile(msgspec.Struct, rename="camel"):
    root: str
    until: float


class _StateFile(msgspec.Struct, rename="camel"):
    current: _SignerFile
    successor: _SignerFile | None = None
    switch_at: float = 0.0
    issued_until: float = 0.0
    retiring: list[_RetiringFile] = msgspec.field(default_factory=list)


def load_state(folder: pathlib.Path) -> State | None:
    """The state that an earlier process left in `folder`; None when there is none."""
    path = folder / STATE
    return decode_state(_read(path), str(path)) if path.exists() else None


def decode_state(content: bytes, where: str) -> State:
    """A state as `encode_state` wrote it; raises AuthorityError for anything else."""
    try:
        found = msgspec.json.decode(content, type=_StateFile)
    except (msgspec.DecodeError, UnicodeError):
        # Without the cause: it could quote a key.
        raise AuthorityError(f"{where} is not an authority's state; restore it, or remove it to start anew") from None
    return State(
        current=_decode_signer(found.current, where),
        successor=_decode_signer(found.successor, where) if found.successor else None,
        switch_at=found.switch_at,
        issued_until=found.issued_until,
        retiring=tuple(
            Retiring(root=root, until=each.until)
            for each in found.retiring
            for root in certificates.decode(each.root.encode(), where)
        ),
    )


def encode_state(state: State) -> bytes:
    """The whole state as JSON, private keys included; equal states are equal bytes."""
    content = _StateFile(
        current=_encode_signer(state.current),
        successor=_encode_signer(state.successor) if state.successor else None,
        switch_at=state.switch_at,
        issued_until=state.issued_until,
        retiring=[
            _RetiringFile(root=certificates.encode(each.root).decode(), until=each.until) for each in state.retiring
        ],
    )
    return msgspec.json.format(msgspec.json.encode(content))


def save_state(folder: pathlib.Path, state: State) -> None:
    """Write the state, and the bundle beside it, so that a crash leaves the old or the new one."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise AuthorityError(f"cannot make {folder}: {error.strerror}") from error
    replace_file(folder / STATE, encode_state(state), 0o600)
    if not (folder / _ISTIO[0]).exists():
        replace_file(folder / BUNDLE, certificates.encode(*state.roots), 0o644)


def save_revocations(folder: pathlib.Path, pem: bytes) -> None:
    """Write the revocation lists in force beside the bundle; no file says that there are none."""
    if pem:
        return replace_file(folder / REVOKED, pem, 0o644)
    try:
        (folder / REVOKED).unlink(missing_ok=True)
    except OSError as error:
        raise AuthorityError(f"cannot remove {folder / REVOKED}: {error.strerror}") from error


def _encode_signer(signer: Signer) -> _SignerFile:
    return _SignerFile(
        certificate=certificates.encode(signer.certificate).decode(),
        key=certificates.encode_key(signer.key).decode(),
        intermediates=certificates.encode(*signer.intermediates).decode(),
        roots=certificates.encode(*signer.roots).decode(),
    )


def _decode_signer(found: _SignerFile, where: str) -> Signer:
    own = certificates.decode(found.certificate.encode(), where)
    roots = certificates.decode(found.roots.encode(), where)
    if not own or not roots:
        raise AuthorityError(f"{where} lacks a certificate")
    key = certificates.decode_key(found.key.encode(), where)
    return certificates.build_signer(own[0], key, certificates.decode(found.intermediates.encode(), where), roots)


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AuthorityError(f"cannot read {path}: {error.strerror}") from error


def replace_file(path: pathlib.Path, content: bytes, mode: int) -> None:
    """Put `content` at `path` in one step; nobody ever reads half of it, nor with a wider mode than `mode`."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise AuthorityError(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise AuthorityError(f"cannot write {path}: {error.strerror}") from error
