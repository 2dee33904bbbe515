"""Private keys stay out of what objects print and of what errors say."""

import asyncio
import base64
import pathlib
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from plugged_authority import make_node, write_authority
from secrecy import Known
from secret_server import SecretServer

from mizzen import observe, settings
from mizzen.agent.identity import keys as agent_keys
from mizzen.agent.wasm.modules import Wanted
from mizzen.api.kube.data import Secret
from mizzen.api.meta import ObjectMeta
from mizzen.ca import certificates, identity, serving, store, tokens
from mizzen.ca.authority import Authority, State, start_self_signed
from mizzen.cli.app import main
from mizzen.control import authority as running_authority
from mizzen.control import authority_secrets, shared_authority
from mizzen.local.pods.volumes import File
from mizzen.sources import files
from mizzen.xds.identity import Credentials

NOW = 1_700_000_000.0
CONFIG = settings.Authority(root_ttl=86_400.0)
CURVE = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = certificates.encode_key(CURVE).decode()
RSA_PEM = certificates.encode_key(RSA).decode()
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlLW9mLWEtdG9rZW4"
LOGINS = '{"auths":{"registry.example":{"auth":"dXNlcjpwYXNzd29yZC1rbm93bg=="}}}'
BROKEN = PEM.replace("\n-----END", "=!\n-----END").replace("MIG", "MXG", 1)


@pytest.fixture
def known() -> Known:
    found = Known()
    found.add_key("curve", PEM)
    found.add_key("rsa", RSA_PEM)
    found.add_broken_key("broken", BROKEN)
    found.add_text("token", TOKEN)
    found.add_text("logins", LOGINS)
    return found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("curve", PEM),
        ("curve", base64.b64encode(PEM.encode()).decode()),
        ("curve", "x" + base64.b64encode(b"k: " + PEM.encode()).decode()),
        ("curve", "".join(PEM.splitlines()[1:-1])),
        ("curve", str(CURVE.private_numbers().private_value)),
        ("rsa", RSA_PEM.replace("\n", "\\n")),
        ("rsa", base64.b64encode(RSA_PEM.encode()).decode()),
        ("rsa", RSA_PEM[900:1300]),
        ("token", f"authorization: Bearer {TOKEN}"),
        ("logins", base64.b64encode(LOGINS.encode()).decode()),
    ],
)
def test_the_search_finds_what_it_looks_for(known: Known, name: str, text: str) -> None:
    assert name in known.found_in(text)


def test_the_search_does_not_take_certificates_for_keys(known: Known) -> None:
    signer = certificates.Signer(
        certificate=make_node("x", NOW).certificate,
        key=CURVE,
        intermediates=(),
        roots=(make_node("y", NOW).certificate,),
    )
    for key in (CURVE, RSA):
        leaf = certificates.build_leaf(signer, key.public_key(), ("spiffe://a/ns/b/sa/c",), NOW + 60, NOW)
        pem = certificates.encode(leaf).decode()
        assert known.found_in(pem + base64.b64encode(pem.encode()).decode()) == []


def holders(tmp_path: pathlib.Path) -> list[object]:
    """Everything that holds a secret for longer than a moment."""
    node = make_node("root", NOW)
    node.key = CURVE
    state = start_self_signed("cluster.local", CONFIG, NOW)
    state = State(
        current=certificates.Signer(certificate=state.current.certificate, key=RSA, intermediates=(), roots=())
    )
    authority = Authority(start_self_signed("cluster.local", CONFIG, NOW), CONFIG, lambda: NOW, fresh=True)
    request = agent_keys.build_request(CURVE, "spiffe://a/ns/b/sa/c").decode()
    chain = authority.issue(request, ["spiffe://a/ns/b/sa/c"])
    mine = running_authority.RunningAuthority(CONFIG, str(tmp_path / "ca"), "cluster.local", lambda: NOW)
    metadata = {"authorization": f"Bearer {TOKEN}"}
    data = {"tls.key": PEM.encode(), ".dockerconfigjson": LOGINS.encode()}
    return [
        state,
        state.current,
        authority,
        mine,
        mine.authority.state,
        store._encode_signer(state.current),
        store._StateFile(current=store._encode_signer(state.current)),
        serving.ServingCertificate(authority, ("a.example",), lambda: NOW),
        agent_keys.load_identity(
            observe.Secret(PEM.encode()),
            "".join(chain[:-1]).encode(),
            chain[-1].encode(),
            spiffe_id="spiffe://a/ns/b/sa/c",
        ),
        observe.Secret(PEM.encode()),
        tokens.TokenIssuer(CURVE, lambda: NOW),
        Secret(metadata=ObjectMeta(name="a"), data=data, string_data={"x": RSA_PEM}),
        identity.Call(metadata=metadata),
        Credentials(metadata=metadata),
        Wanted(plugin="p", version="1", url="oci://x", logins=LOGINS),
        File("tls.key", PEM.encode()),
        File("token", TOKEN.encode()),
        *holders_on_kubernetes(),
    ]


def holders_on_kubernetes() -> list[object]:
    """What holds an authority's Secrets."""
    state = State(
        current=certificates.Signer(certificate=make_node("x", NOW).certificate, key=CURVE, intermediates=(), roots=())
    )
    parts = {"ca-key.pem": PEM.encode(), store.STATE: store.encode_state(state)}
    found = authority_secrets.Found(name="cacerts", where="Secret a/cacerts", version="1", data=parts)
    shared = shared_authority.SharedAuthority(SecretServer(), CONFIG, "a", lambda: NOW)
    shared._kept, shared._parts, shared._adopted = found, parts, state.current
    raw = authority_secrets._Secret(data=parts)
    return [found, raw, shared, shared_authority._Source(parts, "Secret a/cacerts", found)]


def test_nothing_that_holds_a_secret_prints_it(known: Known, tmp_path: pathlib.Path) -> None:
    held = holders(tmp_path)
    shown = [(type(each).__name__, f"{each!r} {each} {each:}") for each in held]
    shown += [(f"[{type(each).__name__}]", repr([each, {"k": each}])) for each in held]
    assert known.found_in_any(shown) == []


def plugged(folder: pathlib.Path, **files: bytes) -> Callable[[], object]:
    """Loads an authority some of whose files were mixed up."""
    node = make_node("root", NOW)
    write_authority(folder, node, [], [node])
    for name, content in files.items():
        (folder / f"{name.replace('_', '-')}.pem").write_bytes(content)
    return lambda: store.find_plugged(folder)


def damaged_state(folder: pathlib.Path) -> Callable[[], object]:
    store.save_state(folder, start_self_signed("cluster.local", CONFIG, NOW))
    path = folder / store.STATE
    path.write_text('{"current": {"certificate": 3, "key": "' + PEM.replace("\n", "\\n") + '"}')
    return lambda: store.load_state(folder)


def swapped_state(folder: pathlib.Path) -> Callable[[], object]:
    store.save_state(folder, start_self_signed("cluster.local", CONFIG, NOW))
    path = folder / store.STATE
    key = BROKEN.replace("\n", "\\n")
    path.write_text(f'{{"current": {{"certificate": "{key}", "key": "{key}", "intermediates": "", "roots": "{key}"}}}}')
    return lambda: store.load_state(folder)


def load_agent_identity(key: str, chain: str) -> Callable[[], object]:
    return lambda: agent_keys.load_identity(
        observe.Secret(key.encode()), chain.encode(), chain.encode(), spiffe_id="spiffe://a/ns/b/sa/c"
    )


async def read_secret(body: bytes) -> object:
    answers = AsyncMock(return_value=body)
    return await authority_secrets.AuthoritySecrets(SimpleNamespace(get=answers), "a").read("cacerts")


def test_errors_about_broken_and_misplaced_keys_do_not_quote_them(known: Known, tmp_path: pathlib.Path) -> None:
    verifier = tokens.KeyTokenVerifier((CURVE.public_key(),), lambda: NOW)
    attempts: dict[str, Callable[[], object]] = {
        "broken key": lambda: certificates.decode_key(BROKEN.encode(), "x"),
        "key as certificate": lambda: certificates.decode(PEM.encode(), "x"),
        "key as request": lambda: certificates.check_request(PEM),
        "broken token key": lambda: tokens.decode_private_key(BROKEN.encode()),
        "broken key among public ones": lambda: tokens.decode_public_keys(BROKEN.encode()),
        "plugged key that is broken": plugged(tmp_path / "a", ca_key=BROKEN.encode()),
        "plugged key of another": plugged(tmp_path / "b", ca_key=RSA_PEM.encode()),
        "key in place of the certificate": plugged(tmp_path / "c", ca_cert=PEM.encode()),
        "key in place of the root": plugged(tmp_path / "d", root_cert=BROKEN.encode()),
        "damaged state": damaged_state(tmp_path / "e"),
        "state with a key in every place": swapped_state(tmp_path / "f"),
        "Secret whose key is broken": lambda: store.decode_plugged(
            {"ca-cert.pem": b"", "ca-key.pem": PEM.encode()}, "x"
        ),
        "Secret with a key in every place": lambda: store.decode_plugged(
            dict.fromkeys(store.PLUGGED_FILES, PEM.encode()), "x"
        ),
        "Secret with a torn state": lambda: store.decode_state(b'{"current": {"key": "' + PEM.encode(), "x"),
        "Secret that is not one": lambda: asyncio.run(
            read_secret(b'{"data": {"ca-key.pem": "' + PEM.encode() + b'"}}')
        ),
        "agent's broken key": load_agent_identity(
            BROKEN, certificates.encode(make_node("x", NOW).certificate).decode()
        ),
        "agent's key as chain": load_agent_identity(PEM, PEM),
        "token that is none": lambda: asyncio.run(verifier.verify(TOKEN)),
        "key as token": lambda: asyncio.run(verifier.verify(PEM)),
    }
    said = []
    for name, attempt in attempts.items():
        with pytest.raises(Exception) as caught:
            attempt()
        lines = traceback.format_exception(caught.value)
        said.append((name, "".join(lines) + repr(caught.value) + repr(caught.value.args)))
    assert known.found_in_any(said) == []


MANIFESTS = {
    "not base64": "kind: Secret\napiVersion: v1\nmetadata: {name: a}\ndata:\n  tls.key: |\n{key}",
    "under a wrong name": "kind: Secret\napiVersion: v1\nmetadata: {name: a}\nstringdata:\n  tls.key: |\n{key}",
    "not a map": "kind: Secret\napiVersion: v1\nmetadata: {name: a}\nstringData: |\n{key}",
    "a list": "kind: Secret\napiVersion: v1\nmetadata: {name: a}\nstringData:\n- |\n{key}",
    "as the type": "kind: Secret\napiVersion: v1\nmetadata: {name: a}\ntype: [3]\nstringData:\n  k: |\n{key}",
    "torn": 'kind: Secret\napiVersion: v1\nmetadata: {name: a}\nstringData: {k: "{flat}\n',
    "without indentation": "kind: Secret\nstringData:\n  tls.key:\n{unindented}\n: [",
    "twice": "kind: Secret\nstringData: {k: '{flat}'}\nstringData: {k: '{flat}'}\n  x",
}


def write_manifest(folder: pathlib.Path, text: str, key: str) -> pathlib.Path:
    folder.mkdir(exist_ok=True)
    indented = "".join(f"    {line}\n" for line in key.splitlines())
    text = text.replace("{key}", indented).replace("{flat}", key.replace("\n", "\\n")).replace("{unindented}", key)
    (folder / "secret.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize("key", [PEM, BROKEN], ids=["key", "broken"])
def test_findings_about_secrets_do_not_quote_them(known: Known, tmp_path: pathlib.Path, name: str, key: str) -> None:
    folder = write_manifest(tmp_path / "m", MANIFESTS[name], key)
    runner = CliRunner()
    for command in (("validate", "-f"), ("analyze", "--use-kube=false"), ("analyze", "-o", "json", "--use-kube=false")):
        done = runner.invoke(main, [*command, str(folder)])
        assert known.found_in(done.output + repr(done.exception)) == [], command
    contents = files.load([str(folder)])
    assert known.found_in(repr(contents) + "".join(map(str, contents.findings))) == []
