"""What signs, which roots are trusted, and the way from one root to the next.

In: signers (made here or plugged in by the operator), certificate requests with identities already proved, and a
clock. Out: certificate chains, and the bundle of roots that every workload must trust. Files are kept by `store`,
the wire is spoken by `service`.

A change of root goes through three states, so that at no moment two workloads distrust each other:

    announced   the successor's root is in the bundle, the old signer still signs
    switched    the successor signs; the old root stays in the bundle
    retired     every certificate of the old signer has expired; its root leaves the bundle

The announcement lasts `root_overlap` seconds or, by default, until every certificate that was issued before it has
expired: whoever holds a certificate then has renewed it since, and renewal brings the bundle. A root that is only
renewed, with its name and its key, needs none. Several processes may share one state: each takes what another wrote.
"""

import asyncio
import datetime
from collections.abc import Callable, Sequence

import msgspec
from cryptography import x509

from mizzen import observe, settings
from mizzen.ca import certificates
from mizzen.ca.certificates import Signer
from mizzen.errors import AuthorityError

_log = observe.scope("ca")

_SKEW = 60.0
"""Seconds that an old root stays beyond its last certificate, for clocks that are behind."""

_ROUNDING = 3600.0
"""Seconds by which the written moment may be later than the true one."""


class IssueError(AuthorityError):
    """A certificate was not issued; `kind` is the label that Istio's metrics give the reason."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Retiring(msgspec.Struct, frozen=True, kw_only=True):
    """A root that signs no more but is still trusted."""

    root: x509.Certificate
    until: float


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Where the authority stands between two roots."""

    current: Signer
    successor: Signer | None = None
    switch_at: float = 0.0
    """The moment from which the successor signs."""
    retiring: tuple[Retiring, ...] = ()
    issued_until: float = 0.0
    """No certificate issued so far outlives this moment; 0 where nobody knows."""

    @property
    def roots(self) -> tuple[x509.Certificate, ...]:
        """Every root that must be trusted now: the signer's own first."""
        found = [*self.current.roots]
        found += self.successor.roots if self.successor else ()
        found += (retiring.root for retiring in self.retiring)
        return tuple(dict.fromkeys(found))

    @property
    def authorities(self) -> tuple[x509.Certificate, ...]:
        """Every certificate that signs for somebody who is to be believed now, as far as it is known here."""
        signers = (self.current, self.successor) if self.successor else (self.current,)
        chains = (each for signer in signers for each in signer.authorities)
        return tuple(dict.fromkeys((*chains, *self.roots)))


def announce(state: State, successor: Signer, switch_at: float) -> State:
    """The successor's roots join the bundle; one announced before and never used gives way."""
    return msgspec.structs.replace(state, successor=successor, switch_at=switch_at)


def switch(state: State, until: float) -> State:
    """The successor signs from now on; roots that it does not bring stay trusted until `until`."""
    if state.successor is None:
        return state
    old = (root for root in state.current.roots if root not in state.successor.roots)
    kept = (each for each in state.retiring if each.root not in state.successor.roots)
    return State(
        current=state.successor,
        retiring=(*kept, *(Retiring(root=root, until=until) for root in old)),
        issued_until=state.issued_until,
    )


def retire(state: State, now: float) -> State:
    """Old roots whose time has come leave the bundle."""
    left = tuple(each for each in state.retiring if each.until > now)
    return state if len(left) == len(state.retiring) else msgspec.structs.replace(state, retiring=left)


def merge(own: State, theirs: State) -> State:
    """What another process has written down, with what only this one knows: how long its own certificates live."""
    known = [signer for signer in (own.current, own.successor) if signer is not None]

    def as_known(found: Signer) -> Signer:
        """The same signer stays the same object, so that nobody takes it for a new one."""
        return next((signer for signer in known if _same(signer, found)), found)

    successor = as_known(theirs.successor) if theirs.successor is not None else None
    waits = successor is not None and successor is own.successor
    return msgspec.structs.replace(
        theirs,
        current=as_known(theirs.current),
        successor=successor,
        switch_at=max(own.switch_at, theirs.switch_at) if waits else theirs.switch_at,
        issued_until=max(own.issued_until, theirs.issued_until),
    )


class Authority:
    """The one owner of the state: issues certificates, takes in signers, and moves on as time passes."""

    def __init__(
        self,
        state: State,
        config: settings.Authority,
        clock: Callable[[], float],
        *,
        self_signed_for: str | None = None,
        fresh: bool = False,
    ) -> None:
        """`self_signed_for` names the organisation of new roots; None when the operator brings them.

        `fresh` says that the current signer has signed nothing yet. Otherwise the certificates of an earlier process
        live as long as its state says, or else as long as they may.
        """
        self._state = state
        self._config = config
        self._clock = clock
        self._organisation = self_signed_for
        self._listeners: list[Callable[[State], None]] = []
        now = clock()
        known = now if fresh else state.issued_until
        self._latest = known or min(now + config.max_ttl, state.current.expiry)
        self._trusted_from = {certificates.fingerprint(root): now for root in state.roots}
        if state.successor is not None:
            self._trusted_from |= {
                certificates.fingerprint(root): state.switch_at
                for root in state.successor.roots
                if root not in state.current.roots
            }

    @property
    def state(self) -> State:
        """The state now."""
        return self._state

    @property
    def bundle(self) -> bytes:
        """All trusted roots as PEM."""
        return certificates.encode(*self._state.roots)

    def on_change(self, listener: Callable[[State], None]) -> None:
        """Call `listener` with every new state."""
        self._listeners.append(listener)

    # -- issuing --------------------------------------------------------------------------------------------------

    def issue(self, request_pem: str, identities: Sequence[str], ttl: float = 0, record: str = "") -> tuple[str, ...]:
        """A chain for a proved caller: leaf, each intermediate, and the bundle of roots as one text.

        `record` says which workload the caller is, where the mesh knows. Without a `ttl` the default one is given; one
        above the maximum is refused, not cut.
        """
        if not identities:
            raise IssueError("CERT_GEN_ERROR", "a certificate needs an identity")
        if ttl > self._config.max_ttl:
            message = f"requested TTL {ttl:g}s is greater than the max allowed TTL {self._config.max_ttl:g}s"
            raise IssueError("TTL_ERROR", message)
        try:
            request = certificates.check_request(request_pem)
        except AuthorityError as error:
            raise IssueError("CSR_ERROR", str(error)) from error
        lifetime = ttl if ttl > 0 else min(self._config.default_ttl, self._config.max_ttl)
        chain = self._sign(request.key, identities, lifetime, request.has_common_name, record)
        self._remember(certificates.expiry_of(chain[0]))
        texts = [certificates.encode(certificate).decode() for certificate in chain]
        return (*texts, self.bundle.decode())

    def issue_serving(
        self, key: certificates.PrivateKey, names: Sequence[str], lifetime: float
    ) -> tuple[x509.Certificate, ...]:
        """A chain without roots for a server of the control plane, which takes another when the signer changes."""
        return self._sign(key.public_key(), names, lifetime, common_name=False)

    def _sign(
        self, key: certificates.PublicKey, names: Sequence[str], lifetime: float, common_name: bool, record: str = ""
    ) -> tuple[x509.Certificate, ...]:
        now, signer = self._clock(), self._state.current
        if signer.expiry <= now:
            raise IssueError("CA_NOT_READY", "the authority's own certificate has expired")
        try:
            leaf = certificates.build_leaf(signer, key, names, now + lifetime, now, common_name, record)
        except (ValueError, TypeError) as error:
            raise IssueError("CERT_GEN_ERROR", f"the certificate cannot be made: {error}") from error
        return (leaf, *signer.intermediates)

    def _remember(self, expiry: float) -> None:
        """Know how long certificates live, also after a restart, without writing that down for each of them."""
        self._latest = max(self._latest, expiry)
        if self._latest > self._state.issued_until:
            self._change(msgspec.structs.replace(self._state, issued_until=self._latest + _ROUNDING))

    # -- rotation -------------------------------------------------------------------------------------------------

    def adopt(self, signer: Signer) -> None:
        """Take in a signer: at once when its root has been trusted long enough, else after an announcement."""
        state = self._state
        if _same(signer, state.current):
            self._change(msgspec.structs.replace(state, successor=None, switch_at=0.0))
            return
        if state.successor is not None and _same(signer, state.successor):
            return
        now = self._clock()
        if certificates.is_same_root(signer, state.current):
            self._change(switch(announce(state, signer, now), self._latest + _SKEW))
            return
        root = certificates.fingerprint(signer.roots[0])
        # Never so late that the old signer runs out first.
        latest = now + max(0.0, state.current.expiry - now) / 2
        switch_at = min(self._trusted_from.get(root, self._trusted_if_announced(now)), latest)
        self._change(announce(state, signer, max(now, switch_at)))
        self.advance()

    def take(self, state: State) -> None:
        """Stand where another process that shares the state has come to."""
        state = merge(self._state, state)
        self._latest = max(self._latest, state.issued_until)
        self._change(state)

    def plug_in(self, signer: Signer) -> None:
        """Take in the operator's signer; from now on roots are the operator's affair."""
        self._organisation = None
        self.adopt(signer)

    def _trusted_if_announced(self, now: float) -> float:
        """The moment from which everybody who holds a certificate trusts a root that joins the bundle now."""
        return now + self._config.root_overlap if self._config.root_overlap else self._latest

    def advance(self) -> None:
        """Make the transitions that are due."""
        now = self._clock()
        state = self._state
        if state.successor is not None and now >= state.switch_at:
            state = switch(state, self._latest + _SKEW)
        self._change(retire(state, now))

    @property
    def wants_successor(self) -> bool:
        """Whether a self-signed root is near its end and none is announced to follow it."""
        return self._organisation is not None and self.is_near_end

    @property
    def is_near_end(self) -> bool:
        """Whether the signer's life is nearly over and none is announced to follow it."""
        if self._state.successor is not None:
            return False
        root = self._state.current.certificate
        remaining = certificates.expiry_of(root) - self._clock()
        life = certificates.expiry_of(root) - certificates.start_of(root)
        return remaining < life * self._config.root_grace_percentile / 100

    def build_successor(self) -> Signer:
        """A new self-signed root; costs a tenth of a second, so not on the event loop."""
        organisation = self._organisation or ""
        return certificates.build_root(organisation, self._config.root_ttl, self._config.root_key_bits, self._clock())

    async def run(self, interval: float) -> None:
        """Move on as time passes, looking every `interval` seconds; ends only when cancelled."""
        while True:
            if self.wants_successor:
                self.adopt(await asyncio.to_thread(self.build_successor))
            self.advance()
            await asyncio.sleep(interval)

    def _change(self, state: State) -> None:
        if state == self._state:
            return
        before, self._state = self._state, state
        self._remember_roots(state)
        _log_transition(before, state)
        for listener in self._listeners:
            listener(state)

    def _remember_roots(self, state: State) -> None:
        moment = self._trusted_if_announced(self._clock())
        names = [certificates.fingerprint(root) for root in state.roots]
        self._trusted_from = {name: self._trusted_from.get(name, moment) for name in names}


def _same(one: Signer, other: Signer) -> bool:
    return one.certificate == other.certificate and one.roots == other.roots


def _log_transition(before: State, after: State) -> None:
    if after.successor is not None and after.successor is not before.successor:
        moment = datetime.datetime.fromtimestamp(after.switch_at, datetime.UTC).isoformat()
        _log.info("root %s is announced and signs from %s on", _label(after.successor.roots[0]), moment)
    if after.current is not before.current:
        _log.info("root %s signs now", _label(after.current.roots[0]))
    for root in before.roots:
        if root not in after.roots:
            _log.info("root %s is trusted no longer", _label(root))


def _label(root: x509.Certificate) -> str:
    return certificates.fingerprint(root)[:16]


def start_self_signed(organisation: str, config: settings.Authority, now: float) -> State:
    """The state of a new authority with a root of its own."""
    return State(current=certificates.build_root(organisation, config.root_ttl, config.root_key_bits, now))
