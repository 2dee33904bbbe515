"""Ways into an API server: what a kubeconfig or a pod's files say, and what is said about ones that make no sense."""

import asyncio
import base64
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

import pytest
import yaml
from eventually import eventually
from traffic_certificates import Authority

from mizzen.errors import SourceError
from mizzen.sources.kube.access import Given, Pair, TokenFile, from_kubeconfig, in_cluster


def kubeconfig(folder: pathlib.Path, *, cluster=None, user=None, current="here", **more) -> pathlib.Path:
    path = folder / "config"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "apps"}},
            {"name": "lost", "context": {"cluster": "nowhere", "user": "u"}},
            {"name": "nobody", "context": {"cluster": "c"}},
        ],
        "current-context": current,
        **more,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def program(folder: pathlib.Path, text: str) -> str:
    path = folder / "plugin"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return "./plugin"


def credential(**status: object) -> str:
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"cat <<'END'\n{json.dumps(document)}\nEND\n"


def plugin(folder: pathlib.Path, text: str, **more: object) -> dict[str, object]:
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": program(folder, text), **more}}


async def test_the_current_context_names_server_namespace_and_user(tmp_path):
    access = from_kubeconfig(kubeconfig(tmp_path, user={"token": "t"}))
    assert (access.server, access.namespace) == ("https://10.0.0.1:6443", "apps")
    assert await access.credentials.give() == Given("t")


def test_a_kubeconfig_is_utf_8_whatever_the_locale_is(tmp_path):
    path = kubeconfig(tmp_path)
    path.write_text(path.read_text().replace("apps", "ä"), encoding="utf-8")
    script = (
        "import pathlib, sys\n"
        "from mizzen.sources.kube.access import from_kubeconfig\n"
        "print(ascii(from_kubeconfig(pathlib.Path(sys.argv[1])).namespace))\n"
    )
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script, path], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (r"'\xe4'" + "\n", "")


async def test_another_context_can_be_chosen_and_needs_no_user(tmp_path):
    access = from_kubeconfig(kubeconfig(tmp_path), "nobody")
    assert access.namespace == "default"
    assert await access.credentials.give() == Given()


@pytest.mark.parametrize("inline", [True, False])
async def test_certificates_stand_in_the_file_or_beside_it(tmp_path, inline):
    authority = Authority("test")
    certificate, key = authority.issue("me")
    named = (
        {"certificate-authority": ("ca", authority.pem)},
        {
            "client-certificate": ("crt", certificate),
            "client-key": ("key", key),
        },
    )
    sections = []
    for fields in named:
        section = {}
        for field, (file, text) in fields.items():
            (tmp_path / file).write_text(text)
            section |= {f"{field}-data": base64.b64encode(text.encode()).decode()} if inline else {field: file}
        sections.append(section)
    access = from_kubeconfig(kubeconfig(tmp_path, cluster=sections[0], user=sections[1]))
    given = await access.credentials.give()
    assert access.authority == authority.pem.encode()
    assert given.pair == Pair(certificate.encode(), key.encode())
    assert access.make_context(given.pair, access.authority).verify_mode.name == "CERT_REQUIRED"
    assert key not in repr(given)


def test_verification_is_off_only_when_the_file_says_so(tmp_path):
    assert from_kubeconfig(kubeconfig(tmp_path)).make_context(None, None).check_hostname
    access = from_kubeconfig(kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True}))
    assert access.make_context(None, None).verify_mode.name == "CERT_NONE"


def test_a_key_of_another_certificate_is_an_error_not_a_crash(tmp_path):
    authority = Authority("test")
    access = from_kubeconfig(kubeconfig(tmp_path))
    with pytest.raises(SourceError, match="TLS to https"):
        access.make_context(Pair(authority.issue("a")[0].encode(), authority.issue("b")[1].encode()), None)


def test_a_client_certificate_needs_no_folder_to_write_to(tmp_path, monkeypatch):
    """Containers have read-only file systems."""
    given = from_kubeconfig(kubeconfig(tmp_path))
    certificate, key = Authority("ours").issue("a")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    given.make_context(Pair(certificate.encode(), key.encode()), None)


async def test_a_token_file_is_read_again_when_it_has_changed(tmp_path):
    (tmp_path / "token").write_text("one\n")
    access = from_kubeconfig(kubeconfig(tmp_path, user={"tokenFile": "token"}))
    assert (await access.credentials.give()).token == "one"
    # The kubelet swaps files by renaming.
    (tmp_path / "next").write_text("two\n")
    os.replace(tmp_path / "next", tmp_path / "token")
    assert (await access.credentials.give()).token == "two"
    (tmp_path / "token").unlink()
    with pytest.raises(SourceError, match="token"):
        await access.credentials.give()


async def test_a_plugin_is_told_the_cluster_and_asked_again_only_when_its_answer_ends(tmp_path):
    text = 'echo "$KUBERNETES_EXEC_INFO" >> asked; echo "$1 $ROLE" > called\n'
    user = plugin(
        tmp_path,
        f"cd {tmp_path}\n" + text + credential(token="t", expirationTimestamp="2999-01-01T00:00:00Z"),
        args=["login"],
        env=[{"name": "ROLE", "value": "reader"}],
        provideClusterInfo=True,
    )
    access = from_kubeconfig(kubeconfig(tmp_path, user=user))
    for _ in range(3):
        assert await access.credentials.give() == Given("t")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 1
    assert json.loads(asked[0])["spec"]["cluster"]["server"] == "https://10.0.0.1:6443/"
    assert (tmp_path / "called").read_text() == "login reader\n"
    access.credentials.refused()
    await access.credentials.give()
    assert len((tmp_path / "asked").read_text().splitlines()) == 2


async def test_a_plugin_whose_answer_has_ended_is_asked_every_time(tmp_path):
    text = f"echo x >> {tmp_path}/asked\n" + credential(token="t", expirationTimestamp="2001-01-01T00:00:00Z")
    access = from_kubeconfig(kubeconfig(tmp_path, user=plugin(tmp_path, text)))
    await access.credentials.give()
    await access.credentials.give()
    assert (tmp_path / "asked").read_text() == "x\nx\n"


async def test_a_plugin_may_give_a_certificate(tmp_path):
    text = credential(clientCertificateData="C", clientKeyData="K")
    access = from_kubeconfig(kubeconfig(tmp_path, user=plugin(tmp_path, text)))
    assert (await access.credentials.give()).pair == Pair(b"C", b"K")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo who are you >&2; exit 3\n", "who are you"),
        ("exit 3\n", "ended with 3"),
        ("echo hello\n", "no ExecCredential"),
        ("echo '{\"status\": 7}'\n", "no ExecCredential"),
    ],
)
async def test_a_plugin_that_fails_is_named_with_its_last_word(tmp_path, text, why):
    access = from_kubeconfig(kubeconfig(tmp_path, user=plugin(tmp_path, text)))
    with pytest.raises(SourceError, match=why):
        await access.credentials.give()


async def test_a_plugin_ends_with_whoever_waits_for_its_answer(tmp_path):
    noted = tmp_path / "number"
    text = f"echo $$ > {noted}.new; mv {noted}.new {noted}; exec sleep 600\n"
    access = from_kubeconfig(kubeconfig(tmp_path, user=plugin(tmp_path, text)))
    asking = asyncio.create_task(access.credentials.give())
    await eventually(noted.exists)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)


async def test_a_plugin_that_is_not_there_is_named(tmp_path):
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "mizzen-no-such-plugin"}}
    access = from_kubeconfig(kubeconfig(tmp_path, user=user))
    with pytest.raises(SourceError, match="mizzen-no-such-plugin"):
        await access.credentials.give()


@pytest.mark.parametrize(
    ("changes", "context", "why"),
    [
        ({"current": ""}, "", "no current-context"),
        ({}, "gone", "contexts has no 'gone'"),
        ({}, "lost", "clusters has no 'nowhere'"),
        ({"cluster": {"server": ""}}, "", "has no server"),
        ({"cluster": {"certificate-authority": "no-such-file"}}, "", "certificate-authority"),
        ({"cluster": {"certificate-authority-data": "?"}}, "", "certificate-authority"),
        ({"user": {"client-certificate-data": "Qw=="}}, "", "come together"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "", "auth-provider"),
        ({"user": {"exec": {"command": "x", "apiVersion": "v0"}}}, "", "'v0'"),
        ({"user": {"exec": {"args": []}}}, "", "command"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said(tmp_path, changes, context, why):
    path = kubeconfig(tmp_path, **changes)
    with pytest.raises(SourceError, match=why) as caught:
        from_kubeconfig(path, context)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["- a\n", "a: [", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_an_error(tmp_path, text):
    (tmp_path / "config").write_text(text)
    with pytest.raises(SourceError, match="config"):
        from_kubeconfig(tmp_path / "config")
    with pytest.raises(SourceError, match="gone"):
        from_kubeconfig(tmp_path / "gone")


async def test_a_pod_finds_its_api_server(tmp_path):
    for name, text in {"ca.crt": "CA", "token": "t\n", "namespace": "apps"}.items():
        (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster(environment, tmp_path)
    assert (access.server, access.authority, access.namespace) == ("https://[fd00::1]:443", b"CA", "apps")
    (tmp_path / "ca.crt").write_text("another")
    assert access.read_authority() == b"another"
    assert isinstance(access.credentials, TokenFile)
    assert await access.credentials.give() == Given("t")
    with pytest.raises(SourceError, match="not in a cluster"):
        in_cluster({}, tmp_path)
    with pytest.raises(SourceError, match="service account"):
        in_cluster(environment, tmp_path / "gone")
