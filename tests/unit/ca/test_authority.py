"""Issuing and rotation in virtual time: at no moment do two workloads that renew in time distrust each other."""

import logging

import msgspec
import pytest
from certificate_requests import make_request, read_chain, verify_chain
from plugged_authority import Node, make_node

from mizzen import settings
from mizzen.ca import certificates
from mizzen.ca.authority import Authority, IssueError, State, start_self_signed
from mizzen.ca.certificates import Signer
from mizzen.ca.serving import ServingCertificate

START = 1_700_000_000.0
HOUR = 3600.0
DAY = 24 * HOUR
CART = "spiffe://cluster.local/ns/shop/sa/cart"
REQUEST = make_request()
CONFIG = settings.Authority(root_ttl=100 * DAY)


class Clock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def self_signed(clock: Clock, config: settings.Authority = CONFIG) -> Authority:
    state = start_self_signed("cluster.local", config, clock())
    return Authority(state, config, clock, self_signed_for="cluster.local", fresh=True)


def plugged(signer: Node, roots: list[Node], chain: list[Node] | None = None) -> Signer:
    certificate_chain = [node.certificate for node in chain or []]
    return certificates.build_signer(
        signer.certificate, signer.key, certificate_chain, [root.certificate for root in roots]
    )


class Workload:
    """Holds a chain and the bundle it came with; renews at half of its life, as agents do."""

    def __init__(self, authority: Authority, clock: Clock, ttl: float = 0, offset: float = 0) -> None:
        self._authority, self._clock, self._ttl = authority, clock, ttl
        self.renewals = -1
        self.renew()
        self._renew_at += offset

    def renew(self) -> None:
        self.chain, self.roots = read_chain(self._authority.issue(REQUEST, [CART], self._ttl))
        self.renewals += 1
        now = self._clock()
        self._renew_at = now + (certificates.expiry_of(self.chain[0]) - now) / 2

    def live(self) -> None:
        if self._clock() >= self._renew_at:
            self.renew()

    def trusts(self, peer: "Workload") -> bool:
        return verify_chain(peer.chain, self.roots, self._clock()) == [CART]


def test_chain_is_leaf_then_bundle_for_a_self_signed_root(clock: Clock) -> None:
    authority = self_signed(clock)
    answer = authority.issue(REQUEST, [CART])
    assert len(answer) == 2
    chain, roots = read_chain(answer)
    assert verify_chain(chain, roots, START) == [CART]
    assert certificates.encode(*roots) == authority.bundle


def test_chain_carries_each_intermediate_as_its_own_element(clock: Clock) -> None:
    root = make_node("root", START)
    middle = make_node("middle", START, root)
    issuing = make_node("issuing", START, middle)
    signer = plugged(issuing, [root], [middle])
    answer = Authority(State(current=signer), CONFIG, clock).issue(REQUEST, [CART])
    assert len(answer) == 4
    chain, roots = read_chain(answer)
    assert chain[1:] == [issuing.certificate, middle.certificate]
    assert verify_chain(chain, roots, START) == [CART]


def test_names_of_the_request_are_never_honoured(clock: Clock) -> None:
    greedy = make_request(names=("spiffe://cluster.local/ns/bank/sa/vault",), common_name="vault.bank")
    chain, roots = read_chain(self_signed(clock).issue(greedy, [CART]))
    assert verify_chain(chain, roots, START) == [CART]
    assert "vault" not in chain[0].subject.rfc4514_string()


@pytest.mark.parametrize(("ttl", "life"), [(0, DAY), (-5, DAY), (HOUR, HOUR), (90 * DAY, 90 * DAY)])
def test_requested_life_is_given_up_to_the_maximum(clock: Clock, ttl: float, life: float) -> None:
    chain, _ = read_chain(self_signed(clock).issue(REQUEST, [CART], ttl))
    assert certificates.expiry_of(chain[0]) == START + life


def test_longer_life_than_the_maximum_is_refused(clock: Clock) -> None:
    with pytest.raises(IssueError, match="greater than the max") as caught:
        self_signed(clock).issue(REQUEST, [CART], 90 * DAY + 1)
    assert caught.value.kind == "TTL_ERROR"


def test_bad_request_is_told_apart(clock: Clock) -> None:
    with pytest.raises(IssueError) as caught:
        self_signed(clock).issue("rubbish", [CART])
    assert caught.value.kind == "CSR_ERROR"


def test_nothing_is_issued_without_an_identity(clock: Clock) -> None:
    with pytest.raises(IssueError, match="needs an identity"):
        self_signed(clock).issue(REQUEST, [])


def test_expired_authority_issues_nothing(clock: Clock) -> None:
    authority = self_signed(clock)
    clock.now += 101 * DAY
    with pytest.raises(IssueError) as caught:
        authority.issue(REQUEST, [CART])
    assert caught.value.kind == "CA_NOT_READY"


def test_three_rotations_of_the_root_cost_no_trust(clock: Clock) -> None:
    authority = self_signed(clock, settings.Authority(root_ttl=40 * DAY))
    workloads = [Workload(authority, clock, offset=-index * HOUR) for index in range(0, 6, 2)]
    workloads.append(Workload(authority, clock, ttl=5 * DAY))
    signers = {certificates.fingerprint(authority.state.current.certificate)}
    largest = 0
    while clock.now < START + 120 * DAY:
        clock.now += 6 * HOUR
        if authority.wants_successor:
            authority.adopt(authority.build_successor())
        authority.advance()
        for workload in workloads:
            workload.live()
        newest, oldest = max(workloads, key=_start), min(workloads, key=_start)
        for one, other in ((newest, oldest), (oldest, newest), (newest, workloads[-1]), (workloads[-1], newest)):
            assert one.trusts(other)
        signers.add(certificates.fingerprint(authority.state.current.certificate))
        largest = max(largest, len(authority.state.roots))
    assert len(signers) == 4
    assert largest == 2
    assert len(authority.state.roots) == 1
    assert min(workload.renewals for workload in workloads) > 40


def _start(workload: Workload) -> float:
    return certificates.start_of(workload.chain[0])


def test_successor_signs_only_after_older_certificates_have_expired(clock: Clock) -> None:
    authority = self_signed(clock)
    Workload(authority, clock, ttl=3 * DAY)
    old = authority.state.current
    successor = authority.build_successor()
    authority.adopt(successor)
    assert authority.state.current is old
    assert set(authority.state.roots) == {*old.roots, *successor.roots}
    clock.now += 3 * DAY - 1
    # Whoever gets this certificate gets the new root with it, so the switch does not wait for it.
    Workload(authority, clock)
    authority.advance()
    assert authority.state.current is old
    clock.now += 1
    authority.advance()
    assert authority.state.current is successor


def test_old_root_is_trusted_until_its_last_certificate_expires(clock: Clock) -> None:
    authority = self_signed(clock)
    Workload(authority, clock)
    old = authority.state.current.roots[0]
    authority.adopt(authority.build_successor())
    clock.now += DAY - 1
    last = Workload(authority, clock)
    clock.now += 1
    authority.advance()
    assert authority.state.successor is None
    clock.now = certificates.expiry_of(last.chain[0]) - 1
    authority.advance()
    assert old in authority.state.roots
    assert last.trusts(Workload(authority, clock))
    clock.now += 120
    authority.advance()
    assert old not in authority.state.roots


def test_certificates_of_the_control_plane_itself_keep_no_root(clock: Clock) -> None:
    """They are exchanged at the switch, however long they would have lived."""
    authority = self_signed(clock, msgspec.structs.replace(CONFIG, root_overlap=10.0))
    own = ServingCertificate(authority, ("istiod.istio-system.svc",), clock)
    old = authority.state.current.roots[0]
    Workload(authority, clock, ttl=HOUR)
    authority.adopt(authority.build_successor())
    clock.now += 10
    authority.advance()
    leaf = certificates.decode(own.chain_pem, "own")[0]
    assert certificates.is_issued_by(leaf, authority.state.current.certificate)
    clock.now += HOUR + 120
    authority.advance()
    assert old not in authority.state.roots


def test_overlap_can_be_set(clock: Clock) -> None:
    authority = self_signed(clock, msgspec.structs.replace(CONFIG, root_overlap=10.0))
    Workload(authority, clock)
    successor = authority.build_successor()
    authority.adopt(successor)
    clock.now += 9
    authority.advance()
    assert authority.state.successor is successor
    clock.now += 1
    authority.advance()
    assert authority.state.current is successor


def test_new_intermediate_under_a_known_root_signs_at_once(clock: Clock) -> None:
    root = make_node("root", START)
    first, second = make_node("first", START, root), make_node("second", START, root)
    authority = Authority(State(current=plugged(first, [root])), CONFIG, clock)
    authority.adopt(plugged(second, [root]))
    assert authority.state.current.certificate == second.certificate
    assert authority.state.roots == (root.certificate,)


def test_plugged_root_that_is_exchanged_overlaps_with_the_old_one(clock: Clock) -> None:
    old, new = make_node("old", START), make_node("new", START)
    authority = Authority(State(current=plugged(old, [old])), CONFIG, clock, fresh=True)
    holder = Workload(authority, clock)
    authority.adopt(plugged(new, [new]))
    assert authority.state.current.certificate == old.certificate
    assert authority.state.roots == (old.certificate, new.certificate)
    clock.now += 12 * HOUR
    holder.renew()
    clock.now += 12 * HOUR
    authority.advance()
    assert authority.state.current.certificate == new.certificate
    assert holder.trusts(Workload(authority, clock))
    assert Workload(authority, clock).trusts(holder)


def test_root_that_the_operator_announced_long_ago_signs_at_once(clock: Clock) -> None:
    old, new = make_node("old", START), make_node("new", START)
    authority = Authority(State(current=plugged(old, [old])), CONFIG, clock, fresh=True)
    Workload(authority, clock)
    authority.adopt(plugged(old, [old, new]))
    assert authority.state.roots == (old.certificate, new.certificate)
    clock.now += 12 * HOUR
    Workload(authority, clock)
    authority.adopt(plugged(new, [old, new]))
    assert authority.state.current.certificate == old.certificate
    clock.now += 12 * HOUR
    authority.advance()
    assert authority.state.current.certificate == new.certificate
    assert set(authority.state.roots) == {old.certificate, new.certificate}


def test_operator_may_take_an_announcement_back(clock: Clock) -> None:
    old, new = make_node("old", START), make_node("new", START)
    authority = Authority(State(current=plugged(old, [old])), CONFIG, clock)
    authority.adopt(plugged(new, [new]))
    authority.adopt(plugged(old, [old]))
    assert authority.state.successor is None
    assert authority.state.roots == (old.certificate,)


def test_expired_root_is_followed_at_once(clock: Clock) -> None:
    authority = self_signed(clock)
    Workload(authority, clock)
    clock.now += 200 * DAY
    assert authority.wants_successor
    successor = authority.build_successor()
    authority.adopt(successor)
    assert authority.state.current is successor


def test_restart_in_the_middle_keeps_the_moment_of_the_switch(clock: Clock) -> None:
    before = self_signed(clock)
    Workload(before, clock)
    before.adopt(before.build_successor())
    moment = before.state.switch_at
    after = Authority(before.state, CONFIG, clock, self_signed_for="cluster.local")
    assert not after.wants_successor
    clock.now = moment - 1
    after.advance()
    assert after.state.successor is not None
    clock.now = moment
    after.advance()
    assert after.state.successor is None
    assert moment < after.state.retiring[0].until < moment + 2 * HOUR


def test_certificates_of_an_unknown_past_are_taken_to_live_as_long_as_they_may(clock: Clock) -> None:
    old, new = make_node("old", START, days=1000), make_node("new", START)
    authority = Authority(State(current=plugged(old, [old])), CONFIG, clock)
    authority.adopt(plugged(new, [new]))
    assert authority.state.switch_at == START + 90 * DAY


def test_listeners_hear_of_each_change_once(clock: Clock) -> None:
    authority = self_signed(clock)
    heard: list[State] = []
    Workload(authority, clock)
    authority.on_change(heard.append)
    authority.advance()
    Workload(authority, clock)
    authority.adopt(authority.build_successor())
    authority.advance()
    assert heard == [authority.state]


def test_rotation_is_logged_without_keys(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    authority = self_signed(clock)
    Workload(authority, clock)
    authority.adopt(authority.build_successor())
    clock.now += DAY
    authority.advance()
    clock.now += 2 * DAY
    authority.advance()
    words = [record.getMessage() for record in caplog.records]
    assert [word.split(" ", 2)[2].split(" and ")[0] for word in words] == [
        "is announced",
        "signs now",
        "is trusted no longer",
    ]
    assert "PRIVATE" not in caplog.text
    assert "PRIVATE" not in repr(authority.state)
