"""What a plugged-in authority has revoked: its `ca-crl.pem`, checked before anybody is told.

In: the file's content, the signer of the same files, and which authorities are trusted. Out: the PEM in force, and
whether a certificate is revoked. Envoy checks whole chains: once there is any list, it refuses every certificate below
an authority that has none. Hence what is not put in force, while the last good content stays:

    unreadable, or without the signer's own lists    bad; where nothing is in force yet, there is no authority
    without the list of another trusted authority    waits until that list comes, or that authority has retired

A list that has expired makes Envoy refuse everything, too, but no older one would be better: the log says so.
"""

import contextlib
import datetime
import pathlib
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from mizzen import observe, revocation_lists
from mizzen.ca import store
from mizzen.ca.certificates import Signer
from mizzen.errors import AuthorityError

_log = observe.scope("ca")
_EXPIRY = observe.Gauge(
    "mizzen_crl_expiry_timestamp", "When the first revocation list expires, in seconds since the epoch; 0 without one."
)

Lists = Sequence[x509.CertificateRevocationList]
Authorities = Iterable[x509.Certificate]


class _Content(msgspec.Struct, frozen=True):
    """What the file holds."""

    pem: bytes
    lists: Lists
    where: str


class Revocations:
    """The lists in force; replaced as a whole."""

    def __init__(self, *, enabled: bool, clock: Callable[[], float] = time.time) -> None:
        self._enabled, self._clock = enabled, clock
        self._in_force: _Content | None = None
        self._waiting: _Content | None = None
        self._listeners: list[Callable[[bytes], None]] = []

    @property
    def pem(self) -> bytes | None:
        """What everybody who trusts the authority is to know; empty for nothing, None where that is not known."""
        return self._in_force.pem if self._in_force is not None else None

    def on_change(self, listener: Callable[[bytes], None]) -> None:
        """Call `listener` with every new content."""
        self._listeners.append(listener)

    def read_plugged(self, folder: pathlib.Path, trusted: Authorities = ()) -> Signer | None:
        """The operator's signer in a folder, None without one, after `take` of what stands beside it there."""
        parts = store.read_plugged(folder)
        signer = store.decode_plugged(parts, str(folder))
        if signer is not None:
            self.take(parts.get(store.REVOCATIONS, b""), signer, str(folder / store.REVOCATIONS), trusted)
        return signer

    def take(self, pem: bytes, signer: Signer, where: str, trusted: Authorities = ()) -> None:
        """Put a content in force that stands beside `signer`, if it is good; empty means that nothing is revoked.

        Raises AuthorityError where it is bad and nothing is in force, and where what stays in force would make
        everybody refuse what `signer` signs.
        """
        if not self._enabled:
            return
        self._waiting = None
        try:
            found = _Content(pem, revocation_lists.decode(pem, where), where)
            _check_coverage(found, signer.authorities)
        except AuthorityError as bad:
            if self._in_force is None:
                raise
            self._stay(f"{bad}; the last good revocation lists stay in force", signer)
            return
        try:
            _check_coverage(found, (*signer.roots, *trusted))
        except AuthorityError as early:
            self._stay(f"{early}, which is still trusted; until then it is not in force", signer)
            self._waiting = found
            return
        self._put(found)

    def _stay(self, why: str, signer: Signer) -> None:
        """Tell why a content is not put in force, unless the signer beside it cannot do without."""
        if self._in_force is not None:
            try:
                _check_coverage(self._in_force, signer.authorities)
            except AuthorityError as unfit:
                raise AuthorityError(f"{why}, and those do not fit: {unfit}") from unfit
        _log.error("%s", why)

    def reconsider(self, trusted: Authorities) -> None:
        """Others are trusted now: put in force what waited for that."""
        if self._waiting is not None:
            with contextlib.suppress(AuthorityError):
                _check_coverage(self._waiting, trusted)
                self._put(self._waiting)

    def withdraw(self) -> None:
        """The authority is self-signed, and revokes nothing."""
        if self._enabled:
            self._put(_Content(b"", (), ""))

    def _put(self, found: _Content) -> None:
        if not found.lists:
            found = msgspec.structs.replace(found, pem=b"")
        before, self._in_force, self._waiting = self.pem, found, None
        ends = (each.next_update_utc.timestamp() for each in found.lists if each.next_update_utc is not None)
        _EXPIRY.set(min(ends, default=0))
        if found.pem == before:
            return
        if found.pem or before:
            revoked = sum(len(each) for each in found.lists)
            _log.info("%d revocation lists are in force, with %d certificates", len(found.lists), revoked)
        for text in _describe(found, self._clock()):
            _log.warning("%s", text)
        for listener in self._listeners:
            listener(found.pem)

    def find_revoked(self, chain: Iterable[x509.Certificate]) -> x509.Certificate | None:
        """The first certificate of the chain that is revoked."""
        lists = self._in_force.lists if self._in_force is not None else ()
        for certificate in chain if lists else ():
            for each in lists:
                if (
                    each.issuer == certificate.issuer
                    and each.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None
                ):
                    return certificate
        return None


def _check_coverage(content: _Content, authorities: Authorities) -> None:
    """Raises AuthorityError unless there are no lists at all, or one of every authority."""
    if not content.lists:
        return
    for authority in authorities:
        if not any(_is_list_of(each, authority) for each in content.lists):
            raise AuthorityError(f"{content.where} holds no CRL signed by {authority.subject.rfc4514_string()}")
        if not _may_sign_lists(authority):
            name = authority.subject.rfc4514_string()
            raise AuthorityError(f"{content.where} is of no use: {name} may not sign CRLs (keyUsage)")


def _is_list_of(found: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    try:
        return found.issuer == authority.subject and found.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return False


def _may_sign_lists(authority: x509.Certificate) -> bool:
    try:
        return authority.extensions.get_extension_for_class(x509.KeyUsage).value.crl_sign
    except x509.ExtensionNotFound:
        return True


def _describe(content: _Content, now: float) -> Iterable[str]:
    """What an operator should know of lists that are taken all the same."""
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    where = content.where
    for each in content.lists:
        issuer = each.issuer.rfc4514_string()
        if each.next_update_utc is not None and each.next_update_utc <= moment:
            yield f"the CRL of {issuer} in {where} has expired: proxies refuse everything below it"
        if each.last_update_utc > moment:
            yield f"the CRL of {issuer} in {where} is of the future: until then proxies refuse everything below it"
