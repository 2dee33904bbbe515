"""One certificate authority for all replicas: who signs stands in a Secret, and how far a rotation is in another.

    files in ROOT_CA_DIR, else Secret `cacerts`    the operator's signer
    else Secret `istio-ca-secret`                  a self-signed root, made by whoever comes first, renewed with its key
    Secret `mizzen-authority`                      the state: which root signs, which are trusted, and until when

In: a client, the namespace of the control plane. Out: an `Authority` that stands where every replica stands: each of
them reads all of this every few seconds, makes the same transitions, and writes only what it has read; who is slower
reads again. A Secret that cannot be read is never replaced: a replica that starts does not serve, and one that runs
goes on as it was.
"""

import asyncio
import contextlib
import pathlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from mizzen import observe, settings
from mizzen.ca import certificates, store
from mizzen.ca.authority import Authority, State, start_self_signed
from mizzen.ca.certificates import Signer
from mizzen.ca.revocations import Revocations
from mizzen.control.authority_secrets import AuthoritySecrets, Found
from mizzen.errors import AuthorityError, MizzenError, SourceError
from mizzen.sources.kube.client import Client, Refused
from mizzen.sources.kube.reflector import Timing

_log = observe.scope("ca")

PLUGGED, SELF_SIGNED, STATE = "cacerts", "istio-ca-secret", "mizzen-authority"
SECRETS = (PLUGGED, SELF_SIGNED, STATE)
SELF_SIGNED_TYPE, STATE_TYPE = "istio.io/ca-root", "mizzen.io/authority"
GENERATED = "istio-generated"
"""A key of `cacerts`, or a file beside those of a plugged-in authority: it is self-signed all the same."""

_LOOK_EVERY = 5.0
_FINAL = (401, 403, 404, 405)
"""Refusals that waiting does not mend."""
_TRIES = 20
"""Looks in a row that others may spoil by writing."""


class _Source(NamedTuple):
    """Who is to sign, as somebody has written it down."""

    parts: Mapping[str, bytes]
    where: str
    secret: Found | None
    """The Secret of a self-signed root, to be renewed here; None for what is the operator's."""

    def __repr__(self) -> str:
        return f"_Source({self.where})"

    def decode(self) -> Signer:
        parts = self.parts
        if self.secret is not None and not parts.get(store.BUNDLE):
            parts = {**parts, store.BUNDLE: parts.get("ca-cert.pem", b"")}  # A self-signed root is its own.
        signer = store.decode_plugged(parts, self.where)
        if signer is None:
            raise AuthorityError(f"{self.where} holds no authority")
        return signer


class SharedAuthority:
    """An authority in Secrets; `open_shared` makes it, and somebody runs it."""

    def __init__(
        self, client: Client, config: settings.Authority, namespace: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._config, self._clock = config, clock
        self.revocations = Revocations(enabled=config.revocations, clock=clock)
        self._secrets = AuthoritySecrets(client, namespace)
        self._folder = pathlib.Path(config.directory)
        self._parts: Mapping[str, bytes] | None = None
        """What the source held when it was last looked at."""
        self._adopted: Signer | None = None
        """A signer that was taken in, as long as this is not written down."""
        self._kept: Found | None = None
        """The state's Secret as it was last read or written."""
        self._wake = asyncio.Event()
        self._trouble = ""

    # -- the beginning --------------------------------------------------------------------------------------------

    async def open(self, organisation: Callable[[], Awaitable[str]]) -> None:
        """Find the authority, or make it; raises AuthorityError for what is broken and SourceError without an answer.

        `organisation` is asked only where a root has to be made.
        """
        for _ in range(_TRIES):
            kept = await self._secrets.read(STATE)
            state = _decode(kept) if kept is not None else None
            source = await self._find_source()
            if state is None:
                await self._create_state(
                    self._state_of(source.decode()) if source else await self._make_root(await organisation())
                )
            elif source is None and _is_self_signed(state.current):
                await self._restore(state.current)
            else:
                self._begin(state, kept)
                return await self.look()
        raise AuthorityError("the Secrets of the authority are changed by somebody all the time")

    def _begin(self, state: State, kept: Found | None) -> None:
        self.authority = Authority(state, self._config, self._clock)
        self.authority.on_change(self._follow_state)
        self._kept = kept

    def _follow_state(self, state: State) -> None:
        self._wake.set()
        self.revocations.reconsider(state.authorities)

    async def _make_root(self, organisation: str) -> State:
        now = self._clock()
        _log.info("there is no authority yet; a root is made")
        state = await asyncio.to_thread(start_self_signed, organisation, self._config, now)
        # Nobody has a certificate by it, and that is known.
        return State(current=state.current, issued_until=now)

    def _state_of(self, signer: Signer) -> State:
        """Whoever signed by it before may have given certificates the longest life."""
        return State(current=signer, issued_until=min(self._clock() + self._config.max_ttl, signer.expiry))

    async def _create_state(self, state: State) -> None:
        await self._secrets.create(STATE, STATE_TYPE, {store.STATE: store.encode_state(state)})

    async def _restore(self, signer: Signer) -> None:
        """Write down a self-signed root of which only the state knows; what is the operator's is not ours to make."""
        if not _is_self_signed(signer):
            return
        data = store.encode_plugged(signer)
        if self._config.self_signed_in_cacerts:
            await self._secrets.create(PLUGGED, "Opaque", {**data, GENERATED: b""})
        else:
            await self._secrets.create(SELF_SIGNED, SELF_SIGNED_TYPE, {**data, "key.pem": b""})

    # -- a look ---------------------------------------------------------------------------------------------------

    async def _find_source(self) -> _Source | None:
        if not (self._folder / GENERATED).exists() and (parts := store.read_plugged(self._folder)):
            return _Source(parts, str(self._folder), None)
        plugged = await self._secrets.read(PLUGGED)
        if plugged is not None and GENERATED not in plugged.data:
            return _Source(plugged.data, plugged.where, None)
        own = await self._secrets.read(SELF_SIGNED) or plugged
        return _Source(own.data, own.where, own) if own is not None else None

    async def look(self) -> None:
        """Stand where the others stand, and make what transitions are due."""
        for _ in range(_TRIES):
            # The state first: a source that is read later is never older than what was decided on it.
            kept = await self._secrets.read(STATE)
            if kept is not None and (self._kept is None or kept.version != self._kept.version):
                self.authority.take(_decode(kept))
            self._kept = kept
            source, fault = await self._find_source(), None
            try:
                await (self._restore(self.authority.state.current) if source is None else self._follow(source))
            except AuthorityError as error:
                fault = error
            # What was announced before goes on, whatever became of its source.
            self.authority.advance()
            is_saved = await self._save()
            if fault is not None:
                raise fault
            if is_saved:
                return

    async def _follow(self, source: _Source) -> None:
        """Take in a signer that is another than at the last look; one that lags may not undo what others did."""
        if source.parts != self._parts:
            signer = source.decode()
            self._take_revocations(source, signer)
            if self._parts is None or _without_revocations(source.parts) != _without_revocations(self._parts):
                self._adopted = signer
            self._parts = source.parts
        if self._adopted is not None:
            self.authority.adopt(self._adopted)
        if source.secret is not None and self.authority.is_near_end and self._signs_by(source):
            await self._renew(source.secret)

    def _take_revocations(self, source: _Source, signer: Signer) -> None:
        if source.secret is None:
            where = f"{source.where}/{store.REVOCATIONS}"
            trusted = self.authority.state.authorities
            self.revocations.take(source.parts.get(store.REVOCATIONS, b""), signer, where, trusted)
        else:
            self.revocations.withdraw()

    def _signs_by(self, source: _Source) -> bool:
        current = self.authority.state.current
        return _is_self_signed(current) and source.decode().certificate == current.certificate

    async def _renew(self, secret: Found) -> None:
        """Renew the root, unless another replica does so just now."""
        renewed = certificates.renew_root(self.authority.state.current, self._config.root_ttl, self._clock())
        written = await self._secrets.replace(secret, store.encode_plugged(renewed))
        if written is not None:
            _log.info("the root is renewed until %s", renewed.certificate.not_valid_after_utc)
            self._parts, self._adopted = written.data, renewed
            self.authority.adopt(renewed)

    async def _save(self) -> bool:
        """Write down the state; whether all is written that there is to write."""
        self._wake.clear()
        content = store.encode_state(self.authority.state)
        if self._kept is None:
            written = await self._secrets.create(STATE, STATE_TYPE, {store.STATE: content})
        elif self._kept.data.get(store.STATE) == content:
            written = self._kept
        else:
            written = await self._secrets.replace(self._kept, {store.STATE: content})
        if written is None:
            return False
        self._kept, self._adopted = written, None
        return True

    # -- afterwards -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep up with the others and move on as time passes; ends only when cancelled."""
        interval, timing, failures = min(self._config.root_check_interval, _LOOK_EVERY), Timing(), 0
        while True:
            await self._wait(interval)
            self._wake.clear()
            try:
                await self.look()
                failures, self._trouble = 0, ""
            except (SourceError, AuthorityError) as error:
                failures += 1
                self._tell(error)
                await asyncio.sleep(timing.wait_after(failures))

    def _tell(self, error: MizzenError) -> None:
        if str(error) != self._trouble:
            _log.error("the authority stays as it was: %s", error)
        self._trouble = str(error)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


def _decode(kept: Found) -> State:
    return store.decode_state(kept.data.get(store.STATE, b""), kept.where)


def _without_revocations(parts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    return {name: content for name, content in parts.items() if name != store.REVOCATIONS}


def _is_self_signed(signer: Signer) -> bool:
    return not signer.intermediates


async def open_shared(
    client: Client,
    config: settings.Authority,
    namespace: str,
    organisation: Callable[[], Awaitable[str]],
    clock: Callable[[], float] = time.time,
) -> SharedAuthority:
    """The authority, once the API server answers. Raises AuthorityError for what waiting does not mend."""
    shared, timing, failures = SharedAuthority(client, config, namespace, clock), Timing(), 0
    while True:
        try:
            await shared.open(organisation)
            return shared
        except Refused as refusal:
            if refusal.status in _FINAL:
                message = f"the authority's Secrets in {namespace}: {refusal}; permit it, or keep files with --caDir"
                raise AuthorityError(message) from refusal
            error: SourceError = refusal
        except SourceError as unreachable:
            error = unreachable
        failures += 1
        wait = timing.wait_after(failures)
        _log.warning("the authority waits for the API server: %s; trying again in %.1f s", error, wait)
        await asyncio.sleep(wait)
