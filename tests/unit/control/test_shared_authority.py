"""Replicas over the same Secrets: one root, one rotation, one bundle, whatever is written in between."""

import asyncio
import pathlib
import shutil

import msgspec
import pytest
from certificate_requests import make_request, read_chain, verify_chain
from plugged_authority import make_node, revoke, write_authority
from secret_server import SecretServer

from mizzen import settings
from mizzen.ca import certificates, store
from mizzen.control.shared_authority import SharedAuthority, open_shared
from mizzen.errors import AuthorityError
from mizzen.sources.kube.client import Refused, Unreachable

START = 1_700_000_000.0
DAY = 86_400.0
YEAR = 365 * DAY
CART = "spiffe://cluster.local/ns/shop/sa/cart"
REQUEST = make_request()


class Replicas:
    """Control planes that share a server and a clock."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.server, self.now = SecretServer(), START
        self.config = settings.Authority(directory=str(folder / "cacerts"))
        self.all: list[SharedAuthority] = []

    async def start(self) -> SharedAuthority:
        async def organisation() -> str:
            return "cluster.local"

        found = await open_shared(self.server, self.config, "istio-system", organisation, lambda: self.now)
        self.all.append(found)
        return found

    async def look(self) -> None:
        for each in self.all:
            await each.look()

    def bundles(self) -> set[bytes]:
        return {each.authority.bundle for each in self.all}


@pytest.fixture
def replicas(tmp_path: pathlib.Path) -> Replicas:
    return Replicas(tmp_path)


def chain_of(shared: SharedAuthority):
    return read_chain(shared.authority.issue(REQUEST, [CART]))


def parts_of(node, roots=None) -> dict[str, bytes]:
    return {
        "ca-cert.pem": node.pem,
        "ca-key.pem": certificates.encode_key(node.key),
        "cert-chain.pem": b"",
        "root-cert.pem": b"".join(each.pem for each in roots or [node]),
    }


async def test_replicas_that_start_together_have_one_root_in_one_secret(replicas: Replicas) -> None:
    await asyncio.gather(*(replicas.start() for _ in range(3)))
    assert len(replicas.bundles()) == 1
    data = replicas.server.data("istio-ca-secret")
    assert data["root-cert.pem"] == data["ca-cert.pem"] == replicas.bundles().pop()
    assert set(data) == {"ca-cert.pem", "ca-key.pem", "cert-chain.pem", "key.pem", "root-cert.pem"}
    made = replicas.server.objects["/api/v1/namespaces/istio-system/secrets/istio-ca-secret"]
    assert made["type"] == "istio.io/ca-root"
    for one in replicas.all:
        for other in replicas.all:
            assert verify_chain(chain_of(one)[0], other.authority.state.roots, START) == [CART]


async def test_nothing_is_written_while_nothing_changes(replicas: Replicas) -> None:
    await replicas.start()
    await replicas.start()
    before = list(replicas.server.writes)
    for _ in range(5):
        await replicas.look()
    assert replicas.server.writes == before


async def test_a_restart_and_a_lost_secret_keep_the_root(replicas: Replicas) -> None:
    first = await replicas.start()
    replicas.all.clear()
    assert (await replicas.start()).authority.bundle == first.authority.bundle
    replicas.server.remove("istio-ca-secret")
    await replicas.look()
    assert replicas.server.data("istio-ca-secret")["root-cert.pem"] == first.authority.bundle
    replicas.server.remove("istio-ca-secret")
    assert (await replicas.start()).authority.bundle == first.authority.bundle
    replicas.server.remove("mizzen-authority")
    await replicas.look()
    assert len(replicas.bundles()) == 1


async def test_a_root_that_istiod_made_is_taken_over(replicas: Replicas) -> None:
    made = make_node("istiod's", START)
    replicas.server.put("istio-ca-secret", {**parts_of(made), "root-cert.pem": b"", "key.pem": b""})
    shared = await replicas.start()
    assert shared.authority.bundle == made.pem


async def test_the_operators_authority_comes_before_a_self_signed_one(replicas: Replicas) -> None:
    await replicas.start()
    replicas.all.clear()
    root = make_node("root", START)
    signer = make_node("signer", START, root)
    replicas.server.put("cacerts", {**parts_of(signer, [root]), "cert-chain.pem": signer.pem})
    replicas.server.remove("mizzen-authority")
    shared = await replicas.start()
    assert shared.authority.bundle == root.pem
    assert [name for _, name in replicas.server.writes if name == "cacerts"] == []


async def test_files_come_before_secrets(replicas: Replicas) -> None:
    root = make_node("root", START)
    write_authority(pathlib.Path(replicas.config.directory), root, [], [root])
    replicas.server.put("cacerts", parts_of(make_node("other", START)))
    assert (await replicas.start()).authority.bundle == root.pem
    assert {name for _, name in replicas.server.writes} == {"mizzen-authority"}


async def test_a_generated_root_is_kept_in_cacerts_where_that_is_asked_for(replicas: Replicas) -> None:
    replicas.config = msgspec.structs.replace(replicas.config, self_signed_in_cacerts=True)
    first = await replicas.start()
    second = await replicas.start()
    assert "istio-generated" in replicas.server.data("cacerts")
    assert "/api/v1/namespaces/istio-system/secrets/istio-ca-secret" not in replicas.server.objects
    replicas.now += 9 * YEAR
    await replicas.look()
    renewed = replicas.server.data("cacerts")
    assert "istio-generated" in renewed
    assert certificates.decode(renewed["ca-cert.pem"], "x")[0] == first.authority.state.current.certificate
    assert second.authority.bundle == first.authority.bundle


@pytest.mark.parametrize(
    "lacking",
    [("ca-key.pem",), ("ca-cert.pem",), ("root-cert.pem",), ("ca-cert.pem", "ca-key.pem")],
    ids=lambda names: "+".join(names),
)
async def test_half_a_set_ends_the_start_and_is_not_touched(replicas: Replicas, lacking: tuple[str, ...]) -> None:
    parts = {name: value for name, value in parts_of(make_node("x", START)).items() if name not in lacking}
    replicas.server.put("cacerts", parts)
    with pytest.raises(AuthorityError, match="cacerts"):
        await replicas.start()
    assert not replicas.server.writes


@pytest.mark.parametrize("name", ["istio-ca-secret", "mizzen-authority"])
async def test_a_secret_that_cannot_be_read_is_never_replaced(replicas: Replicas, name: str) -> None:
    shared = await replicas.start()
    bundle = shared.authority.bundle
    replicas.server.put(name, {key: b"rubbish" for key in replicas.server.data(name)})
    before = list(replicas.server.writes)
    with pytest.raises(AuthorityError, match=name):
        await shared.look()
    replicas.now += 9.5 * YEAR
    with pytest.raises(AuthorityError, match=name):
        await shared.look()
    with pytest.raises(AuthorityError, match=name):
        await replicas.start()
    assert replicas.server.writes == before
    assert shared.authority.bundle == bundle


async def test_the_root_is_renewed_once_with_its_key_and_nobody_is_distrusted(replicas: Replicas) -> None:
    await replicas.start()
    await replicas.start()
    old = replicas.bundles().pop()
    key = replicas.server.data("istio-ca-secret")["ca-key.pem"]
    replicas.now += 7.9 * YEAR
    await replicas.look()
    assert replicas.bundles() == {old}
    replicas.now += 0.2 * YEAR
    before, _ = chain_of(replicas.all[0])
    trusting_the_old = replicas.all[0].authority.state.roots
    written = len([each for each in replicas.server.writes if each[1] == "istio-ca-secret"])
    for _ in range(3):
        await replicas.look()
    assert len([each for each in replicas.server.writes if each[1] == "istio-ca-secret"]) == written + 1
    data = replicas.server.data("istio-ca-secret")
    assert data["ca-key.pem"] == key
    assert data["ca-cert.pem"] != old
    (both,) = replicas.bundles()
    assert both == data["ca-cert.pem"] + old, "the old root stays for a while"
    for shared in replicas.all:
        after, roots = chain_of(shared)
        assert verify_chain(before, roots, replicas.now) == [CART]
        assert verify_chain(after, trusting_the_old, replicas.now) == [CART]
        assert verify_chain(before, certificates.decode(data["ca-cert.pem"], "x"), replicas.now) == [CART]
    replicas.now += 2 * DAY
    await replicas.look()
    assert replicas.bundles() == {data["ca-cert.pem"]}


async def test_two_that_renew_at_once_end_with_the_same_root(replicas: Replicas) -> None:
    one, other = await replicas.start(), await replicas.start()
    replicas.now += 9 * YEAR
    await asyncio.gather(one.look(), other.look())
    await replicas.look()
    assert len([each for each in replicas.server.writes if each == ("PATCH", "istio-ca-secret")]) == 1
    assert len(replicas.bundles()) == 1


async def test_another_authority_is_announced_by_all_before_any_signs_by_it(replicas: Replicas) -> None:
    for _ in range(3):
        await replicas.start()
    old, _ = chain_of(replicas.all[2])
    await replicas.look()
    new = make_node("new", START)
    replicas.now += 3600
    replicas.server.put("cacerts", parts_of(new))
    await replicas.look()
    await replicas.look()
    (both,) = replicas.bundles()
    assert new.pem in both
    for moment in range(30):
        replicas.now += 3600
        await replicas.look()
        signed, roots = chain_of(replicas.all[moment % 3])
        assert verify_chain(signed, roots, replicas.now) == [CART]
        if replicas.now < certificates.expiry_of(old[0]):
            assert verify_chain(old, roots, replicas.now) == [CART]
            assert not certificates.is_issued_by(signed[0], new.certificate), "not everybody trusts it yet"
    assert certificates.is_issued_by(signed[0], new.certificate)
    replicas.now += 3 * DAY
    await replicas.look()
    assert replicas.bundles() == {new.pem}


async def test_what_was_announced_goes_on_while_the_operators_secret_is_broken(replicas: Replicas) -> None:
    shared = await replicas.start()
    new = make_node("new", START)
    replicas.server.put("cacerts", parts_of(new))
    await shared.look()
    replicas.server.put("cacerts", {**parts_of(new), "ca-key.pem": b"broken"})
    for _ in range(30):
        replicas.now += 3600
        with pytest.raises(AuthorityError):
            await shared.look()
    signed, _ = chain_of(shared)
    assert certificates.is_issued_by(signed[0], new.certificate)
    with pytest.raises(AuthorityError):
        await shared.look()
    stored = store.decode_state(replicas.server.data("mizzen-authority")["authority.json"], "x")
    assert stored.issued_until == shared.authority.state.issued_until, "a restart knows how long it lives"


async def test_a_replica_that_starts_within_the_overlap_stands_where_the_others_stand(replicas: Replicas) -> None:
    first = await replicas.start()
    new = make_node("new", START)
    chain_of(first)
    replicas.server.put("cacerts", parts_of(new))
    await replicas.look()
    late = await replicas.start()
    assert late.authority.bundle == first.authority.bundle
    assert late.authority.state.switch_at == first.authority.state.switch_at > START
    assert not certificates.is_issued_by(chain_of(late)[0][0], new.certificate)


async def test_files_that_one_replica_sees_later_do_not_undo_what_another_announced(
    replicas: Replicas, tmp_path: pathlib.Path
) -> None:
    old, new = make_node("old", START), make_node("new", START)
    write_authority(tmp_path / "cacerts", old, [], [old])
    behind = await replicas.start()
    replicas.config = msgspec.structs.replace(replicas.config, directory=str(tmp_path / "ahead"))
    write_authority(tmp_path / "ahead", old, [], [old])
    ahead = await replicas.start()
    write_authority(tmp_path / "ahead", new, [], [new])
    await ahead.look()
    announced = ahead.authority.state.switch_at
    for _ in range(3):
        behind.authority.issue(REQUEST, [CART])
        await replicas.look()
    assert all(each.authority.state.successor is not None for each in replicas.all)
    assert {each.authority.state.switch_at for each in replicas.all} == {announced}


async def test_what_others_write_in_between_is_kept(replicas: Replicas) -> None:
    one, other = await replicas.start(), await replicas.start()
    one.authority.issue(REQUEST, [CART], 80 * DAY)
    other.authority.issue(REQUEST, [CART], 40 * DAY)
    replicas.server.put("cacerts", parts_of(make_node("new", START)))
    await asyncio.gather(one.look(), other.look())
    await replicas.look()
    latest = START + 80 * DAY
    for each in replicas.all:
        assert each.authority.state.issued_until >= latest
        assert each.authority.state.successor is not None
    stored = store.decode_state(replicas.server.data("mizzen-authority")["authority.json"], "x")
    assert stored.issued_until >= latest


async def test_it_waits_for_a_server_that_is_away_but_not_for_permission(replicas: Replicas) -> None:
    replicas.server.refusals = [Unreachable("away"), Refused(503, "starting")]
    await replicas.start()
    replicas.server.refusals = [Refused(403, "forbidden")]
    with pytest.raises(AuthorityError, match="forbidden; permit it"):
        await replicas.start()


async def test_a_running_one_goes_on_while_the_server_is_away_and_writes_what_it_issued_afterwards(
    replicas: Replicas,
) -> None:
    shared = await replicas.start()
    shared.authority.issue(REQUEST, [CART], 80 * DAY)
    replicas.server.refusals = [Unreachable("away")]
    with pytest.raises(Unreachable):
        await shared.look()
    assert chain_of(shared)
    await shared.look()
    stored = store.decode_state(replicas.server.data("mizzen-authority")["authority.json"], "x")
    assert stored.issued_until >= START + 80 * DAY


async def test_replicas_follow_the_revocation_lists_of_the_operators_secret(replicas: Replicas, caplog) -> None:
    made = make_node("operator's", START)
    one, two = revoke(made, START, [1]), revoke(made, START, [1, 2])
    replicas.server.put("cacerts", {**parts_of(made), "ca-crl.pem": one})
    first, second = await replicas.start(), await replicas.start()
    assert first.revocations.pem == second.revocations.pem == one
    writes = list(replicas.server.writes)
    for pem, in_force in ((two, two), (b"nonsense", two), (b"", b"")):
        replicas.server.put("cacerts", {**parts_of(made), "ca-crl.pem": pem})
        await replicas.look()
        assert first.revocations.pem == second.revocations.pem == in_force
    assert replicas.server.writes == writes, "who signs is the same"
    assert "Secret istio-system/cacerts/ca-crl.pem holds no whole PEM of a CRL; the last good" in caplog.text


async def test_a_new_revocation_list_does_not_undo_what_another_replica_announced(replicas: Replicas) -> None:
    old, new = make_node("old", START), make_node("new", START)
    replicas.server.put("cacerts", parts_of(old))
    ahead, behind = await replicas.start(), await replicas.start()
    write_authority(pathlib.Path(replicas.config.directory), new, [], [new, old])
    await ahead.look()
    assert ahead.authority.state.successor is not None
    shutil.rmtree(replicas.config.directory)
    replicas.server.put("cacerts", {**parts_of(old), "ca-crl.pem": revoke(old, START) + revoke(new, START)})
    await behind.look()
    assert behind.revocations.pem
    assert behind.authority.state.successor is not None


async def test_a_bad_revocation_list_keeps_a_replica_from_starting(replicas: Replicas) -> None:
    made = make_node("operator's", START)
    replicas.server.put("cacerts", {**parts_of(made), "ca-crl.pem": revoke(make_node("x", START), START)})
    with pytest.raises(AuthorityError, match="no CRL signed by CN=operator's"):
        await replicas.start()


async def test_a_self_signed_authority_says_that_nothing_is_revoked(replicas: Replicas) -> None:
    assert (await replicas.start()).revocations.pem == b""


async def test_lists_that_lack_the_root_of_before_wait_until_that_has_retired(replicas: Replicas) -> None:
    replicas.config = msgspec.structs.replace(replicas.config, root_overlap=100.0)
    shared = await replicas.start()
    made = make_node("operator's", START)
    replicas.server.put("cacerts", {**parts_of(made), "ca-crl.pem": revoke(made, START)})
    await replicas.look()
    assert shared.revocations.pem == b""
    for seconds in (101, 2 * DAY):
        replicas.now = START + seconds
        await replicas.look()
    assert shared.authority.state.roots == (made.certificate,)
    assert shared.revocations.pem
