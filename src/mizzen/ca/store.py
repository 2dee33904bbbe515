"""The authority's files.

Two folders, which may be one. The operator's (`ROOT_CA_DIR`, read only) holds a plugged-in authority under Istio's
names: `ca-cert.pem`, `ca-key.pem`, `root-cert.pem` and `cert-chain.pem`, or `tls.crt`, `tls.key` and `ca.crt`. Mizzen's
own holds `authority.json` (mode 0600): the whole state, so that a rotation survives a restart at any moment; and
`root-cert.pem`, the bundle for everybody, unless an operator's file of that name is there.
Every file is written beside its place and renamed into it.
"""

import contextlib
import os
import pathlib
import tempfile

import msgspec

from mizzen.ca import certificates
from mizzen.ca.authority import Retiring, State
from mizzen.ca.certificates import Signer
from mizzen.errors import AuthorityError

STATE = "authority.json"
BUNDLE = "root-cert.pem"

_ISTIO = ("ca-cert.pem", "ca-key.pem", BUNDLE)
_CHAIN = "cert-chain.pem"
_TLS = ("tls.crt", "tls.key", "ca.crt")

SIGNER_FILES = (*_ISTIO[:2], *_TLS[:2])
"""Any of these files makes a folder that of a plugged-in authority."""
PLUGGED_FILES = (*_ISTIO, _CHAIN, *_TLS)
"""All files that such a folder may have."""


def find_plugged(folder: pathlib.Path) -> Signer | None:
    """The operator's authority in `folder`; None when there is none, AuthorityError when it is incomplete or broken."""
    for names in (_ISTIO, _TLS):
        if (folder / names[0]).exists() or (folder / names[1]).exists():
            return _load_plugged(folder, names)
    return None


def _load_plugged(folder: pathlib.Path, names: tuple[str, str, str]) -> Signer:
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise AuthorityError(f"the authority in {folder} lacks {', '.join(missing)}")
    cert_file, key_file, root_file = (folder / name for name in names)
    own = certificates.decode(_read(cert_file), str(cert_file))
    roots = certificates.decode(_read(root_file), str(root_file))
    chain_file = folder / _CHAIN
    chain = certificates.decode(_read(chain_file), str(chain_file)) if chain_file.exists() else ()
    if not own or not roots:
        raise AuthorityError(f"{cert_file if not own else root_file} is empty")
    key = certificates.decode_key(_read(key_file), str(key_file))
    try:
        return certificates.build_signer(own[0], key, (*own[1:], *chain), roots)
    except AuthorityError as error:
        raise AuthorityError(f"{folder}: {error}") from error


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
    if not path.exists():
        return None
    try:
        found = msgspec.json.decode(_read(path), type=_StateFile)
    except msgspec.DecodeError:
        # Without the cause: it could quote a key.
        raise AuthorityError(f"{path} is not an authority's state; restore it, or remove it to start anew") from None
    return State(
        current=_decode_signer(found.current, path),
        successor=_decode_signer(found.successor, path) if found.successor else None,
        switch_at=found.switch_at,
        issued_until=found.issued_until,
        retiring=tuple(
            Retiring(root=certificates.decode(each.root.encode(), str(path))[0], until=each.until)
            for each in found.retiring
        ),
    )


def save_state(folder: pathlib.Path, state: State) -> None:
    """Write the state, and the bundle beside it, so that a crash leaves the old or the new one."""
    content = _StateFile(
        current=_encode_signer(state.current),
        successor=_encode_signer(state.successor) if state.successor else None,
        switch_at=state.switch_at,
        issued_until=state.issued_until,
        retiring=[
            _RetiringFile(root=certificates.encode(each.root).decode(), until=each.until) for each in state.retiring
        ],
    )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise AuthorityError(f"cannot make {folder}: {error.strerror}") from error
    replace_file(folder / STATE, msgspec.json.format(msgspec.json.encode(content)), 0o600)
    if not (folder / _ISTIO[0]).exists():
        replace_file(folder / BUNDLE, certificates.encode(*state.roots), 0o644)


def _encode_signer(signer: Signer) -> _SignerFile:
    return _SignerFile(
        certificate=certificates.encode(signer.certificate).decode(),
        key=certificates.encode_key(signer.key).decode(),
        intermediates=certificates.encode(*signer.intermediates).decode(),
        roots=certificates.encode(*signer.roots).decode(),
    )


def _decode_signer(found: _SignerFile, path: pathlib.Path) -> Signer:
    what = str(path)
    own = certificates.decode(found.certificate.encode(), what)
    roots = certificates.decode(found.roots.encode(), what)
    if not own or not roots:
        raise AuthorityError(f"{path} lacks a certificate")
    key = certificates.decode_key(found.key.encode(), what)
    return certificates.build_signer(own[0], key, certificates.decode(found.intermediates.encode(), what), roots)


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
